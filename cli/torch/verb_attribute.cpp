#include <utility>

#include "cli/torch/attribution_results_json.h"
#include "cli/torch/measured_run.h"
#include "cli/torch/model_error.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/torch_verbs.h"
#include "executor/attribution_spec.h"
#include "executor/option_text.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

struct AttributeOptions {
  std::optional<std::string> model;
  std::optional<std::string> output;
  std::optional<std::string> plan;
  std::optional<std::string> trace;
  std::optional<std::string> memory_limit;
  RunFlags flags;

  void declare(CommandLine& line) {
    line.positional("MODEL", model,
                    "a model with its options (see stowage models); with --plan the plan's", false);
    line.option(
        "--layers", "LAYERS", flags.attribute,
        "patterns of layer paths joined by +, as layers.*+head; inputs:PATTERN is what these "
        "layers are given, instead of what they return; with --plan the plan's");
    line.output("-o,--output", "FILE", output,
                "the attributions, a safetensors file with one tensor a layer", true);
    line.input("--plan", "FILE", plan,
               "run under this plan of a recording with --attribute: the same attributions");
    line.input("--trace", "FILE", trace, "the plan's recording (default: where the plan says)");
    line.option("--memory-limit", "SIZE", memory_limit,
                "device memory that the step may use; more is out of memory");
    flags.declare(line);
    line.detail(
        "Gradient x activation: of the model's loss (its score) with respect to what each layer\n"
        "returns, times that, element by element, as Captum's LayerGradientXActivation. One "
        "batch,\n"
        "drawn from --seed. Each layer's leaves for the host as soon as it is there.");
    line.example("stowage attribute vit:loss=mean --batch 8 --layers 'layers.*' -o a.safetensors");
    line.example("stowage attribute --plan p.json -o a.safetensors");
  }

  [[nodiscard]] Status check(bool json) const {
    if (json && *output == "-") {
      return usage_error("--json and -o - would both write to stdout", "give -o a file");
    }
    if (plan && flags.attribute) {
      return usage_error("--layers with --plan", "the plan says which layers");
    }
    if (trace && !plan) return usage_error("--trace without --plan", "give the plan, too");
    if (!plan && !model) return usage_error("no MODEL", "see stowage models; or give a --plan");
    return Unit{};
  }
};

// Which step it is, in a trace's words.
Trace facts_of(const Session& session) {
  Trace trace;
  trace.run = session.run();
  trace.env = session.environment();
  return trace;
}

struct Attributed {
  Trace facts;
  MeasuredRun run;
  std::string file;  // of the attributions, which need the session no more
  std::string json;
  Bytes bytes = 0;
  std::size_t layers = 0;
};

Result<Attributed> attribute(const RunRequest& request, const PlanInputs* inputs,
                             const std::optional<Bytes>& limit, const std::string& output) {
  Result<std::unique_ptr<Session>> made = Session::create(request);
  if (!made) return made.error();
  Session& session = **made;
  if (limit) session.set_memory_limit(*limit);
  std::unique_ptr<executor::PlannedStep> plan;
  if (inputs != nullptr) {
    executor::PlannedStepOptions options;
    options.structure = inputs->structure;
    options.older = session.step().older_tensors();
    Result<std::unique_ptr<executor::PlannedStep>> planned =
        executor::PlannedStep::create(session.device(), inputs->trace, inputs->schedule,
                                      session.step().parameters(), std::move(options));
    if (!planned) return planned.error();
    plan = std::move(planned).value();
  }
  MeasureOptions measured;
  measured.course.steps = 1;
  Result<MeasuredRun> run = measure(session, plan.get(), measured);
  if (plan != nullptr) plan->leave_parameters();
  if (!run) return run.error();
  const std::vector<executor::NamedTensor> attributions = session.step().attributions();
  Result<std::string> file = safetensors_of(attributions);
  if (!file) return file.error();
  Attributed result{facts_of(session), std::move(run).value(), std::move(file).value(), {}};
  for (const executor::NamedTensor& each : attributions) {
    result.bytes += static_cast<Bytes>(each.tensor.nbytes());
  }
  result.layers = attributions.size();
  result.json = attribute_json(result.facts, result.run, attributions,
                               inputs != nullptr ? inputs->plan_file : "", output);
  return result;
}

std::string attribute_text(const Attributed& result, const PlanInputs* inputs,
                           const std::string& output) {
  std::string text = "attributed " + report::run_line(result.facts) +
                     (inputs != nullptr ? " under " + inputs->plan_file : "") + "\n";
  text += "  score       " + executor::number_text(result.run.steps.back().loss) + "\n";
  text += "  tensors     " + report::with_commas(static_cast<std::int64_t>(result.layers)) + ", " +
          report::exact_bytes(result.bytes) + "\n";
  text += "  peak        " + report::exact_bytes(result.run.peak_requested) + " requested";
  if (inputs != nullptr) {
    text += ", predicted " + report::with_commas(inputs->predicted.peak_requested);
  }
  return text + "\nwrote " + output + "\n";
}

}  // namespace

int verb_attribute(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("attribute", "Writes gradient x activation of a model's layers");
  AttributeOptions options;
  options.declare(line);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (Status status = options.check(console.json); !status) return status.error();
    std::optional<Bytes> limit;
    if (options.memory_limit) {
      const Result<Bytes> read = parse_size(*options.memory_limit);
      if (!read) {
        return usage_error("--memory-limit " + *options.memory_limit + ": " + read.error().message,
                           read.error().hint);
      }
      limit = *read;
    }
    std::optional<PlanInputs> inputs;
    if (options.plan) {
      Result<PlanInputs> loaded = load_plan_inputs(*options.plan, options.trace, options.model,
                                                   std::nullopt, options.flags, console.files);
      if (!loaded) return loaded.error();
      for (const std::string& warning : loaded->warnings) console.warn(warning);
      inputs = std::move(loaded).value();
    }
    Result<RunRequest> request = inputs
                                     ? Result<RunRequest>(inputs->request)
                                     : make_request(*options.model, options.flags, console.files);
    if (!request) return request.error();
    if (executor::attribution_of(request->spec).empty()) {
      return usage_error(inputs ? "the plan is of a step that trains" : "no --layers",
                         inputs ? "make one of a recording with stowage profile --attribute"
                                : "as --layers 'layers.*'; stowage inspect lists a recording's");
    }
    const PlanInputs* const under = inputs ? &*inputs : nullptr;
    Result<Attributed> result = attribute(*request, under, limit, *options.output);
    if (!result) {
      return of_model(result.error(), options.model.value_or(request->spec.text()), request->spec);
    }
    for (const std::string& warning : result->run.warnings) console.warn(warning);
    if (Status status = write_output(console, *options.output, result->file); !status) {
      return status.error();
    }
    if (*options.output == "-") return 0;
    if (console.json) {
      console.out << result->json;
    } else {
      console.say(attribute_text(*result, under, *options.output));
    }
    return 0;
  });
}

}  // namespace stowage::cli
