#include "executor/models/script.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sum.h>
#include <c10/util/Exception.h>
#include <torch/csrc/jit/serialization/import.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "executor/layer.h"
#include "executor/model_check.h"
#include "executor/models/consume.h"
#include "executor/models/parameter_set.h"
#include "executor/models/script_layers.h"
#include "executor/user_code.h"

namespace stowage::executor {

namespace {

constexpr std::int64_t kMostSize = 1'000'000'000;
constexpr char kBetweenInputs = '+';

Error bad_script(const std::string& file, std::string message, std::string hint = {}) {
  return {ErrorCode::bad_input, std::move(message), file, "", std::move(hint)};
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != text.npos; at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::optional<std::int64_t> positive(const std::string& text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || value < 1 || value > kMostSize) return std::nullopt;
  return value;
}

void read_shapes(OptionReader& reader, const std::string& text, ScriptConfig& config) {
  for (const std::string& shape : split(text, kBetweenInputs)) {
    ScriptInput input;
    for (const std::string& size : split(shape, 'x')) {
      const std::optional<std::int64_t> value = positive(size);
      if (!value) {
        reader.fail("a script's shape=" + text + " is not allowed",
                    "sizes with the batch first, such as 8x3x224x224; of several inputs joined "
                    "by +");
        return;
      }
      input.shape.push_back(*value);
    }
    config.inputs.push_back(std::move(input));
  }
}

// One word for each input, or one for all.
void read_inputs(OptionReader& reader, const std::string& text, ScriptConfig& config) {
  const std::vector<std::string> words = split(text, kBetweenInputs);
  if (words.size() != 1 && words.size() != config.inputs.size()) {
    reader.fail("a script's input=" + text + " is for " + std::to_string(words.size()) +
                    " inputs, its shape for " + std::to_string(config.inputs.size()),
                "one word for all, or one for each");
    return;
  }
  for (std::size_t i = 0; i < config.inputs.size(); ++i) {
    const std::string& word = words[words.size() == 1 ? 0 : i];
    if (word == "normal") continue;
    const std::optional<std::int64_t> below =
        word.starts_with("int:") ? positive(word.substr(4)) : std::nullopt;
    if (!below) {
      reader.fail("a script's input=" + text + " is not allowed",
                  "normal, or int:N for whole numbers from 0 to N-1");
      return;
    }
    config.inputs[i].below = *below;
  }
}

class ScriptModel final : public Model {
 public:
  ScriptModel(ScriptConfig config, torch::jit::Module module, c10::Device device,
              at::ScalarType dtype, std::int64_t seed)
      : config_(std::move(config)), module_(std::move(module)) {
    module_.train(config_.train);
    own_tensors(device, dtype);
    layers_.emplace(module_, device);
    const auto options = at::TensorOptions().device(device);
    for (const ScriptInput& input : config_.inputs) {
      inputs_.push_back(at::empty(input.shape, options.dtype(input.below > 0 ? at::kLong : dtype)));
    }
    load_batch(seed);
  }

  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return parameters_; }
  [[nodiscard]] std::vector<NamedTensor> buffers() const override { return buffers_; }
  [[nodiscard]] std::vector<NamedTensor> inputs() const override {
    std::vector<NamedTensor> named;
    for (const at::Tensor& input : inputs_) {
      named.push_back({"input" + std::to_string(named.size()), input});
    }
    return named;
  }

  void load_batch(std::int64_t seed) override {
    const at::Generator generator = make_generator(inputs_.front().device(), seed);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (config_.inputs[i].below > 0) {
        inputs_[i].random_(0, config_.inputs[i].below, generator);
      } else {
        inputs_[i].normal_(0, 1, generator);
      }
    }
  }

  BackwardRoot forward() override {
    at::Tensor output = run();
    TORCH_CHECK(output.defined(), config_.file, ": the script returned no tensor");
    TORCH_CHECK(output.requires_grad(), config_.file,
                ": the script's first tensor depends on no parameter");
    if (output.dim() == 0) return {.tensor = std::move(output), .gradient = {}};
    if (config_.loss == "ones") {
      at::Tensor ones = at::ones_like(output);
      return {.tensor = std::move(output), .gradient = std::move(ones)};
    }
    using Inputs = std::vector<at::Tensor>;
    at::Tensor loss = layer(
        "loss",
        [sum = config_.loss == "sum"](const Inputs& in) {
          return sum ? at::sum(in[0]) : at::mean(in[0]);
        },
        consume(output));
    return {.tensor = std::move(loss), .gradient = {}};
  }

 private:
  // The module's tensors become tensors of their own on the device, in the dtype where they are
  // floating point. What was one tensor in the file (tied weights) is one again.
  void own_tensors(c10::Device device, at::ScalarType dtype) {
    using Key = std::tuple<const void*, std::vector<std::int64_t>, std::vector<std::int64_t>,
                           at::ScalarType, bool>;
    std::map<Key, at::Tensor> made;
    for (const auto& [path, each] : module_.named_modules()) {
      const std::string prefix = path.empty() ? "" : path + ".";
      for (std::size_t i = 0; i < each.type()->numAttributes(); ++i) {
        const c10::IValue value = each._ivalue()->getSlot(i);
        if (!value.isTensor() || !value.toTensor().defined()) continue;
        const at::Tensor old = value.toTensor();
        const bool trained = each.type()->is_parameter(i) && old.requires_grad();
        const Key key{old.const_data_ptr(), old.sizes().vec(), old.strides().vec(),
                      old.scalar_type(), trained};
        at::Tensor& tensor = made[key];
        if (!tensor.defined()) {
          tensor = old.detach().to(device, old.is_floating_point() ? dtype : old.scalar_type(),
                                   /*non_blocking=*/false, /*copy=*/true);
          tensor.requires_grad_(trained);
          (trained ? parameters_ : buffers_)
              .push_back({prefix + each.type()->getAttributeName(i), tensor});
        }
        each._ivalue()->setSlot(i, tensor);
      }
    }
  }

  [[nodiscard]] at::Tensor run() {
    const PlainScripts plain;
    const std::vector<c10::IValue> arguments(inputs_.begin(), inputs_.end());
    return run_user_code(config_.file + ": the script",
                         [&] { return first_tensor(module_.forward(arguments)); });
  }

  ScriptConfig config_;
  torch::jit::Module module_;
  std::optional<ScriptLayers> layers_;
  std::vector<NamedTensor> parameters_;
  std::vector<NamedTensor> buffers_;
  std::vector<at::Tensor> inputs_;
};

// torch.save() and torch.jit.save() write the same kind of zip, the former without constants; older
// versions wrote a pickle, which begins like this.
bool is_torch_saves(const std::string& file, const std::string& message) {
  if (message.find("constants.pkl") != message.npos) return true;
  std::string begin(4, '\0');
  std::ifstream(file, std::ios::binary).read(begin.data(), 4);
  return begin == "\x80\x02\x8a\x0a";
}

// Why the file cannot be loaded. LibTorch's advice follows its first sentence.
Error not_loaded(const std::string& file, const std::string& message) {
  const std::string hint =
      "torch.jit.trace(model, inputs).save(file) or torch.jit.script(model).save(file) writes it";
  if (is_torch_saves(file, message)) {
    return bad_script(file, "it is torch.save()'s, not TorchScript: it has no code to run", hint);
  }
  return bad_script(file, "it is not TorchScript: " + message.substr(0, message.find(". ")), hint);
}

Result<torch::jit::Module> load(const std::string& file) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) {
    return bad_script(file, "cannot open it: " + (failed ? failed.message() : "it is not a file"));
  }
  try {
    // Without its debug files: they would stay in memory, and their size depends on the folder of
    // the program that wrote the script.
    return torch::jit::load(file, c10::Device(c10::kCPU), /*load_debug_files=*/false);
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return not_loaded(file, thrown_text());
  }
}

}  // namespace

ModelInfo script_info() {
  return {.name = "script:FILE.pt",
          .summary = "a TorchScript module of your own",
          .options = {{"shape", "", "of the input, batch first: 8x3x224x224; + between several"},
                      {"input", "normal", "normal, or int:N for whole numbers below N; + between"},
                      {"loss", "mean", "of the first tensor: mean, sum, or ones (its gradient)"},
                      {"mode", "train", "train or eval"}},
          .default_batch = 1};
}

Result<ModelInfo> describe_script(const ModelSpec& spec) {
  Result<torch::jit::Module> module = load(spec.file());
  if (!module) return module.error();
  std::int64_t count = 0;
  for (const at::Tensor& each : module->parameters()) count += each.numel();
  ModelInfo info = script_info();
  info.name = spec.name;
  info.summary = "a TorchScript module with " + std::to_string(count) + " parameters";
  return info;
}

ScriptConfig read_script(OptionReader& reader, const ModelSpec& spec) {
  ScriptConfig config;
  config.file = spec.file();
  const auto written = [&](const std::string& name, const std::string& otherwise) {
    const auto found = spec.options.find(name);
    return found == spec.options.end() ? otherwise : found->second;
  };
  if (const std::string shape = written("shape", ""); !shape.empty()) {
    read_shapes(reader, shape, config);
  } else {
    reader.fail("a script needs the shape of its input",
                "for example " + spec.name + ":shape=8x3x224x224, batch first");
  }
  if (!reader.error()) read_inputs(reader, written("input", "normal"), config);
  config.loss = reader.choice("loss", {"mean", "sum", "ones"});
  config.train = reader.choice("mode", {"train", "eval"}) == "train";
  return config;
}

Result<ModelSpec> complete_script_spec(const ModelSpec& spec) {
  const ModelInfo info = script_info();
  OptionReader reader(info, spec);
  const ScriptConfig config = read_script(reader, spec);
  if (reader.error()) return *reader.error();
  ModelSpec complete = spec;
  const std::int64_t batch = config.inputs.front().shape.front();
  if (complete.batch != 0 && complete.batch != batch) {
    return usage_error("batch " + std::to_string(complete.batch) +
                           " contradicts shape=" + spec.options.at("shape"),
                       "the shape's first size is the batch; leave --batch out");
  }
  complete.batch = batch;
  for (const ModelOption& option : info.options) {
    if (option.name != "shape") complete.options.emplace(option.name, option.default_value);
  }
  return complete;
}

Result<std::unique_ptr<Model>> make_script_model(const ModelSpec& spec, c10::Device device,
                                                 at::ScalarType dtype, std::int64_t seed) {
  const ModelInfo info = script_info();
  OptionReader reader(info, spec);
  ScriptConfig config = read_script(reader, spec);
  if (reader.error()) return *reader.error();
  Result<torch::jit::Module> module = load(config.file);
  if (!module) return module.error();
  auto model = std::make_unique<ScriptModel>(std::move(config), std::move(module).value(), device,
                                             dtype, seed);
  if (std::optional<Error> error = check_model(*model, device)) {
    error->file = spec.file();
    return *error;
  }
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace stowage::executor
