// Tables of a trace as lists of dictionaries, one a row.
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/trace.h>

namespace stowage::python {

// {"requested_bytes", "active_bytes", "reserved_bytes"} of the training device; None where the
// device has no such counter.
[[nodiscard]] nanobind::dict peaks_row(const Trace& trace);

// In forward order, the step itself left out.
[[nodiscard]] nanobind::list layer_rows(const Trace& trace);

// In the order of packs.
[[nodiscard]] nanobind::list saved_rows(const Trace& trace);

}  // namespace stowage::python
