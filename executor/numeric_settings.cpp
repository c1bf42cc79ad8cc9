#include "executor/numeric_settings.h"

#include <ATen/Context.h>

namespace stowage::executor {

NumericSettings::NumericSettings() {
  const at::Context& context = at::globalContext();
  const auto add = [this](auto value) { values_.push_back(static_cast<std::int64_t>(value)); };
  using at::Float32Backend;
  using at::Float32Op;
  add(context.float32Precision(Float32Backend::GENERIC, Float32Op::ALL));
  for (const Float32Backend backend : {Float32Backend::CUDA, Float32Backend::MKLDNN}) {
    for (const Float32Op op :
         {Float32Op::ALL, Float32Op::CONV, Float32Op::RNN, Float32Op::MATMUL}) {
      add(context.float32Precision(backend, op));
    }
  }
  add(context.allowFP16ReductionCuBLAS());
  add(context.allowBF16ReductionCuBLAS());
  add(context.allowFP16AccumulationCuBLAS());
  add(context.allowFP16ReductionCPU());
  add(context.deterministicAlgorithms());
  add(context.deterministicCuDNN());
  add(context.deterministicMkldnn());
  add(context.userEnabledCuDNN());
  add(context.benchmarkCuDNN());
  add(context.userEnabledMkldnn());
  add(context.userEnabledFlashSDP());
  add(context.userEnabledMemEfficientSDP());
  add(context.userEnabledMathSDP());
  add(context.userEnabledCuDNNSDP());
  add(context.allowFP16BF16ReductionMathSDP());
}

}  // namespace stowage::executor
