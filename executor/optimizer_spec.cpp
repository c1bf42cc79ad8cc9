#include "executor/optimizer_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "executor/models/option_reader.h"
#include "executor/option_text.h"

namespace stowage::executor {

namespace {

constexpr std::array kNames = {"none", "sgd", "adam", "adamw"};  // as OptimizerKind

constexpr std::array kDecays = {"none", "linear", "cosine"};  // as Decay
constexpr double kMostSteps = 1e12;

// One option. Its row in kOptions is its place in to_string().
struct Option {
  const char* name;
  const char* values;  // as they are shown
  bool of_sgd_alone;
  // Whether the text is one of the values; it is in the spec then.
  bool (*read)(const std::string& text, OptimizerSpec& spec);
  // Empty: as by default.
  std::string (*written)(const OptimizerSpec& spec);
};

template <double OptimizerSpec::*kField>
bool read_positive(const std::string& text, OptimizerSpec& spec) {
  const std::optional<double> number = number_of(text);
  if (!number || *number <= 0) return false;
  spec.*kField = *number;
  return true;
}

template <double OptimizerSpec::*kField>
bool read_from_zero(const std::string& text, OptimizerSpec& spec) {
  const std::optional<double> number = number_of(text);
  if (!number || *number < 0) return false;
  spec.*kField = *number;
  return true;
}

template <double OptimizerSpec::*kField>
std::string written_number(const OptimizerSpec& spec) {
  return spec.*kField == 0 ? std::string() : number_text(spec.*kField);
}

// A flag that has one value, which is not the default's.
template <bool OptimizerSpec::*kField, const char* kValue>
bool read_flag(const std::string& text, OptimizerSpec& spec) {
  if (text != kValue) return false;
  spec.*kField = true;
  return true;
}

template <bool OptimizerSpec::*kField, const char* kValue>
std::string written_flag(const OptimizerSpec& spec) {
  return spec.*kField ? kValue : std::string();
}

bool read_weight_decay(const std::string& text, OptimizerSpec& spec) {
  const std::optional<double> number = number_of(text);
  if (!number || *number < 0) return false;
  spec.weight_decay = *number;
  return true;
}

std::string written_weight_decay(const OptimizerSpec& spec) {
  return spec.weight_decay ? number_text(*spec.weight_decay) : std::string();
}

template <std::int64_t RateSchedule::*kField>
bool read_steps(const std::string& text, OptimizerSpec& spec) {
  const std::optional<double> number = number_of(text);
  if (!number || *number < 1 || *number > kMostSteps || std::floor(*number) != *number) {
    return false;
  }
  spec.schedule.*kField = static_cast<std::int64_t>(*number);
  return true;
}

template <std::int64_t RateSchedule::*kField>
std::string written_steps(const OptimizerSpec& spec) {
  const std::int64_t steps = spec.schedule.*kField;
  return steps == 0 ? std::string() : std::to_string(steps);
}

bool read_decay(const std::string& text, OptimizerSpec& spec) {
  const auto found = std::find(kDecays.begin() + 1, kDecays.end(), text);
  if (found == kDecays.end()) return false;
  spec.schedule.decay = static_cast<Decay>(found - kDecays.begin());
  return true;
}

std::string written_decay(const OptimizerSpec& spec) {
  const Decay decay = spec.schedule.decay;
  return decay == Decay::none ? "" : kDecays[static_cast<std::size_t>(decay)];
}

constexpr char kFp32[] = "fp32";
constexpr char kBackward[] = "backward";
constexpr char kTrue[] = "true";
constexpr char kFalse[] = "false";
constexpr const char* kAboveZero = "NUMBER above 0";
constexpr const char* kFromZero = "NUMBER from 0 on";
constexpr const char* kSteps = "STEPS";

using Spec = OptimizerSpec;
constexpr Option kOptions[] = {
    {"master", kFp32, false, read_flag<&Spec::master, kFp32>, written_flag<&Spec::master, kFp32>},
    {"update", kBackward, false, read_flag<&Spec::in_backward, kBackward>,
     written_flag<&Spec::in_backward, kBackward>},
    {"lr", kAboveZero, false, read_positive<&Spec::learning_rate>,
     written_number<&Spec::learning_rate>},
    {"clip", kAboveZero, false, read_positive<&Spec::clip>, written_number<&Spec::clip>},
    {"weight_decay", kFromZero, false, read_weight_decay, written_weight_decay},
    {"momentum", kFromZero, true, read_from_zero<&Spec::momentum>, written_number<&Spec::momentum>},
    {"dampening", kFromZero, true, read_from_zero<&Spec::dampening>,
     written_number<&Spec::dampening>},
    {"nesterov", kTrue, true, read_flag<&Spec::nesterov, kTrue>,
     written_flag<&Spec::nesterov, kTrue>},
    {"set_to_none", kFalse, false, read_flag<&Spec::keeps_gradients, kFalse>,
     written_flag<&Spec::keeps_gradients, kFalse>},
    {"warmup", kSteps, false, read_steps<&RateSchedule::warmup>,
     written_steps<&RateSchedule::warmup>},
    {"decay", "linear|cosine", false, read_decay, written_decay},
    {"total", kSteps, false, read_steps<&RateSchedule::total>, written_steps<&RateSchedule::total>},
};

bool has(OptimizerKind kind, const Option& option) {
  return kind == OptimizerKind::sgd || (kind != OptimizerKind::none && !option.of_sgd_alone);
}

// Of `optimizer`, without its options.
Error no_option(const std::string& optimizer, const std::string& option, OptimizerKind kind) {
  const std::string message = "optimizer '" + optimizer + "' has no option '" + option + "'";
  if (kind == OptimizerKind::none) return usage_error(message, "none has no options");
  std::string options;
  for (const Option& each : kOptions) {
    if (!has(kind, each)) continue;
    const bool is_number = each.values == kAboveZero || each.values == kFromZero;
    options += (options.empty() ? "" : ", ") + std::string(each.name) + "=" +
               (is_number ? "NUMBER" : each.values);
  }
  return usage_error(message, "its options are " + options);
}

// Adds what `option` says.
Status add_option(const std::string& option, const std::string& name, OptimizerSpec& spec) {
  for (const Option& each : kOptions) {
    const std::optional<std::string> value = value_of(option, each.name);
    if (!value || !has(spec.kind, each)) continue;
    if (each.read(*value, spec)) return Unit{};
    return usage_error("the optimizer's " + option + " is not allowed",
                       std::string(each.name) + "=" + each.values);
  }
  return no_option(name, option, spec.kind);
}

Status check_together(const OptimizerSpec& spec, const std::string& name) {
  if (spec.clip != 0 && spec.in_backward) {
    return usage_error("optimizer '" + name + "': clip with update=backward",
                       "the norm is of all gradients, which are not there at once then");
  }
  if (spec.keeps_gradients && spec.in_backward) {
    return usage_error("optimizer '" + name + "': set_to_none=false with update=backward",
                       "a gradient is dropped behind its update then; leave one of them out");
  }
  if (spec.momentum == 0 && (spec.dampening != 0 || spec.nesterov)) {
    return usage_error("optimizer '" + name + "': dampening and nesterov are of a momentum",
                       "give momentum=0.9, too");
  }
  if (spec.nesterov && spec.dampening != 0) {
    return usage_error("optimizer '" + name + "': nesterov with dampening",
                       "leave one of them out");
  }
  const RateSchedule& schedule = spec.schedule;
  if ((schedule.decay == Decay::none) != (schedule.total == 0)) {
    return usage_error("optimizer '" + name + "': decay and total go together",
                       "decay=cosine,total=1000");
  }
  if (schedule.total != 0 && schedule.warmup >= schedule.total) {
    return usage_error("optimizer '" + name +
                           "': the warm-up takes all of total=" + std::to_string(schedule.total),
                       "total counts its steps, too");
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
  if (Status status = check_together(spec, name); !status) return status.error();
  return spec;
}

std::string to_string(const OptimizerSpec& spec) {
  std::string text = kNames[static_cast<std::size_t>(spec.kind)];
  char before = ':';
  for (const Option& each : kOptions) {
    const std::string value = each.written(spec);
    if (value.empty()) continue;
    text += before + std::string(each.name) + "=" + value;
    before = ',';
  }
  return text;
}

}  // namespace stowage::executor
