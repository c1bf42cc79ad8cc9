#include "executor/optimizer_spec.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "executor/models/option_reader.h"
#include "executor/option_text.h"

namespace stowage::executor {

namespace {

constexpr std::array kNames = {"none", "sgd", "adam", "adamw"};  // as OptimizerKind
constexpr const char* kMaster = "master=fp32";
constexpr const char* kInBackward = "update=backward";
constexpr const char* kRate = "lr";
constexpr const char* kClip = "clip";

// Of `optimizer`, without its options.
Error no_option(const std::string& optimizer, const std::string& option, OptimizerKind kind) {
  const std::string message = "optimizer '" + optimizer + "' has no option '" + option + "'";
  if (kind == OptimizerKind::none) return usage_error(message, "none has no options");
  std::string options = std::string(kInBackward) + ", lr=NUMBER and clip=NORM";
  if (kind != OptimizerKind::sgd) options = std::string(kMaster) + ", " + options;
  return usage_error(message, "its options are " + options);
}

Result<double> positive(const std::string& option, const std::string& value) {
  const std::optional<double> number = number_of(value);
  if (number && *number > 0) return *number;
  return usage_error("the optimizer's " + option + " is no number above 0",
                     "write it as in lr=0.001");
}

// Adds what `option` says.
Status add_option(const std::string& option, const std::string& name, OptimizerSpec& spec) {
  const bool is_adam = spec.kind == OptimizerKind::adam || spec.kind == OptimizerKind::adamw;
  if (spec.kind == OptimizerKind::none) return no_option(name, option, spec.kind);
  if (option == kMaster && is_adam) {
    spec.master = true;
  } else if (option == kInBackward) {
    spec.in_backward = true;
  } else if (const auto rate = value_of(option, kRate)) {
    const Result<double> number = positive(option, *rate);
    if (!number) return number.error();
    spec.learning_rate = *number;
  } else if (const auto norm = value_of(option, kClip)) {
    const Result<double> number = positive(option, *norm);
    if (!number) return number.error();
    spec.clip = *number;
  } else {
    return no_option(name, option, spec.kind);
  }
  return Unit{};
}

}  // namespace

Result<OptimizerSpec> parse_optimizer(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return usage_error("unknown optimizer '" + name + "'",
                       suggestion(name, {kNames.begin(), kNames.end()}));
  }
  OptimizerSpec spec(static_cast<OptimizerKind>(found - kNames.begin()));
  if (colon == std::string::npos) return spec;
  std::vector<std::string> options = option_list(text.substr(colon + 1));
  if (options.empty()) options.emplace_back();
  for (const std::string& option : options) {
    if (Status status = add_option(option, name, spec); !status) return status.error();
  }
  if (spec.clip != 0 && spec.in_backward) {
    return usage_error("optimizer '" + name + "': clip with update=backward",
                       "the norm is of all gradients, which are not there at once then");
  }
  return spec;
}

std::string to_string(const OptimizerSpec& spec) {
  std::string text = kNames[static_cast<std::size_t>(spec.kind)];
  char before = ':';
  const auto add = [&](const std::string& option) {
    text += before + option;
    before = ',';
  };
  if (spec.master) add(kMaster);
  if (spec.in_backward) add(kInBackward);
  if (spec.learning_rate != 0) add(std::string(kRate) + "=" + number_text(spec.learning_rate));
  if (spec.clip != 0) add(std::string(kClip) + "=" + number_text(spec.clip));
  return text;
}

}  // namespace stowage::executor
