// The interface of a plugin: a shared library of the user's own that makes a model, which every
// verb takes as `plugin:LIB.so:option=value`. A whole one is in examples/plugin/.
//
//   class Net final : public stowage::executor::Model { .. };
//   stowage::executor::ModelInfo net_info() { .. }           // its options and default batch
//   stowage::Result<std::unique_ptr<stowage::executor::Model>> make_net(
//       const stowage::executor::ModelSpec& spec, c10::Device device, at::ScalarType dtype,
//       std::int64_t seed) { .. }                             // may return an Error or throw
//   STOWAGE_PLUGIN(net_info, make_net)                        // once in the library
//
// A plugin is linked against stowage::executor (static) and the same LibTorch as the program. What
// little of the executor it uses, stowage::layer above all, it has as its own copy, which finds the
// program's driver through LibTorch (executor/step_driver.h): no program has to export symbols.
// No tensors in static objects or in info(): the device must be there before the first tensor.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>
#include <torch/headeronly/version.h>

#include <cstdint>
#include <memory>

#include "executor/model.h"
#include "traces/build_info.h"

namespace stowage::executor {

// Changes with PluginDescriptor and with every class that it names.
inline constexpr std::int32_t kPluginInterface = 2;

struct PluginDescriptor {
  // Readable whatever the versions are. The rest is used only when these four are the program's.
  std::int32_t interface;
  const char* stowage;
  const char* torch;
  const char* abi;

  // Options with a default are always given to make(), written out; those with an empty one only
  // when the user wrote them. `batch` and `dtype` are not among them. The name is the model's own.
  ModelInfo (*info)();
  // `spec` has every option and the batch; OptionReader (<stowage/plugin.h>) reads it.
  Result<std::unique_ptr<Model>> (*make)(const ModelSpec& spec, c10::Device device,
                                         at::ScalarType dtype, std::int64_t seed);
};

#define STOWAGE_STRINGIFY_(x) #x
#define STOWAGE_STRINGIFY(x) STOWAGE_STRINGIFY_(x)
// What the layout of the standard library's classes depends on.
#ifdef _GLIBCXX_DEBUG
#define STOWAGE_DEBUG_CONTAINERS ", _GLIBCXX_DEBUG"
#else
#define STOWAGE_DEBUG_CONTAINERS ""
#endif
#ifdef _GLIBCXX_USE_CXX11_ABI
#define STOWAGE_COMPILER_ABI                                                     \
  "libstdc++, _GLIBCXX_USE_CXX11_ABI=" STOWAGE_STRINGIFY(_GLIBCXX_USE_CXX11_ABI) \
      STOWAGE_DEBUG_CONTAINERS
#else
#define STOWAGE_COMPILER_ABI "another standard library than libstdc++"
#endif

}  // namespace stowage::executor

#define STOWAGE_PLUGIN(info_function, make_function)                                             \
  extern "C" __attribute__((visibility("default"))) const ::stowage::executor::PluginDescriptor* \
  stowage_plugin() {                                                                             \
    static const ::stowage::executor::PluginDescriptor descriptor{                               \
        ::stowage::executor::kPluginInterface,                                                   \
        ::stowage::kVersion.data(),                                                              \
        TORCH_VERSION,                                                                           \
        STOWAGE_COMPILER_ABI,                                                                    \
        &(info_function),                                                                        \
        &(make_function)};                                                                       \
    return &descriptor;                                                                          \
  }                                                                                              \
  static_assert(true, "a semicolon may follow")
