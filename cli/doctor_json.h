// "stowage-doctor/1", and what `stowage-torch doctor --json` says.
#pragma once

#include <optional>
#include <string>

#include "cli/machine.h"

namespace stowage::cli {

// The answer of stowage-torch, as far as the text report needs it. Absent = it does not say.
struct TorchFacts {
  bool answered = false;  // it ran and printed JSON
  std::string text;       // its JSON, to be passed on
  std::string version;    // of LibTorch
  std::optional<bool> cuda_built;
  std::optional<bool> cupti;
};

// Total: any text gives facts; what is no JSON object gives `answered` false.
[[nodiscard]] TorchFacts read_torch_facts(const std::string& text);

struct Doctor {
  Machine machine;
  std::string torch_command;  // path, or empty
  TorchFacts torch;
};

[[nodiscard]] std::string doctor_json(const Doctor& doctor);

}  // namespace stowage::cli
