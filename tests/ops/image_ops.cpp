// Convolutions, pools, resampling and padding of signals, images and volumes.
#include <ATen/Functions.h>

#include <string>
#include <tuple>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

Operand signal() {
  return {{2, 4, 12}, kAny};
}
Operand image() {
  return {{2, 4, 6, 8}, kAny};
}
Operand volume() {
  return {{2, 4, 4, 6, 4}, kAny};
}

std::vector<Op> convolutions() {
  return {
      op("nn.functional.conv1d", {signal(), of({6, 2, 3}), of({6})},
         [](const T& a, const T& b, const T& c) { return at::conv1d(a, b, c, 2, 1, 1, 2); })
          .not_as("scalar"),
      op("nn.functional.conv2d", {image(), of({6, 4, 3, 2}), of({6})},
         [](const T& a, const T& b, const T& c) {
           return at::conv2d(a, b, c, {2, 1}, {1, 0}, {1, 2});
         })
          .not_as("scalar"),
      op("nn.functional.conv3d", {volume(), of({3, 4, 2, 3, 2}), of({3})},
         [](const T& a, const T& b, const T& c) { return at::conv3d(a, b, c, 1, 1); })
          .not_as("scalar"),
      op("nn.functional.conv_transpose1d", {signal(), of({4, 3, 3}), of({6})},
         [](const T& a, const T& b, const T& c) {
           return at::conv_transpose1d(a, b, c, 2, 1, 1, 2);
         })
          .not_as("scalar"),
      op("nn.functional.conv_transpose2d", {image(), of({4, 3, 3, 2}), of({3})},
         [](const T& a, const T& b, const T& c) { return at::conv_transpose2d(a, b, c, 2, 1); })
          .not_as("scalar"),
      op("nn.functional.conv_transpose3d", {volume(), of({4, 3, 2, 2, 2}), of({3})},
         [](const T& a, const T& b, const T& c) { return at::conv_transpose3d(a, b, c, 2); })
          .not_as("scalar"),
  };
}

std::vector<Op> averages() {
  return {
      op("nn.functional.avg_pool1d", {signal()},
         [](const T& a) { return at::avg_pool1d(a, 3, 2, 1); })
          .not_as("scalar"),
      op("nn.functional.avg_pool2d", {image()},
         [](const T& a) {
           return at::avg_pool2d(a, {3, 2}, 2, 1, true, false);
         })
          .not_as("scalar"),
      op("nn.functional.avg_pool3d", {volume()}, [](const T& a) { return at::avg_pool3d(a, 2, 1); })
          .not_as("scalar"),
      op("nn.functional.adaptive_avg_pool1d", {signal()},
         [](const T& a) { return at::adaptive_avg_pool1d(a, 5); })
          .not_as("scalar"),
      op("nn.functional.adaptive_avg_pool2d", {image()},
         [](const T& a) {
           return at::adaptive_avg_pool2d(a, {4, 3});
         })
          .not_as("scalar"),
      op("nn.functional.adaptive_avg_pool3d", {volume()},
         [](const T& a) {
           return at::adaptive_avg_pool3d(a, {2, 4, 3});
         })
          .not_as("scalar"),
      op("nn.functional.interpolate.area", {image()},
         [](const T& a) {
           return at::adaptive_avg_pool2d(a, {9, 5});
         })
          .not_as("scalar"),
  };
}

std::vector<Op> maxima() {
  return {
      op("nn.functional.max_pool1d", {signal()},
         [](const T& a) { return at::max_pool1d(a, 3, 2, 1); })
          .not_as("scalar"),
      op("nn.functional.max_pool2d", {image()},
         [](const T& a) {
           return at::max_pool2d(a, {3, 2}, 2, 1);
         })
          .not_as("scalar"),
      op("nn.functional.max_pool3d", {volume()}, [](const T& a) { return at::max_pool3d(a, 2); })
          .not_as("scalar"),
      op("max_pool2d_with_indices_backward", {image(), of({2, 4, 3, 4})},
         [](const T& a, const T& b) {
           const T indices = std::get<1>(at::max_pool2d_with_indices(a.detach(), 2));
           return at::max_pool2d_with_indices_backward(b, a, 2, 2, 0, 1, false, indices);
         })
          .not_as("scalar"),
      op("nn.functional.adaptive_max_pool1d", {signal()},
         [](const T& a) { return at::adaptive_max_pool1d(a, 5); })
          .not_as("scalar"),
      op("nn.functional.adaptive_max_pool2d", {image()},
         [](const T& a) {
           return at::adaptive_max_pool2d(a, {4, 3});
         })
          .not_as("scalar"),
      op("nn.functional.adaptive_max_pool3d", {volume()},
         [](const T& a) {
           return at::adaptive_max_pool3d(a, {2, 4, 3});
         })
          .not_as("scalar"),
      op("nn.functional.fractional_max_pool2d", {image()},
         [](const T& a) {
           return at::fractional_max_pool2d(a, {2, 2}, {4, 5}, at::rand({2, 4, 2}, a.options()));
         })
          .not_as("scalar"),
      op("nn.functional.fractional_max_pool3d", {volume()},
         [](const T& a) {
           return at::fractional_max_pool3d(a, {2, 2, 2}, {2, 4, 2},
                                            at::rand({2, 4, 3}, a.options()));
         })
          .not_as("scalar"),
      op("nn.functional.max_unpool1d", {of({2, 4, 6})},
         [](const T& a) {
           const T indices = numbers(a, {1, 1, 6}, 12).expand({2, 4, 6}).unsqueeze(2);
           return at::max_unpool2d(a.unsqueeze(2), indices, {1, 12}).squeeze(2);
         })
          .not_as("empty scalar"),
      op("nn.functional.max_unpool2d", {of({2, 4, 3, 4})},
         [](const T& a) {
           return at::max_unpool2d(a, numbers(a, {2, 4, 3, 4}, 48), {6, 8});
         })
          .not_as("empty scalar"),
      op("nn.functional.max_unpool3d", {of({2, 4, 2, 3, 2})},
         [](const T& a) {
           return at::max_unpool3d(a, numbers(a, {2, 4, 2, 3, 2}, 96), {4, 6, 4}, {2, 2, 2},
                                   {0, 0, 0});
         })
          .not_as("empty scalar"),
  };
}

std::vector<Op> resampled() {
  return {
      op("nn.functional.interpolate.nearest", {signal()},
         [](const T& a) { return at::upsample_nearest1d(a, {7}); })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.interpolate.nearest-exact", {image()},
         [](const T& a) {
           return at::_upsample_nearest_exact2d(a, {7, 11});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.interpolate.linear", {signal()},
         [](const T& a) { return at::upsample_linear1d(a, {17}, false); })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.interpolate.bilinear", {image()},
         [](const T& a) {
           return at::upsample_bilinear2d(a, {7, 11}, true);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.interpolate.bicubic", {image()},
         [](const T& a) {
           return at::upsample_bicubic2d(a, {7, 11}, false);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.interpolate.trilinear", {volume()},
         [](const T& a) {
           return at::upsample_trilinear3d(a, {5, 7, 3}, false);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.upsample_nearest", {image()},
         [](const T& a) {
           return at::upsample_nearest2d(a, {12, 16});
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.upsample_bilinear", {image()},
         [](const T& a) {
           return at::upsample_bilinear2d(a, {12, 16}, false);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("_upsample_bilinear2d_aa", {image()},
         [](const T& a) {
           return at::_upsample_bilinear2d_aa(a, {4, 5}, false);
         })
          .saves_nothing()
          .not_as("scalar"),
      op("nn.functional.grid_sample", {image(), of({2, 3, 5, 2}, kInside)},
         [](const T& a, const T& b) { return at::grid_sampler(a, b, 2, 1, false); })
          .not_as("scalar"),
      op("grid_sampler_2d", {image(), of({2, 3, 5, 2}, kInside)},
         [](const T& a, const T& b) { return at::grid_sampler_2d(a, b, 0, 0, true); })
          .not_as("scalar"),
      op("grid_sampler_3d", {volume(), of({2, 2, 3, 2, 3}, kInside)},
         [](const T& a, const T& b) { return at::grid_sampler_3d(a, b, 0, 0, true); })
          .not_as("scalar"),
  };
}

Op padded(const char* name, const char* mode, std::vector<std::int64_t> sides) {
  return op(std::string("nn.functional.pad.") + name, {image()},
            [mode, sides](const T& a) { return at::pad(a, sides, mode); });
}

std::vector<Op> paddings() {
  return {
      padded("constant", "constant", {1, 2, 0, 3}).saves_nothing().not_as("scalar"),
      padded("reflect", "reflect", {1, 2, 0, 3}).not_as("scalar"),
      padded("replicate", "replicate", {1, 2, 0, 3}).not_as("scalar"),
      padded("replicate_negative", "replicate", {-1, 2, 0, -1}).not_as("scalar"),
      padded("circular", "circular", {1, 2, 0, 3}).saves_nothing().not_as("scalar"),
  };
}

}  // namespace

std::vector<Op> image_ops() {
  std::vector<Op> all = convolutions();
  for (auto* const more : {&averages, &maxima, &resampled, &paddings}) {
    for (Op& each : more()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stowage::ops
