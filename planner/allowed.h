// Which kinds of decisions a plan may make.
#pragma once

namespace stowage::planner {

struct Allowed {
  bool offload = true;     // saved tensors leave and come back
  bool recompute = true;   // segments run again in backward
  bool parameters = true;  // parameters stream
  bool operator==(const Allowed&) const = default;
};

}  // namespace stowage::planner
