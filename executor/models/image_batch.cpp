#include "executor/models/image_batch.h"

#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>

#include "executor/models/parameter_set.h"

namespace stowage::executor {

ImageBatch::ImageBatch(const ImageTask& task, const at::TensorOptions& options)
    : classes_(task.classes),
      images_(at::empty({task.batch, kColours, task.image, task.image}, options)) {
  if (!task.cross_entropy) return;
  targets_ =
      at::empty({task.batch}, options.dtype(at::kLong).memory_format(at::MemoryFormat::Contiguous));
}

std::vector<NamedTensor> ImageBatch::inputs() const {
  if (!targets_.defined()) return {{"images", images_}};
  return {{"images", images_}, {"targets", targets_}};
}

void ImageBatch::load(std::int64_t seed) {
  const at::Generator generator = make_generator(images_.device(), seed);
  // A view that is contiguous in either format.
  at::Tensor flat = images_.is_contiguous() ? images_ : images_.permute({0, 2, 3, 1});
  flat.normal_(0.0, 1.0, generator);
  if (targets_.defined()) targets_.random_(0, classes_, generator);
}

at::Tensor ImageBatch::loss(const at::Tensor& logits, const at::Tensor& targets) {
  return targets.defined() ? at::cross_entropy_loss(logits, targets) : at::mean(logits);
}

}  // namespace stowage::executor
