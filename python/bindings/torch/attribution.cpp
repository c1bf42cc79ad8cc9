#include "python/bindings/torch/attribution.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <stowage/attribute.h>
#include <stowage/device.h>

#include <string>
#include <utility>
#include <vector>

#include "python/bindings/torch/tensor_caster.h"

namespace stowage::python {

namespace {

namespace nb = nanobind;
using executor::LayerGradients;

std::vector<std::pair<std::string, at::Tensor>> results_of(const LayerGradients& gradients) {
  std::vector<std::pair<std::string, at::Tensor>> results;
  for (const executor::NamedTensor& each : gradients.results()) {
    results.emplace_back(each.name, each.tensor);
  }
  return results;
}

}  // namespace

void define_attribution(nb::module_& module) {
  // Where a plan has it, others' work is waited for, which may need the GIL.
  using NoGil = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Held>(module, "Held",
                   "A tensor that a plan may have on the host until it is asked for.")
      .def("get", &Held::get, NoGil(), "The tensor, without a graph.");
  module.def("hold", &hold, nb::arg("tensor"), NoGil());
  nb::class_<LayerGradients>(module, "LayerGradients",
                             "Gradient x activation of tensors of a step.")
      .def(nb::init<executor::Device&>(), nb::arg("device"), nb::keep_alive<1, 2>())
      .def("begin", &LayerGradients::begin, "Forward begins.")
      .def("start", &LayerGradients::start, nb::arg("tensor"), NoGil(),
           "What takes the place of a tensor that the graph begins at.")
      .def("attribute", &LayerGradients::attribute, nb::arg("name"), nb::arg("tensor"),
           nb::arg("factor").none() = nb::none(), NoGil(), "What takes the tensor's place.")
      .def("end_forward", &LayerGradients::end_forward)
      .def("end_backward", &LayerGradients::end_backward, NoGil())
      .def("abort", &LayerGradients::abort, NoGil(), "The step raised.")
      .def_prop_ro("is_in_forward", &LayerGradients::is_in_forward)
      .def("results", &results_of, "Of the last step, on the host; valid until the next one.");
}

}  // namespace stowage::python
