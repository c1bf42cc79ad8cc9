#include "profiler/assembly/trace_rows.h"

namespace stowage::profiler {

StringId TraceRows::string(const std::string& text) {
  return StringId(strings_.row(trace.strings, text));
}

LayerId TraceRows::add_layer(const std::string& name, std::int32_t parent,
                             const std::string& kind) {
  Layers& layers = trace.layers;
  layers.name.push_back(string(name));
  layers.parent.push_back(LayerId(parent));
  layers.kind.push_back(string(kind));
  layers.parameter_bytes.push_back(0);
  layers.forward_order.push_back(static_cast<std::int32_t>(layers.name.size()) - 1);
  layers.calls.push_back(0);
  return LayerId(layers.name.size() - 1);
}

StorageId TraceRows::add_storage(std::int64_t serial, Bytes bytes, StorageClass storage_class) {
  Storages& storages = trace.storages;
  storages.device.push_back(0);
  storages.bytes.push_back(bytes);
  storages.rounded_bytes.push_back(bytes);
  storages.storage_class.push_back(storage_class);
  storages.evidence.push_back(storage_class == StorageClass::other ? Evidence::none
                                                                   : Evidence::registered);
  storages.layer.push_back(LayerId(0));
  storages.alloc_op.push_back(OpId());
  storages.alloc_event.push_back(EventId());
  storages.free_event.push_back(EventId());
  storages.natural_free_event.push_back(EventId());
  storages.parameter.emplace_back();
  const StorageId row(storages.bytes.size() - 1);
  storages_[serial] = row;
  return row;
}

StorageId TraceRows::storage_of(std::int64_t serial) const {
  const auto found = storages_.find(serial);
  return found == storages_.end() ? StorageId() : found->second;
}

TensorId TraceRows::tensor(const RawView& view, std::int64_t version) {
  const StorageId storage = storage_of(view.serial);
  const ListId shape(lists_.row(trace.lists, view.shape));
  const ListId strides(lists_.row(trace.lists, view.strides));
  const View key{storage.value,  static_cast<int>(view.dtype),
                 shape.value,    strides.value,
                 view.offset,    version,
                 view.item_bytes};
  const auto [entry, is_new] = tensors_.try_emplace(key, trace.tensors.size());
  if (is_new) {
    Tensors& tensors = trace.tensors;
    tensors.storage.push_back(storage);
    tensors.dtype.push_back(view.dtype);
    tensors.shape.push_back(shape);
    tensors.strides.push_back(strides);
    tensors.offset.push_back(view.offset);
    tensors.producer.push_back(storage.valid() ? trace.storages.alloc_op[storage.index()] : OpId());
    tensors.version.push_back(version);
    tensors.item_bytes.push_back(view.item_bytes);
  }
  return TensorId(entry->second);
}

}  // namespace stowage::profiler
