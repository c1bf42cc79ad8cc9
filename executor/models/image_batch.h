// What the image classifiers share: a batch of square images with labels, and the loss against
// them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/TensorOptions.h>

#include <cstdint>
#include <vector>

#include "executor/model.h"

namespace stowage::executor {

inline constexpr std::int64_t kColours = 3;  // channels of an image

struct ImageTask {
  std::int64_t image = 224;  // pixels of an edge; three colours
  std::int64_t classes = 1000;
  std::int64_t batch = 32;
  bool cross_entropy = true;  // else the mean of the logits, and there are no targets
};

class ImageBatch {
 public:
  // Images in the memory format of `options`.
  ImageBatch(const ImageTask& task, const at::TensorOptions& options);

  [[nodiscard]] const at::Tensor& images() const { return images_; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const;
  // Numbers are drawn as they lie in memory: another memory format gives other images.
  void load(std::int64_t seed);
  // `targets`: of these samples; undefined: the mean of the logits.
  [[nodiscard]] static at::Tensor loss(const at::Tensor& logits, const at::Tensor& targets);
  [[nodiscard]] const at::Tensor& targets() const { return targets_; }  // may be undefined

 private:
  std::int64_t classes_;
  at::Tensor images_;   // [batch, 3, image, image]
  at::Tensor targets_;  // [batch]; only for cross entropy
};

}  // namespace stowage::executor
