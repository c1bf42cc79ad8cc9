// What Python's Simulation holds: a plan's step on a recording, replayed.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/simulate.h>

#include <memory>
#include <string>

#include "python/bindings/recording.h"

namespace stowage::python {

// Immutable; used by several threads at once.
struct Simulated {
  std::shared_ptr<const Recording> recording;  // which `simulation` refers to
  simulator::Plan plan;
  std::shared_ptr<const report::Simulation> simulation;
  std::string policy;  // empty: a plan

  [[nodiscard]] std::string title() const {
    return policy.empty() ? std::string("plan") : "policy " + policy;
  }
};

void define_simulation(nanobind::module_& module);

}  // namespace stowage::python
