#include "report/words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <set>

#include "report/answers/name_family.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/plan/optimizer_rules.h"
#include "simulator/plan/parameter_shards.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

// At most 400 characters of a double and its digits.
constexpr std::size_t kMostOfANumber = 512;

}  // namespace

std::string percent_text(double value, int digits, bool sign) {
  std::array<char, kMostOfANumber> text{};
  std::snprintf(text.data(), text.size(), sign ? "%+.*f %%" : "%.*f %%", digits, value);
  std::string percent = text.data();
  const bool is_zero = percent.find_first_of("123456789ni") == std::string::npos;
  if (is_zero && percent.front() == '-') percent.replace(0, 1, sign ? "+" : "");
  return percent;
}

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string exact_bytes(Bytes bytes) {
  return exact_bytes(bytes, ByteUnits::decimal);
}

std::string exact_bytes(Bytes bytes, ByteUnits units) {
  if (bytes > -1000 && bytes < 1000) return format_bytes(bytes);
  return format_bytes(bytes, units) + " (" + with_commas(bytes) + " bytes)";
}

std::string relative(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  const double change = 100.0 * static_cast<double>(part - whole) / static_cast<double>(whole);
  return percent_text(change, 1, true);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return "-";
  return percent_text(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1, false);
}

std::string count_of(std::int64_t number, const std::string& noun) {
  return with_commas(number) + " " + noun + (number == 1 ? "" : "s");
}

bool is_quick(const Trace& trace) {
  const std::vector<std::string>& argv = trace.run.argv;
  return argv.size() > 2 && argv[0] == "stowage" && argv[1] == "profile" &&
         std::find(argv.begin() + 2, argv.end(), "--quick") != argv.end();
}

std::string run_line(const Trace& trace) {
  const Run& run = trace.run;
  std::string line = run.model.empty() ? "(unknown model)" : run.model;
  if (run.batch > 0) line += ", batch " + std::to_string(run.batch);
  if (run.seq > 0) line += ", seq " + std::to_string(run.seq);
  if (!run.dtype.empty()) line += ", " + run.dtype;
  if (!run.autocast.empty()) line += ", autocast to " + run.autocast;
  if (!run.optimizer.empty()) line += ", optimizer " + run.optimizer;
  if (!run.grad_scaler.empty()) line += ", gradient scaler " + run.grad_scaler;
  const std::string parts = simulator::parts_text(simulator::recorded_parts(trace));
  if (!parts.empty()) line += ", " + parts;
  if (is_quick(trace)) line += " (a quick look: its times are of few steps)";
  return line;
}

std::string place(const Moment& moment) {
  std::string text;
  if (moment.op.valid()) {
    text = moment.op_name;
    if (const OpId op = moment.recorded_op; op.valid()) {
      text += " (op " + std::to_string(op.value) + ")";
    }
    text += " in " + moment.layer;
  } else {
    text = "no op, event " + std::to_string(moment.event.value);
  }
  if (moment.phase) text += std::string(", ") + stowage::name_of(*moment.phase);
  return text;
}

namespace {

const char* where_away(simulator::StreamMode mode) {
  if (mode == simulator::StreamMode::forward) return "away between forward and backward";
  return mode == simulator::StreamMode::backward ? "away behind backward"
                                                 : "on the device only around their uses";
}

// "9 modules (embed, layers.[0-3].attn, layers.[0-3].mlp)": a layer of the model has several that
// hold parameters of their own.
std::string modules_text(const Trace& trace, const std::set<LayerId>& layers) {
  constexpr std::size_t kMost = 4;
  std::map<std::string, NameFamily> families;
  for (const LayerId layer : layers) {
    const std::string name = layer_name(trace, layer);
    families[NameFamily::key_of(name)].add(name);
  }
  std::string names;
  std::size_t at = 0;
  for (const auto& [key, family] : families) {
    if (++at > kMost) continue;
    names += (names.empty() ? "" : ", ") + family.text();
  }
  if (at > kMost) names += ", ..";
  return count_of(static_cast<std::int64_t>(layers.size()), "module") + " (" + names + ")";
}

std::string parameters_line(const Trace& trace, const simulator::Plan& plan) {
  if (!plan.parameters || plan.parameters->stream.off()) return "";
  const auto decisions = simulator::resolve_parameters(trace, *plan.parameters);
  if (!decisions) return "";
  std::map<simulator::StreamMode, std::set<LayerId>> layers;
  std::set<LayerId> all;
  for (std::size_t s = 0; s < decisions->shard_of.size(); ++s) {
    const simulator::StreamMode mode = decisions->mode_of(StorageId(s));
    if (mode == simulator::StreamMode::off) continue;
    layers[mode].insert(trace.storages.layer[s]);
    all.insert(trace.storages.layer[s]);
  }
  const auto& prefetch = plan.parameters->prefetch;
  std::string text = "Parameters of " + modules_text(trace, all);
  if (prefetch) {
    text += " in " + count_of(static_cast<std::int64_t>(plan.parameters->shards.size()), "shard");
  }
  text += " stream";
  for (const auto& [mode, of] : layers) {
    text += ", ";
    if (layers.size() > 1) text += std::to_string(of.size()) + " ";
    text += where_away(mode);
  }
  return text + ", prefetch " + (prefetch ? std::to_string(*prefetch) : "automatic") + ".\n";
}

std::string optimizer_line(const simulator::Step& step, const simulator::Plan& plan) {
  const Trace& trace = step.recording();
  const auto decisions = simulator::resolve_optimizer(trace, plan.optimizer);
  if (!decisions) return "";
  const std::vector<LayerId> layer_of = simulator::layers_of_optimizer_state(trace);
  std::set<LayerId> layers;
  for (std::size_t s = 0; s < decisions->state_streams.size(); ++s) {
    if (decisions->state_streams[s]) layers.insert(layer_of[s]);
  }
  const std::vector<LayerId> updated_in = simulator::layers_of_updated_parameters(trace);
  std::set<LayerId> on_host;
  for (const StorageId parameter : step.host_updates()) {
    on_host.insert(updated_in[parameter.index()]);
  }
  std::string text;
  if (!layers.empty()) {
    text += "Optimizer state of " + modules_text(trace, layers) +
            " streams, on the device only for its update.\n";
  }
  if (!on_host.empty()) {
    text += "Parameters of " + modules_text(trace, on_host) +
            " are updated on the host, as their gradients arrive.\n";
  }
  return text;
}

std::string gradients_line(const Trace& trace, const simulator::Plan& plan) {
  const auto decisions = simulator::resolve_gradients(trace, plan.gradients);
  if (!decisions) return "";
  const std::vector<LayerId> layer_of = simulator::layers_of_gradients(trace);
  std::set<LayerId> layers;
  for (std::size_t s = 0; s < decisions->at_home.size(); ++s) {
    // What is kept from step to step stays.
    const bool is_made = trace.storages.alloc_event[s].valid();
    if (decisions->at_home[s] && is_made) layers.insert(layer_of[s]);
  }
  if (layers.empty()) return "";
  return "Gradients of " + modules_text(trace, layers) +
         " leave once they have accumulated, on the device only for what uses them.\n";
}

}  // namespace

std::string streaming_lines(const simulator::Step& step, const simulator::Plan& plan) {
  const Trace& trace = step.recording();
  return parameters_line(trace, plan) + gradients_line(trace, plan) + optimizer_line(step, plan);
}

}  // namespace stowage::report
