#include "python/bindings/reports.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <stowage/report.h>

#include <string>
#include <utility>

#include "python/bindings/errors.h"
#include "python/bindings/recording.h"
#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

// Python's Inspection.
struct Inspected {
  std::shared_ptr<Recording> recording;
  report::InspectReport report;
  std::string by;
};

// Python's Diff.
struct Compared {
  report::Diff diff;
  std::string before;
  std::string after;
};

Inspected inspect_recording(const std::shared_ptr<Recording>& recording, const std::string& by,
                            const std::string& at) {
  using report::GroupBy;
  GroupBy group = GroupBy::layer;
  if (by == "op") {
    group = GroupBy::op;
  } else if (by == "class") {
    group = GroupBy::storage_class;
  } else if (by != "layer") {
    throw Raised(unknown_name("by", "grouping", by, {"layer", "op", "class"}));
  }
  return {recording, take(report::inspect(recording->trace(), group, at)), by};
}

Compared compare_texts(const nb::bytes& a, const std::string& before, const nb::bytes& b,
                       const std::string& after) {
  const std::string first(a.c_str(), a.size());
  const std::string second(b.c_str(), b.size());
  return {without_gil([&] { return take(report::diff_texts(first, before, second, after)); }),
          before, after};
}

void define_inspection(nb::module_& module) {
  nb::class_<Inspected> of(module, "Inspected");
  of.def(
      "json",
      [](const Inspected& self, int top) {
        return bytes_of(report::inspect_json(self.recording->trace(), self.report, top, self.by));
      },
      nb::arg("top"));
  of.def(
      "text",
      [](const Inspected& self, int top, int width, bool unicode) {
        return shown(report::inspect_text(self.recording->trace(), self.report, top, self.by,
                                          {report::Paint(), width, unicode}));
      },
      nb::arg("top"), nb::arg("width"), nb::arg("unicode"));
  module.def("inspect", &inspect_recording, nb::arg("recording"), nb::arg("by"), nb::arg("at"),
             nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void define_reports(nb::module_& module) {
  define_inspection(module);
  nb::class_<Compared> of(module, "Compared");
  of.def("json", [](const Compared& self) {
    return bytes_of(report::diff_json(self.diff, self.before, self.after));
  });
  of.def(
      "text",
      [](const Compared& self, int top) {
        return shown(report::diff_text(self.diff, self.before, self.after, top, report::Paint()));
      },
      nb::arg("top"));
  module.def("diff", &compare_texts, nb::arg("a"), nb::arg("before"), nb::arg("b"),
             nb::arg("after"));
  module.def("policies", [] { return bytes_of(report::policies_json(planner::policies())); });
}

}  // namespace stowage::python
