#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "cli/torch/fused_attention.h"
#include "cli/torch/gpu_totals.h"
#include "cli/torch/micro_batches.h"
#include "cli/torch/model_error.h"
#include "cli/torch/ranks.h"
#include "cli/torch/recorded_step.h"
#include "cli/torch/recording_child.h"
#include "cli/torch/results_json.h"
#include "cli/torch/torch_verbs.h"
#include "executor/attribution_spec.h"
#include "report/words.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"
#include "traces/trace_json.h"
#include "traces/validate.h"

namespace stowage::cli {

namespace {

// An op of the step in parts whose result hangs on the other samples; empty: none.
std::string normalises_over_batch(const Trace& trace) {
  for (std::size_t op = 0; op < trace.ops.size(); ++op) {
    const std::string& name = trace.string(trace.ops.name[op]);
    const PhaseKind phase = trace.phases.kind[trace.ops.phase[op].index()];
    if (phase == PhaseKind::forward && name.find("batch_norm") != std::string::npos) return name;
  }
  return "";
}

// The step, and the same step in each of these micro-batches, which have its calibration.
Result<Trace> record_sweep(const RecordingRequest& request, const StepUnderPlan* under,
                           const std::vector<Parts>& divisions, const Args& argv,
                           const Console& console) {
  Result<Trace> trace = record_here(request, under, argv, console);
  if (!trace) return trace;
  for (const Parts& parts : divisions) {
    if (console.progress()) console.note(simulator::parts_text(parts) + " ..");
    RecordingRequest divided = request;
    divided.run.micro_batches = parts;
    Result<Trace> part = record_divided(divided);
    if (!part) {
      Error error = std::move(part).error();
      if (error.hint.empty() && error.code == ErrorCode::bad_input) {
        error.hint =
            "docs/models.md says what of a model can run in parts, of one sample each at the least";
      }
      return error;
    }
    if (const std::string op = normalises_over_batch(*part); !op.empty()) {
      console.warn(op + " normalises over the batch, in micro-batches over one part at a time: " +
                   simulator::parts_text(parts) + " trains otherwise than the whole");
    }
    trace->divided.push_back(std::make_shared<const Trace>(std::move(part).value()));
  }
  set_calibration(*trace, Calibration(trace->calibration));
  return trace;
}

// "+1.3 %"; a share of another number.
std::string percent(double share, int digits, bool sign) {
  return report::percent_text(100 * share, digits, sign);
}

std::string gpu_text(const Trace& trace) {
  const GpuTotals totals = gpu_totals(trace);
  std::string text = "  GPU           " + report::count_of(totals.kernels, "kernel") + ", " +
                     report::with_commas(totals.copies + totals.memsets) + " copies and memsets, " +
                     format_time(totals.busy_ns) + " busy, " +
                     percent(totals.attributed, 2, false) + " of it attributed\n";
  text += "  timing pass   " + format_time(trace.overhead.timing.step_ns);
  if (totals.timing_overhead) {
    text += " (" + percent(*totals.timing_overhead, 1, true) + " over the clean step)";
  }
  text += ", " + report::count_of(trace.quality.dropped_records, "dropped record") + ", " +
          report::count_of(trace.clock.causality_violations, "clamped time") + ", " +
          report::count_of(static_cast<std::int64_t>(trace.syncs.size()), "wait") + " of the CPU\n";
  return text;
}

std::string profile_text(const Trace& trace, const std::string& file) {
  std::string text = "recorded " + report::run_line(trace) + "\n";
  const bool offloaded = trace.overhead.clean.step_ns == 0;
  text += "  step time     " +
          (offloaded ? "unknown: it does not fit with everything kept"
                     : format_time(trace.overhead.clean.step_ns)) +
          "\n";
  text += "  peak          " + report::exact_bytes(trace.peaks.requested.front()) + " requested\n";
  text += "  offload all   " + report::exact_bytes(trace.overhead.offload_all.peak_requested) +
          " when every saved tensor leaves at once\n";
  const auto outermost = std::count(trace.ops.parent.begin(), trace.ops.parent.end(), OpId());
  text += "  saved tensors " + report::with_commas(static_cast<std::int64_t>(trace.saved.size())) +
          " in " + report::count_of(static_cast<std::int64_t>(trace.layers.size()) - 1, "layer") +
          "\n";
  text += "  ops           " + report::with_commas(outermost) + ", " +
          report::with_commas(static_cast<std::int64_t>(trace.ops.size())) +
          " with those that they call\n";
  if (trace.gpu.size() > 0) text += gpu_text(trace);
  for (const auto& each : trace.divided) {
    text += "  in parts      " + simulator::parts_text(simulator::recorded_parts(*each)) +
            ": peak " + report::exact_bytes(each->peaks.requested.front()) + " requested, " +
            (each->overhead.clean.step_ns == 0 ? "offloaded"
                                               : format_time(each->overhead.clean.step_ns)) +
            "\n";
  }
  text += "  fingerprint   " + trace.fingerprint.substr(0, 23) + "..\n";
  text += "wrote " + file + "\n";
  return text;
}

struct ProfileOptions {
  std::optional<std::string> model;
  std::optional<std::string> output;
  std::optional<std::int64_t> warmup;
  std::optional<std::string> memory_limit;
  std::optional<std::string> plan;
  std::optional<std::string> plans_trace;
  std::vector<std::string> micro_batches;
  bool quick = false;
  RunFlags flags;

  void declare(CommandLine& line) {
    line.positional(
        "MODEL", model,
        "a built-in model with its options (see stowage models), plugin:LIB.so, script:FILE.pt or "
        "python:FILE.py:function; with --plan the plan's",
        false);
    std::vector<std::string> words = model_words();
    words.emplace_back("python:");
    line.offer("MODEL", std::move(words));
    line.output("-o,--output", "FILE", output, "the trace, .json or .json.gz; - is stdout", true);
    flags.declare(line);
    line.option("--attribute", "LAYERS", flags.attribute,
                "no training step but gradient x activation of these layers, as stowage attribute "
                "--layers has them: patterns joined by +, as layers.*+head");
    line.option("--warmup", "N", warmup,
                "steps before anything is recorded (default 3; 1 with --quick; 2 at the least with "
                "--distributed)");
    line.flag("--quick", quick,
              "as few steps as a recording needs, and one of warm-up: bytes are exact, times a "
              "first look");
    line.option("--memory-limit", "SIZE", memory_limit,
                "device memory that the step may use; one that needs more is recorded offloaded");
    line.input("--plan", "FILE", plan,
               "record the step with what this plan computes again; what it moves stays");
    line.input("--trace", "FILE", plans_trace,
               "the plan's recording, where it is not where the plan says");
    line.option("--micro-batches", "SEGMENT=N,..", micro_batches,
                "record the step also with this segment (a layer whose tail ends in the loss, or "
                "'*', the whole step) in N parts of the batch");
    for (const char* name : {"--batch-sweep", "--no-fit"}) {
      line.future_option(name);
    }
    line.detail(
        "Runs the step unobserved (time, peak, speed of the copy lanes), observed, and once\n"
        "with every saved tensor leaving at once; the passes must agree event by event. On a GPU\n"
        "also with the GPU's own records.");
    line.example(
        "stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 --batch 4 -o t.json.gz");
    line.example(
        "stowage profile gpt2:layers=2,seq=256 --batch 2 --micro-batches head=4,8 -o t.json.gz");
    line.example("stowage profile --plan p.json -o again.json.gz");
    flags.declare_ranks(line, "stowage profile mlp --distributed -o t.json.gz");
  }

  [[nodiscard]] Status check(bool json) const {
    if (warmup && (*warmup < 1 || *warmup > 10000)) {
      return usage_error("--warmup " + std::to_string(*warmup) + " is not allowed",
                         "a whole number from 1 to 10000");
    }
    if (json && *output == "-") {
      return usage_error("--json and -o - would both write to stdout", "give -o a file");
    }
    if ((plan && *plan == "-") || (plans_trace && *plans_trace == "-")) {
      return usage_error("--plan and --trace are read by several processes",
                         "give files, not standard input");
    }
    if (flags.attribute && plan) {
      return usage_error("--attribute with --plan", "the plan says which step it is");
    }
    if (flags.distributed && (plan || memory_limit)) {
      return usage_error(std::string("--distributed with ") + (plan ? "--plan" : "--memory-limit"),
                         plan ? "verify the plan with --distributed instead"
                              : "a step that does not fit one rank cannot be recorded on others");
    }
    if (!micro_batches.empty() && plan) {
      return usage_error("--micro-batches with --plan", "the plan says what runs in micro-batches");
    }
    if (plans_trace && !plan) return usage_error("--trace without --plan", "give the plan, too");
    if (!model && !plan) return usage_error("no MODEL", "see stowage models; or give a --plan");
    return Unit{};
  }

  // The step under the plan, if there is one.
  [[nodiscard]] Result<std::optional<StepUnderPlan>> under(Console& console) const {
    if (!plan) return std::optional<StepUnderPlan>();
    Result<StepUnderPlan> step =
        StepUnderPlan::load({*plan, plans_trace}, model, flags, console.files);
    if (!step) return step.error();
    for (const std::string& warning : step->warnings()) console.warn(warning);
    if (!step->changes_step()) {
      console.warn(
          "nothing runs again or in micro-batches under the plan: what is recorded is the plain "
          "step");
    }
    if (step->moves()) console.warn("what the plan moves stays while the step is recorded");
    return std::optional<StepUnderPlan>(std::move(step).value());
  }
};

// The first rank's recording stands for all.
Status compare_ranks(const RunFlags& flags, const Trace& trace, const Console& console) {
  if (flags.ranks == nullptr) return Unit{};
  const auto all = flags.ranks->store().gather("recorded", trace.fingerprint);
  if (!all) return all.error();
  for (std::size_t rank = 1; rank < all->size(); ++rank) {
    if ((*all)[rank] == all->front()) continue;
    console.warn("rank " + std::to_string(rank) +
                 " recorded another step than rank 0: one plan will not do for both");
  }
  return Unit{};
}

Result<int> record_and_write(ProfileOptions& options, const Args& args, Console& console) {
  if (Status status = options.check(console.json); !status) return status.error();
  const Result<std::optional<StepUnderPlan>> loaded = options.under(console);
  if (!loaded) return loaded.error();
  const std::optional<StepUnderPlan>& under = *loaded;
  const Result<std::vector<Parts>> divisions = parse_divisions(options.micro_batches);
  if (!divisions) return divisions.error();
  Result<RunRequest> request =
      under ? under->request() : make_request(*options.model, options.flags, console.files);
  if (!request) return request.error();
  if (!divisions->empty() && request->optimizer.in_backward) {
    return usage_error(
        "--micro-batches with updates in backward: a parameter would be updated by "
        "a part of its gradient",
        "leave update=backward out of --optimizer, or --micro-batches");
  }
  if (!divisions->empty() && !executor::attribution_of(request->spec).empty()) {
    return usage_error("--micro-batches with --attribute", "give a smaller --batch instead");
  }
  Args argv = {"stowage", "profile"};
  argv.insert(argv.end(), args.begin(), args.end());
  std::int64_t warmup = options.warmup.value_or(options.quick ? 1 : 3);
  // Buckets are those of all steps from the third one on.
  if (options.flags.distributed) warmup = std::max<std::int64_t>(2, warmup);
  if (options.flags.ranks != nullptr) {
    std::string told = "--warmup " + std::to_string(warmup);
    for (const std::string& each : options.micro_batches) told += " --micro-batches " + each;
    // One that went on alone would wait for the others.
    if (Status status = options.flags.ranks->check_same("recording", told, "what is recorded");
        !status) {
      return status.error();
    }
  }
  RecordingRequest recording{.run = std::move(request).value(),
                             .warmup = warmup,
                             .quick = options.quick || options.flags.distributed};
  if (options.memory_limit) {
    Result<Bytes> limit = parse_size(*options.memory_limit);
    if (!limit) {
      return usage_error("--memory-limit " + *options.memory_limit + ": " + limit.error().message,
                         limit.error().hint);
    }
    recording.memory_limit = *limit;
  }
  if (under) recording.under = PlanFiles{*options.plan, options.plans_trace};
  const executor::ModelSpec spec = recording.run.spec;
  if (const Status known = check_fused_attention(recording.run); !known) {
    return of_model(known.error(), options.model.value_or(spec.text()), spec);
  }
  const Result<Trace> trace =
      record_sweep(recording, under ? &*under : nullptr, *divisions, argv, console);
  if (!trace) return of_model(trace.error(), options.model.value_or(spec.text()), spec);
  // What every reader asks of it; a file that nobody can load is no recording.
  if (Status status = validate(*trace, "the recording"); !status) return status.error();
  if (Status status = compare_ranks(options.flags, *trace, console); !status) return status.error();
  if (options.flags.ranks != nullptr && !options.flags.ranks->is_first()) return 0;
  if (Status status = write_output(console, *options.output, trace_to_json(*trace)); !status) {
    return status.error();
  }
  if (trace->gpu.size() > 0) {
    if (const std::string text = timing_warning(gpu_totals(*trace)); !text.empty()) {
      console.warn(text);
    }
  }
  if (*options.output == "-") return 0;
  if (console.json) {
    console.out << profile_json(*trace, *options.output);
  } else {
    console.say(profile_text(*trace, *options.output));
  }
  return 0;
}

}  // namespace

int verb_profile(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("profile", "Records one step of a model into a trace");
  ProfileOptions options;
  options.declare(line);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    return as_rank(options.flags, console, "profile",
                   [&](Console& own) { return record_and_write(options, args, own); });
  });
}

}  // namespace stowage::cli
