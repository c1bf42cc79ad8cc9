// ResNet of bottleneck blocks (He et al. 2015) as torchvision 0.26 trains it: the stride in the 3x3
// convolution ("v1.5"), no biases but the classifier's, relu and the residual sum in place.
// Parameters and buffers have torchvision's names and order. Layers: `stem`, `layerS.N` with
// `layerS.N.conv1`, `.conv2` and `.conv3` inside, `head`, `loss`. A convolution's layer has its
// batch norm and relu; `.conv3` has the shortcut and the residual sum, too, which write its result
// in place: a boundary between them would make autograd copy.
//
// Batch norms use the batch's own statistics, so losses and gradients do not depend on the running
// ones. Those are buffers that forward writes in place, once a step: a layer of this model that ran
// a second time in a step (recompute) would write them twice.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/models/image_batch.h"
#include "executor/models/option_reader.h"
#include "executor/models/parameter_set.h"

namespace stowage::executor {

struct ResNetConfig {
  std::vector<std::int64_t> blocks{3, 4, 6, 3};  // of each of the four stages
  std::int64_t width = 64;                       // channels behind the stem
  bool channels_last = false;                    // images and kernels; the rest follows
  ImageTask task;

  // As they stand in a spec.
  [[nodiscard]] std::map<std::string, std::string> options() const;
  [[nodiscard]] std::int64_t parameter_count() const;
  // Parameters, gradients and what the blocks hand on: what a step needs at least.
  [[nodiscard]] double floor_bytes() const;
};

[[nodiscard]] ModelInfo resnet50_info();
[[nodiscard]] ResNetConfig read_resnet(OptionReader& reader, std::int64_t batch);

class ResNet final : public Model {
 public:
  ResNet(const ResNetConfig& config, c10::Device device, at::ScalarType dtype, std::int64_t seed);

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return buffers_; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override { return batch_.inputs(); }
  void load_batch(std::int64_t seed) override { batch_.load(seed); }
  BackwardRoot forward() override;

 private:
  // A convolution and its batch norm.
  struct Unit {
    at::Tensor kernels;
    std::int64_t stride;
    Affine norm;
    at::Tensor mean, variance, batches;  // running
  };
  struct Block {
    std::string path;
    Unit first, second, third;
    std::optional<Unit> shortcut;  // where the identity does not fit
  };

  [[nodiscard]] Unit make_unit(ParameterSet& set, const std::string& convolution,
                               const std::string& norm, std::int64_t in, std::int64_t out,
                               std::int64_t edge, std::int64_t stride);
  [[nodiscard]] static at::Tensor apply(const Unit& unit, const at::Tensor& x);
  [[nodiscard]] static at::Tensor block(const Block& block, const at::Tensor& x);

  at::MemoryFormat format_;
  Unit stem_;
  std::vector<Block> blocks_;
  Affine classifier_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  ImageBatch batch_;
};

}  // namespace stowage::executor
