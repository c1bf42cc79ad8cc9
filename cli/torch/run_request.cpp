#include "cli/torch/run_request.h"

#include <charconv>
#include <filesystem>
#include <utility>

#include "cli/torch/device_choice.h"
#include "cli/torch/micro_batches.h"
#include "cli/torch/ranks.h"
#include "executor/attribution_spec.h"

namespace stowage::cli {

namespace {

Error contradiction(const std::string& flag, const std::string& one, const std::string& other,
                    const std::string& hint = "say it once, in the model's spec or as an option") {
  return usage_error("--" + flag + " " + one + " contradicts " + other, hint);
}

Status in_range(const char* flag, const std::optional<std::int64_t>& value, std::int64_t least,
                std::int64_t most) {
  if (!value || (*value >= least && *value <= most)) return Unit{};
  return usage_error(
      "--" + std::string(flag) + " " + std::to_string(*value) + " is not allowed",
      "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
}

Status check_ranges(const RunFlags& flags) {
  if (Status status = in_range("batch", flags.batch, 1, kMostBatch); !status) return status;
  if (Status status = in_range("seq", flags.seq, 1, kMostBatch); !status) return status;
  if (Status status = in_range("seed", flags.seed, 0, INT32_MAX); !status) return status;
  return in_range("threads", flags.threads, 1, kMostThreads);
}

// A plugin's options may be files as well.
Status note_files(const executor::ModelSpec& spec, CommandFiles& files) {
  const std::string file = spec.file();
  if (file.empty()) return Unit{};
  if (Status status = files.reads(file, "the model"); !status) return status;
  std::error_code ignored;
  for (const auto& [name, value] : spec.options) {
    if (!std::filesystem::is_regular_file(value, ignored)) continue;
    if (Status status = files.reads(value, "the model's " + name); !status) return status;
  }
  return Unit{};
}

// An attribution step has gradients of activations and no others.
Status check_attribution(const RunRequest& request) {
  if (executor::attribution_of(request.spec).empty()) return Unit{};
  if (request.optimizer.kind != executor::OptimizerKind::none) {
    return usage_error(
        "--optimizer " + executor::to_string(request.optimizer) + " with --attribute",
        "an attribution step updates nothing; leave one of them out");
  }
  return Unit{};
}

Status check_grad_scaler(const executor::OptimizerSpec& optimizer) {
  if (optimizer.kind == executor::OptimizerKind::none) {
    return usage_error("--grad-scaler without an optimizer", "give --optimizer, too");
  }
  if (!optimizer.in_backward) return Unit{};
  return usage_error(
      "--grad-scaler with update=backward",
      "whether a gradient overflowed is known behind backward; leave one of them out");
}

// Gradients are reduced behind backward.
Status check_ranks(const RunRequest& request) {
  if (request.ranks == nullptr) return Unit{};
  if (request.device != "cpu") {
    return usage_error("--distributed on " + request.device,
                       "give --device cpu: the command's ranks run there, over Gloo; on GPUs they "
                       "do from Python: docs/python.md");
  }
  if (request.optimizer.in_backward) {
    return usage_error("--distributed with update=backward",
                       "gradients are reduced behind backward; leave one of them out");
  }
  if (!executor::attribution_of(request.spec).empty()) {
    return usage_error("--distributed with --attribute",
                       "an attribution step has no gradients of parameters");
  }
  return Unit{};
}

}  // namespace

std::int64_t RunRequest::seq() const {
  const auto found = spec.options.find("seq");
  if (found == spec.options.end()) return 0;
  // A plugin's option of that name may be anything.
  std::int64_t value = 0;
  const char* const end = found->second.data() + found->second.size();
  const auto [stop, code] = std::from_chars(found->second.data(), end, value);
  return code == std::errc() && stop == end ? value : 0;
}

std::vector<std::string> RunRequest::arguments() const {
  std::vector<std::string> args = {spec.text(),
                                   "--device",
                                   device,
                                   "--batch",
                                   std::to_string(spec.batch),
                                   "--dtype",
                                   spec.dtype,
                                   "--optimizer",
                                   executor::to_string(optimizer),
                                   "--seed",
                                   std::to_string(seed)};
  if (autocast != executor::Autocast::none) {
    args.insert(args.end(), {"--autocast", executor::to_string(autocast)});
  }
  if (grad_scaler) args.insert(args.end(), {"--grad-scaler", executor::to_string(*grad_scaler)});
  if (threads > 0) {
    args.push_back("--threads");
    args.push_back(std::to_string(threads));
  }
  for (std::string& word : parts_arguments(micro_batches)) args.push_back(std::move(word));
  if (ranks == nullptr) return args;
  for (std::string& word : ranks->child_arguments()) args.push_back(std::move(word));
  return args;
}

std::vector<std::string> model_words() {
  std::vector<std::string> words;
  for (const executor::ModelInfo& model : executor::models()) words.push_back(model.name);
  words.insert(words.end(), {"plugin:", "script:"});
  return words;
}

void RunFlags::declare(CommandLine& line) {
  declare_all(line, "", "PyTorch's choice");
}

void RunFlags::declare(CommandLine& line, const std::string& says,
                       const std::string& threads_default) {
  declare_all(line, says, threads_default);
}

void RunFlags::declare_all(CommandLine& line, const std::string& says,
                           const std::string& threads_default) {
  const auto or_else = [&](const std::string& own) {
    return " (default: " + (says.empty() ? own : says) + ")";
  };
  line.option("--device", "NAME", device, "cpu or cuda" + or_else("cuda where there is a GPU"));
  line.offer("--device", {"cpu", "cuda"});
  line.option("--batch", "N", batch, "samples in a batch" + or_else("the model's"));
  line.option("--seq", "N", seq,
              "tokens in a sequence, for models that have one" + or_else("the model's"));
  line.option("--dtype", "NAME", dtype, "fp32, tf32 (GPU only) or bf16" + or_else("fp32"));
  line.option(
      "--autocast", "NAME", autocast,
      "none, bf16 or fp16: forward and loss compute under PyTorch's autocast" + or_else("none"));
  line.option(
      "--optimizer", "NAME", optimizer,
      "none, sgd, adam or adamw, with options: adamw:master=fp32 has fp32 copies of the "
      "parameters, adamw:update=backward updates each as its gradient arrives, "
      "adamw:lr=0.0003,clip=1 sets the learning rate and clips gradients by their global norm, "
      "adamw:warmup=100,decay=cosine,total=1000 has it rise and fall, sgd:momentum=0.9; all: "
      "docs/models.md" +
          or_else("none"));
  line.option("--grad-scaler", "OPTIONS", grad_scaler,
              "on, or some of init=65536,growth=2,backoff=0.5,interval=2000: scale the loss, skip "
              "the update where a gradient overflows; needs an optimizer" +
                  or_else("none"));
  line.offer("--dtype", {"fp32", "tf32", "bf16"});
  line.offer("--autocast", {"none", "bf16", "fp16"});
  line.offer("--optimizer", {"none", "sgd", "adam", "adamw"});
  line.offer("--grad-scaler", {"on"});
  line.option("--seed", "N", seed, "of parameters and batches" + or_else("1"));
  line.option("--threads", "N", threads,
              "intra-op threads; on a CPU they change gradients and bytes (default: " +
                  threads_default + ")");
}

void RunFlags::declare_ranks(CommandLine& line, const std::string& shows) {
  line.flag(
      "--distributed", distributed,
      "be one rank of a data-parallel run that torchrun started: each rank has batches of its "
      "own, gradients are reduced over Gloo, and the first rank answers for all");
  line.example("torchrun --no-python --nproc-per-node 2 " + shows);
}

void RunFlags::declare_group(CommandLine& line) {
  line.flag("--distributed", distributed, "be one rank");
  line.option("--group", "NAME", group, "which process of that rank");
}

Result<RunFlags> recorded_form(RunFlags flags) {
  if (flags.autocast) {
    const Result<executor::Autocast> autocast = executor::parse_autocast(*flags.autocast);
    if (!autocast) return autocast.error();
    flags.autocast = executor::recorded_text(*autocast);
  }
  if (flags.optimizer) {
    const Result<executor::OptimizerSpec> spec = executor::parse_optimizer(*flags.optimizer);
    if (!spec) return spec.error();
    flags.optimizer = executor::to_string(*spec);
  }
  if (flags.grad_scaler) {
    const Result<executor::GradScalerSpec> spec = executor::parse_grad_scaler(*flags.grad_scaler);
    if (!spec) return spec.error();
    flags.grad_scaler = executor::to_string(*spec);
  }
  return flags;
}

Result<RunRequest> make_request(const std::string& model, const RunFlags& flags,
                                CommandFiles& files) {
  Result<std::string> device = choose_device(flags.device);
  if (!device) return device.error();
  if (Status status = check_ranges(flags); !status) return status.error();
  Result<executor::ModelSpec> parsed = executor::parse_model_spec(model);
  if (!parsed) return parsed.error();
  executor::ModelSpec spec = std::move(parsed).value();
  if (Status status = note_files(spec, files); !status) return status.error();
  if (flags.batch) {
    if (spec.batch != 0 && spec.batch != *flags.batch) {
      return contradiction("batch", std::to_string(*flags.batch),
                           "batch=" + std::to_string(spec.batch) + " in the model's spec");
    }
    spec.batch = *flags.batch;
  }
  if (flags.seq) {
    const std::string value = std::to_string(*flags.seq);
    const auto [entry, is_new] = spec.options.try_emplace("seq", value);
    if (!is_new && entry->second != value) {
      return contradiction("seq", value, "seq=" + entry->second + " in the model's spec");
    }
  }
  if (flags.attribute) {
    const auto [entry, is_new] =
        spec.options.try_emplace(executor::kAttributeOption, *flags.attribute);
    if (!is_new && entry->second != *flags.attribute) {
      return contradiction("attribute", *flags.attribute,
                           "attribute=" + entry->second + " in the model's spec");
    }
  }
  if (flags.dtype) {
    if (!spec.dtype.empty() && spec.dtype != *flags.dtype && model.find("dtype=") != model.npos) {
      return contradiction("dtype", *flags.dtype, "dtype=" + spec.dtype + " in the model's spec");
    }
    spec.dtype = *flags.dtype;
  }
  Result<executor::ModelSpec> complete = executor::complete_model_spec(spec);
  if (!complete) return complete.error();
  RunRequest request;
  request.spec = std::move(complete).value();
  request.device = std::move(device).value();
  if (request.device == "cpu" && request.spec.dtype == "tf32") {
    return usage_error("dtype tf32 needs a CUDA device", "use fp32 or bf16");
  }
  if (flags.autocast) {
    Result<executor::Autocast> autocast = executor::parse_autocast(*flags.autocast);
    if (!autocast) return autocast.error();
    request.autocast = *autocast;
  }
  if (flags.optimizer) {
    Result<executor::OptimizerSpec> optimizer = executor::parse_optimizer(*flags.optimizer);
    if (!optimizer) return optimizer.error();
    request.optimizer = *optimizer;
  }
  if (flags.grad_scaler) {
    const Result<executor::GradScalerSpec> scaler = executor::parse_grad_scaler(*flags.grad_scaler);
    if (!scaler) return scaler.error();
    request.grad_scaler = *scaler;
    if (Status status = check_grad_scaler(request.optimizer); !status) return status.error();
  }
  if (Status status = check_attribution(request); !status) return status.error();
  request.seed = flags.seed.value_or(1);
  request.threads = flags.threads.value_or(0);
  request.ranks = flags.ranks;
  if (Status status = check_ranks(request); !status) return status.error();
  return request;
}

Result<RunRequest> make_request(const Run& run, const std::string& device, const RunFlags& flags,
                                CommandFiles& files) {
  const auto same = [](const char* flag, const auto& given, const auto& recorded) -> Status {
    if (!given || *given == recorded) return Unit{};
    std::string one;
    std::string other;
    if constexpr (std::is_same_v<std::decay_t<decltype(recorded)>, std::string>) {
      one = given->empty() ? "none" : *given;
      other = recorded.empty() ? "none" : recorded;
    } else {
      one = std::to_string(*given);
      other = std::to_string(recorded);
    }
    return contradiction(
        flag, one, "the recorded step (" + other + ")",
        std::string("leave --") + flag + " out, or record and plan the step that you mean");
  };
  const Result<RunFlags> said = recorded_form(flags);
  if (!said) return said.error();
  for (const Status& status :
       {same("batch", flags.batch, run.batch), same("seq", flags.seq, run.seq),
        same("dtype", flags.dtype, run.dtype), same("autocast", said->autocast, run.autocast),
        same("optimizer", said->optimizer, run.optimizer),
        same("grad-scaler", said->grad_scaler, run.grad_scaler),
        same("threads", flags.threads, run.threads)}) {
    if (!status) return status.error();
  }
  if (!device.empty()) {
    if (Status status = same("device", flags.device, device); !status) return status.error();
  }
  RunFlags recorded;
  recorded.device = device.empty() ? flags.device : device;
  if (run.batch > 0) recorded.batch = run.batch;
  if (!run.dtype.empty()) recorded.dtype = run.dtype;
  if (!run.autocast.empty()) recorded.autocast = run.autocast;
  if (!run.optimizer.empty()) recorded.optimizer = run.optimizer;
  if (!run.grad_scaler.empty()) recorded.grad_scaler = run.grad_scaler;
  recorded.seed = flags.seed.value_or(run.seed);
  if (run.threads > 0) recorded.threads = run.threads;
  recorded.ranks = flags.ranks;
  Result<RunRequest> request = make_request(run.model, recorded, files);
  if (request) request->deterministic = run.deterministic;
  return request;
}

}  // namespace stowage::cli
