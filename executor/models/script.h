// A TorchScript module of the user's as a model: `script:FILE.pt:shape=8x3x224x224`. Parameters are
// the file's (the seed draws batches and dropout only), layers the module's submodules
// (script_layers.h). Loading and running a script runs its code.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "executor/model.h"
#include "executor/model_spec.h"
#include "executor/models/option_reader.h"
#include "traces/result.h"

namespace stowage::executor {

// One input tensor of the module.
struct ScriptInput {
  std::vector<std::int64_t> shape;  // of the whole batch
  std::int64_t below = 0;           // int64 numbers from 0 to below - 1; 0 = normal in the dtype
};

struct ScriptConfig {
  std::string file;
  std::vector<ScriptInput> inputs;
  std::string loss = "mean";  // mean, sum or ones; not used when the module returns one number
  bool train = true;          // else eval
};

[[nodiscard]] ModelInfo script_info();

// The same of one file, with its number of parameters. Loads it. Errors: as make_script_model().
[[nodiscard]] Result<ModelInfo> describe_script(const ModelSpec& spec);

// Reads the options; the file is not looked at. Mistakes go to the reader.
[[nodiscard]] ScriptConfig read_script(OptionReader& reader, const ModelSpec& spec);

// complete_model_spec() of "script:FILE:..": the batch is the first input's first dimension. Errors
// (usage): an unknown option, no shape, a shape that is none, a batch that contradicts it.
[[nodiscard]] Result<ModelSpec> complete_script_spec(const ModelSpec& spec);

// The model of a complete spec. Errors (bad_input, with the file): it is not there or not
// TorchScript, and what check_model() says. Inputs that the module cannot take show in forward(),
// as c10::Error.
[[nodiscard]] Result<std::unique_ptr<Model>> make_script_model(const ModelSpec& spec,
                                                               c10::Device device,
                                                               at::ScalarType dtype,
                                                               std::int64_t seed);

}  // namespace stowage::executor
