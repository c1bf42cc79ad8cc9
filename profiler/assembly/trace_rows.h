// TraceRows: the trace under assembly as rows by identity: equal strings, lists and views get one
// row, an allocation serial finds its storage.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "profiler/assembly/interner.h"
#include "profiler/assembly/raw_pass.h"
#include "traces/trace.h"

namespace stowage::profiler {

struct TraceRows {
  Trace trace;

  StringId string(const std::string& text);
  // `parent` -1 = none. Forward order is the order of these calls.
  LayerId add_layer(const std::string& name, std::int32_t parent, const std::string& kind);
  // Not yet allocated or freed by any event; the class `other` has no evidence.
  StorageId add_storage(std::int64_t serial, Bytes bytes, StorageClass storage_class);
  // -1 for a serial without a storage.
  [[nodiscard]] StorageId storage_of(std::int64_t serial) const;
  // `version` relative to the storage's first pack; 0 for a mere use.
  TensorId tensor(const RawView& view, std::int64_t version);

 private:
  // Storage, dtype, shape, strides, offset, version, bytes of an element.
  using View =
      std::tuple<std::int32_t, int, std::int32_t, std::int32_t, std::int64_t, std::int64_t, Bytes>;
  Interner<std::string> strings_;
  Interner<std::vector<std::int64_t>> lists_;
  std::map<View, std::size_t> tensors_;
  std::unordered_map<std::int64_t, StorageId> storages_;
};

}  // namespace stowage::profiler
