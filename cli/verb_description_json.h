// A VerbDescription between stowage-torch, which has the verbs that run a model, and stowage.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/verb_description.h"

namespace stowage::cli {

// `stowage-verb/1`, one line.
[[nodiscard]] std::string verb_description_json(const VerbDescription& description);

// Empty: no such text, such as the answer of an older stowage-torch.
[[nodiscard]] std::optional<VerbDescription> read_verb_description(std::string_view text);

}  // namespace stowage::cli
