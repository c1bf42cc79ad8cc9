#include "executor/grad_scaler.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <limits>
#include <optional>

#include "executor/models/option_reader.h"
#include "executor/option_text.h"

namespace stowage::executor {

namespace {

constexpr double kMostInterval = 2147483647;  // the counter's

struct Range {
  const char* key;
  double above;  // not this itself
  double most;
  const char* words;
};
constexpr Range kInit{"init", 0, std::numeric_limits<float>::max(), "a number above 0"};
constexpr Range kGrowth{"growth", 1, 1e6, "a number above 1"};
constexpr Range kBackoff{"backoff", 0, 1, "a number above 0 and below 1"};
constexpr Range kInterval{"interval", 0, kMostInterval, "a whole number from 1 on"};

// What the option says, if it is of that key.
Result<std::optional<double>> read(const std::string& option, const Range& range) {
  const std::optional<std::string> value = value_of(option, range.key);
  if (!value) return std::optional<double>();
  const std::optional<double> number = number_of(*value);
  const bool is_whole = &range != &kInterval || (number && std::floor(*number) == *number);
  const bool is_below = &range != &kBackoff || (number && *number < 1);
  if (number && is_whole && is_below && *number > range.above && *number <= range.most &&
      static_cast<float>(*number) > 0) {
    return number;
  }
  return usage_error("the gradient scaler's " + option + " is not allowed", range.words);
}

Status add_option(const std::string& option, GradScalerSpec& spec) {
  double interval = 0;
  struct Field {
    const Range& range;
    double& value;
  };
  for (const Field& field : {Field{kInit, spec.init}, Field{kGrowth, spec.growth},
                             Field{kBackoff, spec.backoff}, Field{kInterval, interval}}) {
    const Result<std::optional<double>> value = read(option, field.range);
    if (!value) return value.error();
    if (!*value) continue;
    field.value = **value;
    if (interval > 0) spec.interval = static_cast<std::int64_t>(interval);
    return Unit{};
  }
  return usage_error("the gradient scaler has no option '" + option + "'",
                     "on, or some of init=..,growth=..,backoff=..,interval=..");
}

}  // namespace

Result<GradScalerSpec> parse_grad_scaler(const std::string& text) {
  GradScalerSpec spec;
  if (text == "on") return spec;
  std::vector<std::string> options = option_list(text);
  if (options.empty()) options.emplace_back();
  for (const std::string& option : options) {
    if (Status status = add_option(option, spec); !status) return status.error();
  }
  return spec;
}

std::string to_string(const GradScalerSpec& spec) {
  return "init=" + number_text(spec.init) + ",growth=" + number_text(spec.growth) +
         ",backoff=" + number_text(spec.backoff) + ",interval=" + std::to_string(spec.interval);
}

GradScaler::GradScaler(const GradScalerSpec& spec, c10::Device device)
    : spec_(spec),
      scale_(at::full({}, spec.init, at::TensorOptions(at::kFloat).device(device))),
      growth_tracker_(at::zeros({}, at::TensorOptions(at::kInt).device(device))) {}

bool GradScaler::unscale(const std::vector<NamedTensor>& parameters) {
  const at::NoGradGuard no_graph;
  // As PyTorch has it: the reciprocal is computed in fp64.
  const at::Tensor inverse = scale_.to(at::kDouble).reciprocal().to(at::kFloat);
  found_inf_ = at::zeros({}, scale_.options());
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& gradient = parameter.tensor.grad();
    if (!gradient.defined()) continue;
    at::_amp_foreach_non_finite_check_and_unscale_({gradient}, found_inf_, inverse);
  }
  return found_inf_.item<float>() != 0;
}

void GradScaler::update() {
  const at::NoGradGuard no_graph;
  at::_amp_update_scale_(scale_, growth_tracker_, found_inf_, spec_.growth, spec_.backoff,
                         spec_.interval);
  found_inf_.reset();
}

std::vector<NamedTensor> GradScaler::state() const {
  return {{"grad_scaler.scale", scale_}, {"grad_scaler.growth_tracker", growth_tracker_}};
}

}  // namespace stowage::executor
