#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cli/torch/child_process.h"
#include "cli/torch/judgement.h"
#include "cli/torch/measured_text.h"
#include "cli/torch/model_error.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/ranks.h"
#include "cli/torch/reference_steps.h"
#include "cli/torch/results_json.h"
#include "cli/torch/run_arguments.h"
#include "cli/torch/step_progress.h"
#include "cli/torch/torch_verbs.h"
#include "cli/torch/verify_runs.h"
#include "executor/attribution_spec.h"
#include "executor/tensor_dump.h"
#include "report/words.h"
#include "simulator/machine/step_interval.h"
#include "simulator/plan/plan_json.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"
#include "traces/trace_json.h"

namespace stowage::cli {

namespace {

// "by up to 0.5"
std::string apart(const executor::DumpDifference& difference) {
  if (!difference.magnitude_known) return "by what their digests do not tell";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", difference.max_abs_diff);
  return std::string("by up to ") + text.data();
}

std::string verdict(const Verification& v) {
  if (v.difference.bitwise) {
    return std::string(v.attributes
                           ? "loss, attributions, parameters and buffers of "
                           : "loss, gradients, parameters, optimizer state and buffers of ") +
           report::count_of(v.compared_steps, "step") + " are bitwise equal (" +
           report::with_commas(v.difference.tensors) + " tensors" +
           (v.difference.by_digest > 0 ? ", by 128-bit digests)" : ")");
  }
  if (!v.repeatability.bitwise) {
    return "the model does not repeat itself (two runs without a plan differ " +
           apart(v.repeatability) + "); the planned run differs " + apart(v.difference);
  }
  return report::with_commas(v.difference.differing) + " of " +
         report::with_commas(v.difference.tensors) + " tensors differ, first " +
         v.difference.first + ", " + apart(v.difference);
}

// "; without the plan 840 MB"; nothing where no such step was run.
std::string beside_reference(const Verification& v, const std::string& figure) {
  if (v.reference.too_large) return "";
  return (v.micro_batches.empty() ? "; without the plan "
                                  : "; in the same parts with nothing moved ") +
         figure;
}

std::string reference_text(const Verification& v) {
  std::string text;
  if (!v.reference.too_large && !has_times(v.reference)) {
    text += "  reference   updates through the host, as the plan; its times are those of copies\n";
  }
  if (const std::optional<TooLarge>& why = v.reference.too_large) {
    text += "  reference   everything offloaded, op by op, since with everything kept it takes " +
            report::exact_bytes(why->resident) + " and may have " +
            report::exact_bytes(why->limit) + "; its times are those of copies\n";
  }
  if (v.reference_reused) text += "  reference   kept in " + v.reference_file + "\n";
  return text;
}

std::string verify_text(const Verification& v, const Trace& trace) {
  std::string text =
      (v.passed() ? "verified: " : "NOT verified: ") + report::run_line(trace) + "\n";
  for (const std::string& failure : v.failures) text += "  failed      " + failure + "\n";
  text += "  results     " + verdict(v) + "\n";
  text += reference_text(v);
  if (!v.micro_batches.empty()) {
    text += "  in parts    " + v.micro_batches + ", the reference too; the step at once " +
            (!v.beside_plain           ? "runs out of memory"
             : v.beside_plain->bitwise ? "gives the same bits"
                                       : "is other arithmetic, apart " + apart(*v.beside_plain)) +
            "\n";
  }
  text += "  peak        " + report::exact_bytes(v.planned.peak_requested) +
          " requested, predicted " + report::with_commas(v.predicted.peak_requested) +
          ", difference " +
          report::with_commas(v.planned.peak_requested - v.predicted.peak_requested) + " bytes" +
          beside_reference(v, report::exact_bytes(v.reference.peak_requested)) + "\n";
  text += counters_text(v.planned, v.predicted, v.caching_reserved);
  text += "  step time   " + format_time(v.planned.step_ns) + ", predicted " +
          format_time(v.predicted.step) +
          ratio_text(v.planned.step_ns, v.predicted.step,
                     simulator::step_interval(trace, v.predicted.step, v.spread())) +
          (has_times(v.reference) ? beside_reference(v, format_time(v.reference.step_ns)) : "") +
          "\n";
  if (v.quick) text += "              (a quick look: times of few steps)\n";
  text += "  stall       " + format_time(v.planned.stall_ns) + ", predicted " +
          format_time(v.predicted.stall) + "\n";
  if (trace.env.device == "cpu") {
    text +=
        "              (times are reported, not judged: on the CPU device the copy threads "
        "and other programs compete with compute)\n";
  }
  text += "  host        " + report::exact_bytes(v.planned.host_bytes) + "\n";
  return text + parameters_text(v.planned) + memory_text(v.planned) + ranks_text(v.planned);
}

Result<double> tolerance_of(const std::optional<std::string>& rtol) {
  if (!rtol) return 0.0;
  char* end = nullptr;
  const double tolerance = std::strtod(rtol->c_str(), &end);
  if (end == rtol->c_str() || *end != '\0' || !(tolerance >= 0) || std::isinf(tolerance)) {
    return usage_error("--rtol " + *rtol + " is not allowed", "a number such as 1e-5");
  }
  return tolerance;
}

Status check_reference(const RunArguments& run, const std::optional<std::string>& file,
                       const std::optional<std::string>& rtol) {
  if (file && run.flags.distributed) {
    return usage_error("--reference with --distributed", "each rank has a reference of its own");
  }
  if (file && run.quick) {
    return usage_error("--quick with --reference",
                       "a reference that is kept has the times of all steps");
  }
  if (file && rtol) {
    return usage_error("--rtol needs values, and --reference keeps digests",
                       "leave one of them out");
  }
  if (file == "-") return usage_error("--reference - is not allowed", "give a file");
  return Unit{};
}

// Where a child that is started while `file` is there reads `text`.
Result<std::string> hand_over(const ScratchFile& file, const std::string& text) {
  if (Status status = write_descriptor(file.descriptor(), text); !status) return status.error();
  return "/proc/self/fd/" + std::to_string(file.descriptor());
}

// What the children are started with; they read the same plan and trace. Where there is no file of
// one (the plan came from stdin, the recording was made again) they read a scratch file.
struct PassedOn {
  Args arguments;
  ScratchFile trace;
  ScratchFile plan;
};

Result<PassedOn> passed_on(const RunArguments& run, const PlanInputs& inputs, bool digests) {
  Result<ScratchFile> trace = ScratchFile::create();
  if (!trace) return trace.error();
  Result<ScratchFile> plan = ScratchFile::create();
  if (!plan) return plan.error();
  std::string plan_file = *run.plan;
  std::string trace_file = inputs.trace_file;
  if (trace_file.empty()) {
    Result<std::string> file = hand_over(*trace, trace_to_json(*inputs.trace));
    if (!file) return file.error();
    trace_file = std::move(file).value();
  }
  if (plan_file == "-") {  // was read to its end when the inputs were
    Result<std::string> file = hand_over(*plan, simulator::plan_to_json(inputs.plan));
    if (!file) return file.error();
    plan_file = std::move(file).value();
  }
  Args arguments = {"--plan", plan_file, "--trace", trace_file};
  if (run.flags.seed) {
    arguments.insert(arguments.end(), {"--seed", std::to_string(*run.flags.seed)});
  }
  if (run.placement_given) {
    arguments.insert(arguments.end(), {"--placement", *run.placement_given});
  }
  if (digests) arguments.emplace_back("--dump-digests");
  if (run.quick) arguments.emplace_back("--quick");
  if (run.flags.ranks != nullptr) arguments.emplace_back("--distributed");
  return PassedOn{std::move(arguments), std::move(trace).value(), std::move(plan).value()};
}

Demands demands_of(const PlanInputs& inputs, const MeasuredRun& planned, bool tolerance_given) {
  return {.budget = inputs.plan.budget,
          .tolerance_given = tolerance_given,
          .moves = !inputs.schedule.tenants.empty() || !inputs.structure.empty(),
          .allocator_exact = inputs.allocator_exact,
          .active_varies = inputs.active_varies,
          .later_segments = inputs.later_segments,
          .placed = planned.memory.has_value() && inputs.predicted.peak_reserved >= 0};
}

// Where the plan has micro-batches.
Status compare_with_plain(const VerifiedRun& planned, const PlanInputs& inputs,
                          const Args& arguments, Verification& v) {
  if (inputs.structure.parts.empty()) return Unit{};
  v.micro_batches = simulator::parts_text(inputs.structure.parts);
  auto plain = beside_plain(planned, v.compared_steps, arguments);
  if (!plain) return plain.error();
  v.beside_plain = std::move(plain).value();
  return Unit{};
}

void say_verified(Console& console, const Verification& v, const Judgement& judgement,
                  const Trace& trace) {
  for (const std::string& remark : judgement.remarks) console.warn(remark);
  // In words on stdout where nothing else is to be read there.
  for (const std::string& failure : v.failures) {
    if (console.json) console.warn(failure);
  }
  for (const std::string& warning : v.planned.warnings) console.warn(warning);
  if (console.json) {
    console.out << verification_json(trace, v);
  } else {
    console.say(verify_text(v, trace));
  }
}

void declare_comparison(CommandLine& line, RunArguments& run, std::optional<std::string>& rtol,
                        std::optional<std::string>& reference_file) {
  line.flag("--quick", run.quick, "no more steps than are needed: times are a first look");
  line.option("--rtol", "R", rtol,
              "accept |planned - reference| <= R * |reference| (default: bitwise equal)");
  line.kept("--reference", "FILE", reference_file,
            "keep the reference there, and take it from there when it is of the same step");
  line.detail(
      "Three processes: the reference (nothing moves) twice, to see whether the model\n"
      "repeats itself, and the planned run, all from the same seed. Compared are the loss,\n"
      "every gradient, parameter, piece of optimizer state and buffer of each step, and the\n"
      "peaks with the prediction.\n"
      "Where the step does not fit the device, or --memory-limit, with everything kept, the\n"
      "reference is run with everything offloaded, op by op.\n"
      "Of a plan with micro-batches the reference has the same ones, and one run more is of the\n"
      "step with all of the batch at once, whose difference is reported and not judged.\n"
      "Exit code 1 when something differs, with one line for each demand that is not met.\n"
      "--reference keeps the reference for other plans of the same step: then only the planned\n"
      "run is made.");
}

Result<int> verify_plan(RunArguments& run, const std::optional<std::string>& rtol,
                        const std::optional<std::string>& reference_file, Console& console) {
  if (Status status = run.read(); !status) return status.error();
  const Result<double> tolerance = tolerance_of(rtol);
  if (!tolerance) return tolerance.error();
  if (Status status = check_reference(run, reference_file, rtol); !status) return status.error();
  if (run.flags.distributed) run.quick = true;  // as many steps on all ranks
  Result<PlanInputs> inputs =
      load_plan_inputs(*run.plan, run.trace, run.model, run.placement, run.flags, console.files);
  if (!inputs) return inputs.error();
  if (Status status = run.check_ranks(*inputs); !status) return status.error();
  std::optional<KeptReference> kept;
  if (reference_file) {
    Result<std::optional<KeptReference>> found = find_reference(*reference_file);
    if (!found) return found.error();
    kept = std::move(found).value();
  }
  for (const std::string& warning : inputs->warnings) console.warn(warning);

  Result<PassedOn> children = passed_on(run, *inputs, reference_file.has_value());
  if (!children) return children.error();
  for (std::string& word : progress_arguments(console)) {
    children->arguments.push_back(std::move(word));
  }
  Args limited = children->arguments;
  if (run.limit_given) limited.insert(limited.end(), {"--memory-limit", *run.limit_given});

  Verification v;
  v.plan_file = *run.plan;
  v.trace_file = inputs->trace_file;
  v.predicted = inputs->predicted;
  v.caching_reserved = inputs->caching_reserved;
  v.attributes = !executor::attribution_of(inputs->request.spec).empty();
  v.compared_steps = run.steps;
  v.quick = run.quick;
  v.reference_file = reference_file.value_or("");
  const auto of_this_model = [&](const Error& error) {
    const executor::ModelSpec& spec = inputs->request.spec;
    return of_model(error, spec.text(), spec);
  };
  Result<VerifiedRun> planned = run_in_child("planned", run.steps, limited);
  if (!planned) return of_this_model(planned.error());
  Result<Reference> reference =
      reference_of(planned->run, kept, v.reference_file, run.steps, limited, *tolerance);
  if (!reference) return of_this_model(reference.error());
  if (!reference->note.empty()) console.note(reference->note);
  v.planned = planned->run;
  v.reference = reference->run;
  v.reference_reused = reference->reused;
  v.repeatability = reference->repeatability;
  Result<executor::DumpDifference> difference =
      executor::compare_dumps(planned->dump.descriptor(), reference->dump.descriptor(), *tolerance);
  if (!difference) return difference.error();
  v.difference = *difference;
  const Status plain = compare_with_plain(*planned, *inputs, children->arguments, v);
  if (!plain) return of_this_model(plain.error());
  Judgement judgement = judge(v, demands_of(*inputs, v.planned, rtol.has_value()));
  v.failures = std::move(judgement.failures);
  const bool passed = v.passed();
  if (run.flags.ranks != nullptr) {
    auto all = lines_of_ranks(*run.flags.ranks, "failures", v.failures);
    if (!all) return all.error();
    v.failures = std::move(all).value();
  }
  say_verified(console, v, judgement, *inputs->trace);
  return passed ? 0 : static_cast<int>(ErrorCode::condition);
}

}  // namespace

int verb_verify(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("verify", "Runs the model with and without the plan and compares");
  RunArguments run;
  std::optional<std::string> rtol;
  std::optional<std::string> reference_file;
  run.declare(line, "training steps to compare; for the times more are run", 3);
  declare_comparison(line, run, rtol, reference_file);
  line.example("stowage verify --plan p.json --json");
  run.flags.declare_ranks(line, "stowage verify --distributed --plan p.json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    return as_rank(run.flags, console, "verify",
                   [&](Console& own) { return verify_plan(run, rtol, reference_file, own); });
  });
}

}  // namespace stowage::cli
