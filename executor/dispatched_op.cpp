#include "executor/dispatched_op.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>
#include <unordered_map>

namespace stowage::executor {

bool is_composite(const at::RecordFunction& function) {
  // By the name's address, which is the schema's own; a marked function's is anybody's.
  thread_local std::unordered_map<const char*, bool> known;
  const auto found = known.find(function.name());
  if (found != known.end()) return found->second;
  const std::optional<c10::OperatorName> name = function.operator_name();
  if (!name) return true;
  const auto op = c10::Dispatcher::singleton().findOp(*name);
  const bool is_one =
      !op || op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
  known.emplace(function.name(), is_one);
  return is_one;
}

}  // namespace stowage::executor
