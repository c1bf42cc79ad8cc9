// Which saved tensors the conditions of a rule match. Shared by resolve() and the policies.
#pragma once

#include <optional>

#include "simulator/plan/pattern.h"
#include "simulator/plan/plan.h"
#include "traces/result.h"

namespace stowage::simulator {

// Refers to the rule's trace, which must outlive it.
class RuleMatcher {
 public:
  // Errors (bad_input): a pattern that does not parse; `pointer` is "/site" or "/op".
  [[nodiscard]] static Result<RuleMatcher> make(const Trace& trace, const SavedRule& rule);

  [[nodiscard]] bool matches(SavedId saved) const;

  // No condition at all, so that it may also match nothing: {"site": "*"}.
  [[nodiscard]] bool matches_everything() const;

 private:
  explicit RuleMatcher(const Trace& trace) : trace_(&trace) {}

  const Trace* trace_;
  std::optional<Pattern> site_;  // absent also for "*"
  std::optional<Pattern> op_;
  std::optional<StorageClass> storage_class_;
  std::optional<Bytes> min_bytes_;
};

// True for a storage that existed before the step: parameters, buffers, inputs.
[[nodiscard]] bool pre_existing(const Trace& trace, StorageId storage);

}  // namespace stowage::simulator
