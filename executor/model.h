// The interface of a model: what the built-in models and users' plugins implement. A model
// owns its parameters, buffers and input tensors on one device; its step is deterministic for a
// given seed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/backward_root.h"
#include "executor/model_spec.h"
#include "traces/result.h"

namespace stowage::executor {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

class Model {
 public:
  virtual ~Model() = default;

  // Trainable parameters in a fixed order; a tied parameter is listed once.
  [[nodiscard]] virtual std::vector<NamedTensor> parameters() const = 0;
  [[nodiscard]] virtual std::vector<NamedTensor> buffers() const = 0;
  // The tensors that hold a batch; allocated once, written by load_batch().
  [[nodiscard]] virtual std::vector<NamedTensor> inputs() const = 0;
  // Writes the batch drawn from `seed` into the input tensors, in place.
  virtual void load_batch(std::int64_t seed) = 0;
  // Forward of one step through stowage::layer; what may run in parts of the batch through
  // stowage::tail.
  virtual BackwardRoot forward() = 0;
};

// Builds a model on the given device with parameters drawn from `seed`. Errors: unknown name or
// option (with the nearest one), bad value; of a plugin, what executor/plugin_library.h says.
// `spec` comes from parse_model_spec().
[[nodiscard]] Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, c10::Device device,
                                                        std::int64_t seed);

}  // namespace stowage::executor
