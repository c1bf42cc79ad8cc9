#include "simulator/plan/rule_match.h"

#include <limits>
#include <utility>

namespace stowage::simulator {

bool pre_existing(const Trace& trace, StorageId storage) {
  return storage.valid() && !trace.storages.alloc_event[storage.index()].valid();
}

Result<RuleMatcher> RuleMatcher::make(const Trace& trace, const SavedRule& rule) {
  RuleMatcher matcher(trace);
  const auto compile = [](const std::optional<std::string>& text, const char* pointer,
                          std::optional<Pattern>& out) -> Status {
    if (!text || *text == "*") return Unit{};
    auto pattern = Pattern::parse(*text);
    if (!pattern) {
      Error error = pattern.error();
      error.pointer = pointer;
      return error;
    }
    out = std::move(pattern).value();
    return Unit{};
  };
  if (auto status = compile(rule.site, "/site", matcher.site_); !status) return status.error();
  if (auto status = compile(rule.op, "/op", matcher.op_); !status) return status.error();
  matcher.storage_class_ = rule.storage_class;
  matcher.min_bytes_ = rule.min_bytes;
  return matcher;
}

bool RuleMatcher::matches_everything() const {
  return !site_ && !op_ && !storage_class_ && !min_bytes_;
}

namespace {

// Elements times their size: what a framework calls the bytes of a view.
Bytes view_bytes(const Trace& trace, TensorId tensor) {
  Bytes bytes = trace.tensors.item_bytes[tensor.index()];
  for (const std::int64_t extent : trace.list(trace.tensors.shape[tensor.index()])) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::numeric_limits<Bytes>::max();
  }
  return bytes;
}

}  // namespace

bool RuleMatcher::matches(SavedId saved) const {
  const Saved& table = trace_->saved;
  const StorageId storage = table.storage[saved.index()];
  if (storage_class_) {
    if (!storage.valid() || trace_->storages.storage_class[storage.index()] != *storage_class_) {
      return false;
    }
  } else if (pre_existing(*trace_, storage)) {
    return false;
  }
  if (min_bytes_) {
    const TensorId tensor = table.tensor[saved.index()];
    const Bytes bytes = storage.valid() && tensor.valid() ? view_bytes(*trace_, tensor) : 0;
    if (bytes < *min_bytes_) return false;
  }
  if (op_) {
    const OpId op = table.op[saved.index()];
    if (!op.valid() || !op_->matches(trace_->string(trace_->ops.name[op.index()]))) return false;
  }
  return !site_ || site_->matches(trace_->string(table.site[saved.index()]));
}

}  // namespace stowage::simulator
