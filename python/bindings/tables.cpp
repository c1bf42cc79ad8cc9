#include "python/bindings/tables.h"

#include <stowage/plan.h>

#include <algorithm>
#include <string>
#include <vector>

#include "python/bindings/texts.h"

namespace stowage::python {

namespace nb = nanobind;

namespace {

nb::object text_or_none(const Trace& trace, StringId id) {
  return id.valid() ? nb::object(text_of(trace.string(id))) : nb::object(nb::none());
}

nb::object bytes_or_none(Bytes bytes) {
  return bytes < 0 ? nb::object(nb::none()) : nb::cast(bytes);
}

nb::tuple shape_of(const Trace& trace, TensorId tensor) {
  nb::list sizes;
  for (const std::int64_t size : trace.list(trace.tensors.shape[tensor.index()])) {
    sizes.append(size);
  }
  return nb::tuple(sizes);
}

nb::object op_or_none(const Trace& trace, OpId op) {
  return op.valid() ? text_or_none(trace, trace.ops.name[op.index()]) : nb::object(nb::none());
}

// The op that people know of those around the one that allocated: the primitive one, else the
// outermost.
OpId known_op(const Trace& trace, OpId op) {
  while (op.valid() && trace.ops.primitive[op.index()] == 0) {
    const OpId parent = trace.ops.parent[op.index()];
    if (!parent.valid()) break;
    op = parent;
  }
  return op;
}

nb::dict saved_row(const Trace& trace, const simulator::ChainFinder& chains, SavedId saved) {
  const std::size_t row = saved.index();
  const TensorId tensor = trace.saved.tensor[row];
  const StorageId storage = trace.saved.storage[row];
  nb::dict out;
  out["site"] = text_of(trace.string(trace.saved.site[row]));
  out["layer"] = text_or_none(trace, trace.layers.name[trace.saved.layer[row].index()]);
  out["op"] = op_or_none(trace, trace.saved.op[row]);
  out["made_by"] = op_or_none(trace, known_op(trace, trace.tensors.producer[tensor.index()]));
  out["shape"] = shape_of(trace, tensor);
  out["dtype"] = name_of(trace.tensors.dtype[tensor.index()]);
  out["bytes"] = storage.valid() ? byte_range(trace, tensor).size() : Bytes{0};
  out["storage"] = storage.value;
  out["storage_bytes"] = storage.valid() ? trace.storages.bytes[storage.index()] : Bytes{0};
  out["storage_class"] = name_of(storage.valid() ? trace.storages.storage_class[storage.index()]
                                                 : StorageClass::other);
  out["made_in_step"] = storage.valid() && trace.storages.alloc_event[storage.index()].valid();
  out["can_recompute"] = chains.check(saved).ok();
  return out;
}

}  // namespace

nb::dict peaks_row(const Trace& trace) {
  nb::dict out;
  const auto& devices = trace.peaks.device;
  const auto found = std::find(devices.begin(), devices.end(), 0);
  const auto row = static_cast<std::size_t>(found - devices.begin());
  const auto value = [&](const std::vector<Bytes>& column) {
    return row < column.size() ? bytes_or_none(column[row]) : nb::object(nb::none());
  };
  out["requested_bytes"] = value(trace.peaks.requested);
  out["active_bytes"] = value(trace.peaks.active);
  out["reserved_bytes"] = value(trace.peaks.reserved);
  return out;
}

nb::list layer_rows(const Trace& trace) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 1; row < trace.layers.size(); ++row) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return trace.layers.forward_order[a] < trace.layers.forward_order[b];
  });
  nb::list out;
  for (const std::size_t row : rows) {
    nb::dict layer;
    layer["name"] = text_or_none(trace, trace.layers.name[row]);
    layer["kind"] = text_or_none(trace, trace.layers.kind[row]);
    layer["calls"] = trace.layers.calls[row];
    layer["parameter_bytes"] = trace.layers.parameter_bytes[row];
    out.append(layer);
  }
  return out;
}

nb::list saved_rows(const Trace& trace) {
  const simulator::ChainFinder chains(trace);
  nb::list out;
  for (std::size_t row = 0; row < trace.saved.size(); ++row) {
    out.append(saved_row(trace, chains, SavedId(row)));
  }
  return out;
}

}  // namespace stowage::python
