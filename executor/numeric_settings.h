// NumericSettings: what PyTorch keeps for the whole process that decides which kernels run, and so
// the bits: precision of fp32 products, reductions in less, determinism, kernels of attention.
#pragma once

#include <cstdint>
#include <vector>

namespace stowage::executor {

class NumericSettings {
 public:
  // As they are now.
  NumericSettings();
  bool operator==(const NumericSettings&) const = default;

 private:
  std::vector<std::int64_t> values_;
};

}  // namespace stowage::executor
