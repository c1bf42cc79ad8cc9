// The models by name: models(), complete_model_spec() and make_model().
#include <c10/util/Exception.h>

#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/attribution_spec.h"
#include "executor/device/host_memory.h"
#include "executor/model.h"
#include "executor/models/gpt2.h"
#include "executor/models/llama3.h"
#include "executor/models/mlp.h"
#include "executor/models/option_reader.h"
#include "executor/models/resnet.h"
#include "executor/models/script.h"
#include "executor/models/vit.h"
#include "executor/plugin_library.h"

namespace stowage::executor {

namespace {

// A built-in model whose options are read.
struct Configured {
  std::map<std::string, std::string> options;  // every one written out
  double floor_bytes = 0;                      // in fp32
  std::function<std::unique_ptr<Model>(c10::Device, at::ScalarType, std::int64_t seed)> make;
};

template <class Net, class Config>
Configured configured(const Config& config) {
  return {config.options(), config.floor_bytes(),
          [config](c10::Device device, at::ScalarType dtype, std::int64_t seed) {
            return std::make_unique<Net>(config, device, dtype, seed);
          }};
}

struct BuiltIn {
  ModelInfo info;
  Configured (*read)(OptionReader& reader, std::int64_t batch);
};

const std::vector<BuiltIn>& built_in() {
  static const std::vector<BuiltIn> all{
      {gpt2_info(),
       [](OptionReader& r, std::int64_t b) { return configured<Gpt2>(read_gpt2(r, b)); }},
      {llama3_info(),
       [](OptionReader& r, std::int64_t b) { return configured<Llama3>(read_llama3(r, b)); }},
      {mlp_info(), [](OptionReader& r, std::int64_t b) { return configured<Mlp>(read_mlp(r, b)); }},
      {resnet50_info(),
       [](OptionReader& r, std::int64_t b) { return configured<ResNet>(read_resnet(r, b)); }},
      {vit_info(),
       [](OptionReader& r, std::int64_t b) { return configured<Vit>(read_vit(r, b)); }}};
  return all;
}

struct Resolved {
  ModelSpec spec;  // complete
  Configured model;
  at::ScalarType dtype = at::kFloat;
};

Result<at::ScalarType> read_dtype(const std::string& dtype) {
  if (dtype == "fp32" || dtype == "tf32") return at::kFloat;
  if (dtype == "bf16") return at::kBFloat16;
  if (dtype == "amp") {
    return usage_error("dtype amp is not supported yet", "use fp32, tf32 or bf16");
  }
  return usage_error("unknown dtype '" + dtype + "'",
                     suggestion(dtype, {"fp32", "tf32", "bf16", "amp"}));
}

const BuiltIn* find_model(const std::string& name) {
  for (const BuiltIn& each : built_in()) {
    if (each.info.name == name) return &each;
  }
  return nullptr;
}

Error unknown_model(const std::string& name) {
  std::vector<std::string> names;
  for (const ModelInfo& each : models()) names.push_back(each.name);
  const std::string near = suggestion(name, names);
  return usage_error("unknown model '" + name + "'",
                     near + (near.ends_with("?") ? " A" : "; a") +
                         " model of your own is script:FILE.pt or plugin:LIB.so");
}

// The arithmetic, and that the batch is one.
Result<at::ScalarType> check_common(const ModelSpec& spec) {
  constexpr std::int64_t kMostBatch = 1'000'000'000;
  if (spec.batch < 0 || spec.batch > kMostBatch) {
    return usage_error("batch " + std::to_string(spec.batch) + " is not allowed",
                       "a whole number from 1 to " + std::to_string(kMostBatch));
  }
  return read_dtype(spec.dtype);
}

Status check_device(const ModelSpec& spec, c10::Device device) {
  if (!device.is_cpu() || spec.dtype != "tf32") return Unit{};
  return usage_error("dtype tf32 needs a CUDA device", "use fp32 or bf16");
}

Result<Resolved> resolve(const ModelSpec& spec) {
  const BuiltIn* const found = find_model(spec.name);
  if (found == nullptr) return unknown_model(spec.name);
  Result<at::ScalarType> dtype = check_common(spec);
  if (!dtype) return dtype.error();

  Resolved resolved{.spec = spec, .model = {}, .dtype = *dtype};
  if (spec.batch == 0) resolved.spec.batch = found->info.default_batch;
  OptionReader reader(found->info, spec);
  resolved.model = found->read(reader, resolved.spec.batch);
  if (reader.error()) return *reader.error();
  resolved.spec.options = resolved.model.options;
  for (const ModelOption& option : found->info.options) {
    if (!option.is_silent_by_default) continue;
    const auto written = resolved.spec.options.find(option.name);
    if (written != resolved.spec.options.end() && written->second == option.default_value) {
      resolved.spec.options.erase(written);
    }
  }
  return resolved;
}

Error does_not_fit(const ModelSpec& spec, const std::string& why) {
  return Error{.code = ErrorCode::environment,
               .message = "model '" + spec.text() + "' with batch " + std::to_string(spec.batch) +
                          " does not fit into this machine's memory: " + why,
               .file = {},
               .pointer = {},
               .hint = "fewer layers, a smaller width, or a smaller --batch"};
}

std::string whole_number(double bytes) {
  return bytes < 1e18 ? std::to_string(static_cast<std::int64_t>(bytes)) : "more than 10^18";
}

}  // namespace

const std::vector<ModelInfo>& models() {
  static const std::vector<ModelInfo> all = [] {
    std::vector<ModelInfo> infos;
    for (const BuiltIn& each : built_in()) infos.push_back(each.info);
    return infos;
  }();
  return all;
}

const std::vector<ModelInfo>& file_models() {
  static const std::vector<ModelInfo> all{
      {.name = "plugin:LIB.so",
       .summary = "a model of your own in a shared library, with options of its own",
       .options = {}},
      script_info()};
  return all;
}

Result<ModelInfo> describe_model(const ModelSpec& spec) {
  if (spec.is_plugin()) return plugin_info(spec);
  if (spec.is_script()) return describe_script(spec);
  if (const BuiltIn* const found = find_model(spec.name)) return found->info;
  return unknown_model(spec.name);
}

Result<ModelSpec> complete_model_spec(const ModelSpec& spec) {
  if (const std::string attributed = attribution_of(spec); !attributed.empty()) {
    if (const auto layers = parse_attribution(attributed); !layers) return layers.error();
    if (spec.is_script()) {
      return usage_error("a TorchScript model has no layers that could be attributed",
                         "stowage.Attribution in Python attributes modules");
    }
    Result<ModelSpec> complete = complete_model_spec(without_attribution(spec));
    if (complete) complete->options[kAttributeOption] = attributed;
    return complete;
  }
  if (!spec.file().empty()) {
    Result<at::ScalarType> dtype = check_common(spec);
    if (!dtype) return dtype.error();
    return spec.is_plugin() ? complete_plugin_spec(spec) : complete_script_spec(spec);
  }
  Result<Resolved> resolved = resolve(spec);
  if (!resolved) return resolved.error();
  return resolved->spec;
}

namespace {

// Runs out of memory as an Error.
template <class Make>
Result<std::unique_ptr<Model>> make_within_memory(const ModelSpec& spec, Make&& make) {
  try {
    return make();
  } catch (const c10::OutOfMemoryError& error) {
    return does_not_fit(spec, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return does_not_fit(spec, "out of host memory");
  }
}

Result<std::unique_ptr<Model>> make_file_model(const ModelSpec& spec, c10::Device device,
                                               std::int64_t seed) {
  Result<ModelSpec> complete = complete_model_spec(spec);
  if (!complete) return complete.error();
  if (Status status = check_device(*complete, device); !status) return status.error();
  Result<at::ScalarType> dtype = read_dtype(complete->dtype);
  if (!dtype) return dtype.error();
  return make_within_memory(*complete, [&] {
    return spec.is_plugin() ? make_plugin_model(*complete, device, *dtype, seed)
                            : make_script_model(*complete, device, *dtype, seed);
  });
}

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSpec& spec, c10::Device device,
                                          std::int64_t seed) {
  const ModelSpec plain = without_attribution(spec);
  if (!plain.file().empty()) return make_file_model(plain, device, seed);
  Result<Resolved> resolved = resolve(plain);
  if (!resolved) return resolved.error();
  const Resolved& r = *resolved;
  if (Status status = check_device(r.spec, device); !status) return status.error();

  // Linux grants more memory than there is and ends the process later, so this is asked first.
  const double scale = r.dtype == at::kFloat ? 1.0 : 0.5;
  const double needed = scale * r.model.floor_bytes;
  const Bytes available = available_host_bytes();
  if (device.is_cpu() && needed > static_cast<double>(available)) {
    return does_not_fit(r.spec, "a step needs at least " + whole_number(needed) + " bytes, " +
                                    std::to_string(available) + " are available");
  }
  return make_within_memory(r.spec, [&]() -> Result<std::unique_ptr<Model>> {
    return r.model.make(device, r.dtype, seed);
  });
}

}  // namespace stowage::executor
