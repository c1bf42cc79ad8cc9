// What Python's Trace holds: a recording, and what is asked of its step again and again.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/plan.h>
#include <stowage/trace.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace stowage::python {

// Immutable; used by several threads at once.
class Recording {
 public:
  Recording(Trace trace, std::string sha256)
      : trace_(std::move(trace)), sha256_(std::move(sha256)) {}

  [[nodiscard]] const Trace& trace() const { return trace_; }
  // Of its JSON text, as a plan names it.
  [[nodiscard]] const std::string& sha256() const { return sha256_; }
  // Made by the first caller. Raises BadInput: a trace without events.
  [[nodiscard]] const simulator::StepIndex& index() const;

 private:
  Trace trace_;
  std::string sha256_;
  mutable std::once_flag once_;
  mutable std::optional<simulator::StepIndex> index_;
};

// Python's Plan.
struct PlanValue {
  simulator::Plan plan;
};

void define_trace(nanobind::module_& module);
void define_plan(nanobind::module_& module);

}  // namespace stowage::python
