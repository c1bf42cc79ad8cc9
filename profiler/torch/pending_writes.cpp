#include "profiler/torch/pending_writes.h"

#include <ATen/core/function_schema.h>

#include <algorithm>
#include <optional>

#include "executor/kept_tensor.h"

namespace stowage::profiler {

void PendingWrites::op_begin(const at::RecordFunction& op) {
  ++depth_;
  for (const std::size_t position : written_arguments(op)) {
    const c10::ArrayRef<const c10::IValue> inputs = op.inputs();
    if (position >= inputs.size() || !inputs[position].isTensor()) continue;
    const at::Tensor& tensor = inputs[position].toTensor();
    if (!tensor.defined() || !tensor.has_storage()) continue;
    writes_.push_back({depth_, tensor.storage().unsafeGetStorageImpl(),
                       executor::KeptTensor::version_of(tensor)});
  }
}

void PendingWrites::op_end() {
  while (!writes_.empty() && writes_.back().depth == depth_) writes_.pop_back();
  --depth_;
}

void PendingWrites::clear() {
  depth_ = 0;
  writes_.clear();
}

bool PendingWrites::may_write(const at::Tensor& tensor) const {
  if (writes_.empty() || !tensor.defined() || !tensor.has_storage()) return false;
  const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  const std::int64_t version = executor::KeptTensor::version_of(tensor);
  return std::any_of(writes_.begin(), writes_.end(), [&](const Write& write) {
    return write.storage == storage && write.version == version;
  });
}

const std::vector<std::size_t>& PendingWrites::written_arguments(const at::RecordFunction& op) {
  static const std::vector<std::size_t> kNone;
  const auto known = written_arguments_.find(op.name());
  if (known != written_arguments_.end()) return known->second;
  const std::optional<c10::FunctionSchema> schema = op.operator_schema();
  if (!schema) return kNone;  // none of the dispatcher's: its name may be gone tomorrow
  std::vector<std::size_t>& positions = written_arguments_[op.name()];
  for (std::size_t i = 0; i < schema->arguments().size(); ++i) {
    const c10::AliasInfo* const alias = schema->arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite()) positions.push_back(i);
  }
  return positions;
}

}  // namespace stowage::profiler
