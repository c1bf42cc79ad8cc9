#include <algorithm>
#include <cstdlib>
#include <utility>

#include "cli/torch/attribution_results_json.h"
#include "cli/torch/attribution_run.h"
#include "cli/torch/child_process.h"
#include "cli/torch/model_error.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/results_json.h"
#include "cli/torch/torch_verbs.h"
#include "executor/attribution_spec.h"
#include "executor/option_text.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

constexpr std::int64_t kMostDevices = 64;

struct AttributeOptions {
  std::optional<std::string> model;
  std::optional<std::string> output;
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  std::optional<std::string> memory_limit;
  std::optional<std::int64_t> devices;
  RunFlags flags;

  void declare(CommandLine& line) {
    declare_step(line);
    line.output("-o,--output", "FILE", output,
                "the attributions, a safetensors file with one tensor a layer", true);
    line.offer_endings("--output", {".safetensors"});
    line.option("--devices", "N", devices,
                "on so many devices, each with a batch of its own: the first from --seed, the next "
                "from the number behind it; one behind the other in the file (1)");
    line.detail(
        "Gradient x activation: of the model's loss (its score) with respect to what each layer\n"
        "returns, times that, element by element, as Captum's LayerGradientXActivation. One "
        "batch,\n"
        "drawn from --seed. Each layer's leaves for the host when it is there.");
    line.example("stowage attribute vit:loss=mean --batch 8 --layers 'layers.*' -o a.safetensors");
    line.example("stowage attribute --plan p.json -o a.safetensors");
  }

  // What a part of it needs, too.
  void declare_step(CommandLine& line) {
    line.positional("MODEL", model,
                    "a model with its options (see stowage models); with --plan the plan's", false);
    line.offer("MODEL", model_words());
    line.option("--layers", "LAYERS", flags.attribute,
                "patterns of layer paths joined by +, as layers.*+head; inputs:PATTERN is what "
                "these layers are given, instead of what they return; with --plan the plan's");
    line.input("--plan", "FILE", plan,
               "run under this plan of a recording with --attribute: the same attributions");
    line.input("--trace", "FILE", trace, "the plan's recording (default: where the plan says)");
    line.option("--memory-limit", "SIZE", memory_limit,
                "device memory that the step may use; more is out of memory");
    flags.declare(line);
  }

  [[nodiscard]] Status check(bool json) const {
    if (devices && (*devices < 1 || *devices > kMostDevices)) {
      return usage_error("--devices " + std::to_string(*devices) + " is not allowed",
                         "a whole number from 1 to " + std::to_string(kMostDevices));
    }
    if (json && *output == "-") {
      return usage_error("--json and -o - would both write to stdout", "give -o a file");
    }
    if (devices.value_or(1) > 1 && (plan == "-" || trace == "-")) {
      return usage_error(std::string(plan == "-" ? "--plan" : "--trace") + " - with --devices " +
                             std::to_string(*devices),
                         "each device reads it: give a file");
    }
    if (plan && flags.attribute) {
      return usage_error("--layers with --plan", "the plan says which layers");
    }
    if (trace && !plan) return usage_error("--trace without --plan", "give the plan, too");
    if (!plan && !model) return usage_error("no MODEL", "see stowage models; or give a --plan");
    return Unit{};
  }
};

// The step that the options say.
struct AskedStep {
  RunRequest request;
  std::optional<PlanInputs> plan;
  std::optional<Bytes> memory_limit;

  [[nodiscard]] AttributionOptions options() const {
    return {.plan = plan ? &*plan : nullptr, .memory_limit = memory_limit};
  }
};

Result<AskedStep> asked_step(const AttributeOptions& options, Console& console) {
  AskedStep step;
  if (options.memory_limit) {
    const Result<Bytes> limit = parse_size(*options.memory_limit);
    if (!limit) {
      return usage_error("--memory-limit " + *options.memory_limit + ": " + limit.error().message,
                         limit.error().hint);
    }
    step.memory_limit = *limit;
  }
  if (options.plan) {
    Result<PlanInputs> loaded = load_plan_inputs(*options.plan, options.trace, options.model,
                                                 std::nullopt, options.flags, console.files);
    if (!loaded) return loaded.error();
    step.request = loaded->request;
    step.plan = std::move(loaded).value();
  } else {
    Result<RunRequest> request = make_request(*options.model, options.flags, console.files);
    if (!request) return request.error();
    step.request = std::move(request).value();
  }
  if (!executor::attribution_of(step.request.spec).empty()) return step;
  if (options.plan) {
    return usage_error("the plan is of a step that trains",
                       "make one of a recording with stowage profile --attribute");
  }
  return usage_error("no --layers", "as --layers 'layers.*'; stowage inspect lists a recording's");
}

// What of a trace says which step it is.
Trace step_facts(const RunRequest& request) {
  Trace trace;
  trace.run.model = request.spec.text();
  trace.run.batch = request.spec.batch;
  trace.run.seq = request.seq();
  trace.run.dtype = request.spec.dtype;
  trace.run.autocast = executor::recorded_text(request.autocast);
  trace.run.optimizer = executor::to_string(request.optimizer);
  trace.env.device = request.device;
  return trace;
}

// For attribute-part.
std::vector<std::string> part_arguments(const AttributeOptions& options, const AskedStep& step) {
  std::vector<std::string> words;
  if (options.plan) {
    words = {"--plan", *options.plan};
    if (options.trace) words.insert(words.end(), {"--trace", *options.trace});
    words.insert(words.end(), {"--seed", std::to_string(step.request.seed)});
  } else {
    words = step.request.arguments();
  }
  if (options.memory_limit) words.insert(words.end(), {"--memory-limit", *options.memory_limit});
  return words;
}

std::string attribute_text(const AskedStep& step, const AttributionRun& result,
                           const std::string& output) {
  std::string text = "attributed " + report::run_line(step_facts(step.request)) +
                     (step.plan ? " under " + step.plan->plan_file : "") + "\n";
  for (const MeasuredRun& run : result.runs) {
    text += "  score       " + executor::number_text(run.steps.back().loss) + "\n";
    text += "  peak        " + report::exact_bytes(run.peak_requested) + " requested";
    if (step.plan) {
      text += ", predicted " + report::with_commas(step.plan->predicted.peak_requested);
    }
    text += "\n";
  }
  return text + "wrote " + output + ", " +
         report::exact_bytes(static_cast<Bytes>(result.file.size())) + "\n";
}

// The GPU of a part: of those that this process may use the one of that number.
void choose_gpu(std::int64_t part) {
  const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string all = visible == nullptr ? "" : visible;
  for (std::int64_t k = 0; k < part && !all.empty(); ++k) {
    all.erase(0, std::min(all.find(','), all.size() - 1) + 1);
  }
  const std::string own = visible == nullptr ? std::to_string(part) : all.substr(0, all.find(','));
  ::setenv("CUDA_VISIBLE_DEVICES", own.c_str(), /*overwrite=*/1);
}

}  // namespace

int verb_attribute(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("attribute", "Writes gradient x activation of a model's layers");
  AttributeOptions options;
  options.declare(line);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (Status status = options.check(console.json); !status) return status.error();
    const Result<AskedStep> step = asked_step(options, console);
    if (!step) return step.error();
    if (step->plan) {
      for (const std::string& warning : step->plan->warnings) console.warn(warning);
    }
    const std::int64_t devices = options.devices.value_or(1);
    const Result<AttributionRun> result =
        devices > 1 ? attribute_on_devices(devices, part_arguments(options, *step))
                    : attribute_part(step->request, step->options(), 0);
    if (!result) {
      const executor::ModelSpec& spec = step->request.spec;
      return of_model(result.error(), options.model.value_or(spec.text()), spec);
    }
    for (const std::string& warning : result->runs.front().warnings) console.warn(warning);
    if (Status status = write_output(console, *options.output, result->file); !status) {
      return status.error();
    }
    if (*options.output == "-") return 0;
    if (console.json) {
      console.out << attribute_json(step_facts(step->request), result->runs, result->file,
                                    step->plan ? step->plan->plan_file : "", *options.output);
    } else {
      console.say(attribute_text(*step, *result, *options.output));
    }
    return 0;
  });
}

int verb_attribute_part(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("attribute-part", "Attributes on one of several devices, for a parent process");
  AttributeOptions options;
  std::optional<std::int64_t> part;
  std::optional<std::int64_t> result_descriptor;
  std::optional<std::int64_t> output_descriptor;
  options.declare_step(line);
  line.option("--part", "N", part, "which device, and which batch");
  line.option("--result-fd", "N", result_descriptor, "where the figures go");
  line.option("--output-fd", "N", output_descriptor, "where the attributions go");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (!part || !result_descriptor || !output_descriptor || (!options.model && !options.plan)) {
      return usage_error("--part, --result-fd and --output-fd are needed");
    }
    choose_gpu(*part);
    const Result<AskedStep> step = asked_step(options, console);
    if (!step) return step.error();
    const Result<AttributionRun> run = attribute_part(step->request, step->options(), *part);
    if (!run) return run.error();
    const Status figures = write_descriptor(static_cast<int>(*result_descriptor),
                                            measured_run_to_json(run->runs.front()));
    if (!figures) return figures.error();
    const Status file = write_descriptor(static_cast<int>(*output_descriptor), run->file);
    if (!file) return file.error();
    return 0;
  });
}

}  // namespace stowage::cli
