// stowage._core: values (traces, plans, simulations). Needs no LibTorch. What users see of it are
// the classes of python/src/stowage/, which hold these.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>
#include <stowage/result.h>

#include "python/bindings/errors.h"
#include "python/bindings/planned.h"
#include "python/bindings/recording.h"
#include "python/bindings/reports.h"
#include "python/bindings/simulated.h"

NB_MODULE(_core, module) {
  using namespace stowage::python;
  nanobind::set_leak_warnings(false);  // at exit of what a notebook or a traceback still holds
  module.attr("version") = stowage::kVersion;
  define_errors(module);
  define_trace(module);
  define_plan(module);
  define_simulation(module);
  define_planning(module);
  define_reports(module);
}
