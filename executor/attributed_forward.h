// AttributedForward: a model's forward whose layers are attributed (executor/layer_gradients.h).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/attribution_spec.h"
#include "executor/backward_root.h"
#include "executor/layer_gradients.h"
#include "executor/step_driver.h"

namespace stowage::executor {

// The graph begins behind the first of these layers: nothing ahead of them needs a gradient.
//
// A driver that changes nothing else; recorders and plans are put in front of it. It is the calling
// thread's from its making on. Names are "layers.0"; of a later call of the layer "layers.0@1"; of
// what it is given "layers.0:input"; of its further tensors "layers.0#1".
class AttributedForward final : public StepDriver {
 public:
  // `device` outlives it.
  AttributedForward(Device& device, std::vector<AttributedLayers> layers)
      : gradients_(device), layers_(std::move(layers)), installed_(*this) {}

  // Throws what the model's forward throws, and c10::Error where a pattern matches none of its
  // layers.
  [[nodiscard]] BackwardRoot run(const std::function<BackwardRoot()>& model);
  // For what follows forward.
  [[nodiscard]] LayerGradients& gradients() { return gradients_; }

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(LayerEvent /*event*/, std::string_view /*path*/) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(UpdateEvent /*event*/, const at::Tensor& /*parameter*/) override {}
  void layer_tensors(LayerSide side, std::string_view path,
                     std::vector<at::Tensor>& tensors) override;

 private:
  void check_matched() const;

  LayerGradients gradients_;
  std::vector<AttributedLayers> layers_;
  // Of the forward that runs.
  std::map<std::string, int> calls_;
  std::set<std::string, std::less<>> seen_;
  std::set<std::size_t> matched_;
  InstalledDriver installed_;
};

}  // namespace stowage::executor
