#include "executor/attributed_forward.h"

#include <c10/util/Exception.h>

#include "executor/models/option_reader.h"

namespace stowage::executor {

void AttributedForward::layer_tensors(LayerSide side, std::string_view path,
                                      std::vector<at::Tensor>& tensors) {
  const bool is_in_forward = gradients_.is_in_forward();
  if (is_in_forward) seen_.emplace(path);
  bool is_attributed = false;
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    if (layers_[k].side != side || !layers_[k].pattern.matches(path)) continue;
    if (is_in_forward) matched_.insert(k);
    is_attributed = true;
  }
  if (!is_attributed) return;
  std::string name = std::string(path) + (side == LayerSide::inputs ? ":input" : "");
  const int call = is_in_forward ? calls_[name]++ : 0;
  if (call > 0) name += "@" + std::to_string(call);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    const std::string number = k == 0 ? "" : "#" + std::to_string(k);
    tensors[k] = gradients_.attribute(name + number, tensors[k]);
  }
}

void AttributedForward::check_matched() const {
  for (std::size_t k = 0; k < layers_.size(); ++k) {
    if (matched_.contains(k)) continue;
    const std::vector<std::string> names(seen_.begin(), seen_.end());
    TORCH_CHECK(!names.empty(), "the model has no layers that could be attributed");
    TORCH_CHECK(false, "no layer of the model matches '", layers_[k].text, "' (",
                suggestion(layers_[k].text, names), ")");
  }
}

BackwardRoot AttributedForward::run(const std::function<BackwardRoot()>& model) {
  calls_.clear();
  seen_.clear();
  matched_.clear();
  gradients_.begin();
  try {
    BackwardRoot root = model();
    check_matched();
    gradients_.end_forward();
    return root;
  } catch (...) {
    gradients_.abort();
    throw;
  }
}

}  // namespace stowage::executor
