// Which kinds of decisions a search may make, and which it finds made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::planner {

class Pins;

struct Allowed {
  bool offload = true;        // saved tensors leave and come back
  bool recompute = true;      // segments run again in backward
  bool parameters = true;     // parameters stream
  bool optimizer = true;      // its state streams, or the host updates
  bool gradients = true;      // leave behind their accumulation
  bool micro_batches = true;  // the step runs in those that it was recorded in besides
  // Made already, whatever else is allowed, and left as they are (planner/pins.h); null: none.
  std::shared_ptr<const Pins> pinned{};
  bool operator==(const Allowed&) const = default;

  // What --allow and --deny know: offload, recompute, params, optimizer, gradients, micro-batch.
  [[nodiscard]] static std::vector<std::string> names();
  // Of nothing else than these names; of all but these. Errors (usage): another name.
  [[nodiscard]] static Result<Allowed> only(const std::vector<std::string>& names);
  [[nodiscard]] static Result<Allowed> all_but(const std::vector<std::string>& names);

  // "offload and recompute", as --allow spells them; "nothing"; empty when all of it is allowed.
  // Nothing of what is pinned.
  [[nodiscard]] std::string text() const;
  // "plan", or "plan of what is allowed (offload)".
  [[nodiscard]] std::string limits(const std::string& noun) const;
};

}  // namespace stowage::planner
