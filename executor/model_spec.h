// A model spec as users write it: "gpt2:layers=6,width=256,seq=256,vocab=1024", plus the flags that
// may also stand in it (--batch, --seq, --dtype, --optimizer). A model of the user's own names its
// file: "plugin:./libnet.so:width=256" (executor/plugin.h), "script:net.pt:shape=8x3x224x224"
// (executor/models/script.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "traces/result.h"

namespace stowage::executor {

struct ModelSpec {
  std::string name;  // of a file "plugin:FILE" or "script:FILE", else a built-in model
  std::map<std::string, std::string> options;  // as written; unknown ones are refused by make_model
  std::int64_t batch = 0;                      // 0 = the model's default
  std::string dtype = "fp32";

  // The canonical text "name:key=value,..", keys sorted, without batch and dtype.
  [[nodiscard]] std::string text() const;
  // The file of a model that comes from one, else empty.
  [[nodiscard]] std::string file() const;
  [[nodiscard]] bool is_plugin() const;
  [[nodiscard]] bool is_script() const;
};

// Syntax only; `batch` and `dtype` among the options go into their own fields. Errors (usage):
// empty name, option without "=", the same option twice, a batch that is no positive number.
// A file's name ends at the first colon whose next word could be an option: it has no dot or slash.
[[nodiscard]] Result<ModelSpec> parse_model_spec(const std::string& text);

struct ModelOption {
  std::string name;
  std::string default_value;
  std::string help;
  // Its default is not written out: the option came when plans, baselines and kept references named
  // the model without it, and their step is still the same one.
  bool is_silent_by_default = false;
};

struct ModelInfo {
  std::string name;
  std::string summary;
  std::vector<ModelOption> options;
  std::int64_t default_batch = 0;
};

// The built-in models with their options.
[[nodiscard]] const std::vector<ModelInfo>& models();

// What users bring in files of their own: "plugin:LIB.so" and "script:FILE.pt". A script's options
// are the same for all, a plugin's are its own (describe_model).
[[nodiscard]] const std::vector<ModelInfo>& file_models();

// The model of a spec with its options. Errors: unknown model (usage); a plugin or script is
// loaded, and what is wrong with its file is said (executor/plugin_library.h,
// executor/models/script.h).
[[nodiscard]] Result<ModelInfo> describe_model(const ModelSpec& spec);

// The spec with every option written out (but for ModelOption::is_silent_by_default) and the batch
// set, so that two spellings of one model compare equal. Errors (usage): unknown model, option or
// dtype (with the nearest one), bad value.
[[nodiscard]] Result<ModelSpec> complete_model_spec(const ModelSpec& spec);

}  // namespace stowage::executor
