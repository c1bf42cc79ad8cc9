// A plugin of another build: one of the four versions of its descriptor is not the program's. With
// MISSING_SYMBOL it also needs a function that the program does not have.
#include "executor/plugin.h"

using stowage::executor::kPluginInterface;
using stowage::executor::PluginDescriptor;

extern "C" void stowage_test_missing_symbol();

extern "C" const PluginDescriptor* stowage_plugin() {
  static PluginDescriptor plugin{kPluginInterface, stowage::kVersion.data(),
                                 TORCH_VERSION,    STOWAGE_COMPILER_ABI,
                                 nullptr,          nullptr};
#ifdef OTHER_interface
  plugin.interface = kPluginInterface + 1;
#elif defined(OTHER_stowage)
  plugin.stowage = "0.0.7";
#elif defined(OTHER_torch)
  plugin.torch = "2.3.1";
#else
  plugin.abi = "libstdc++, _GLIBCXX_USE_CXX11_ABI=0";
#endif
#ifdef MISSING_SYMBOL
  plugin.info = [] {
    stowage_test_missing_symbol();
    return stowage::executor::ModelInfo{};
  };
#endif
  return &plugin;
}
