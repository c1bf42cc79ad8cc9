#include "executor/model_check.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace stowage::executor {

namespace {

Error wrong(std::string message, std::string hint = {}) {
  return {ErrorCode::bad_input, std::move(message), "", "", std::move(hint)};
}

// Devices compare by kind: "cuda" names any of them.
std::optional<Error> check_tensors(const std::string& kind, const std::vector<NamedTensor>& tensors,
                                   c10::Device device) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    if (!names.insert(name).second) {
      return wrong("it has two " + kind + "s named '" + name + "'", "names must be unique");
    }
    if (!tensor.defined()) return wrong(kind + " '" + name + "' is undefined");
    if (tensor.device().type() != device.type()) {
      return wrong(
          kind + " '" + name + "' is on " + tensor.device().str() + ", not on " + device.str(),
          "make it on the device that make() is given");
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Error> check_model(const Model& model, c10::Device device) {
  const std::vector<NamedTensor> parameters = model.parameters();
  if (parameters.empty()) {
    return wrong("it has no trainable parameter, so there is no backward to record",
                 "parameters are leaf tensors with requires_grad; a frozen module has none");
  }
  if (auto error = check_tensors("parameter", parameters, device)) return error;
  std::map<const void*, std::string> seen;
  for (const auto& [name, tensor] : parameters) {
    const auto [entry, fresh] = seen.emplace(tensor.unsafeGetTensorImpl(), name);
    if (!fresh) {
      return wrong("parameters '" + entry->second + "' and '" + name + "' are one tensor",
                   "list a tied parameter once");
    }
    if (!tensor.requires_grad() || !tensor.is_leaf()) {
      return wrong("parameter '" + name + "' is not a leaf tensor with requires_grad",
                   "list only what is trained");
    }
  }
  if (auto error = check_tensors("buffer", model.buffers(), device)) return error;
  return check_tensors("input", model.inputs(), device);
}

}  // namespace stowage::executor
