#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "cli/torch/child_process.h"
#include "cli/torch/measured_text.h"
#include "cli/torch/plan_inputs.h"
#include "cli/torch/results_json.h"
#include "cli/torch/run_arguments.h"
#include "cli/torch/torch_verbs.h"
#include "cli/words.h"
#include "executor/tensor_dump.h"
#include "simulator/plan_json.h"
#include "traces/size_text.h"
#include "traces/trace_json.h"

namespace stowage::cli {

namespace {

// Steps that are timed at least, whatever --steps says (docs/executor.md).
constexpr std::int64_t kTimedSteps = 12;

struct ChildRun {
  MeasuredRun run;
  ScratchFile dump;
};

Result<ChildRun> run_in_child(const std::string& mode, const RunArguments& arguments,
                              std::int64_t compared, const Args& passed_on) {
  Result<ScratchFile> result = ScratchFile::create();
  if (!result) return result.error();
  Result<ScratchFile> dump = ScratchFile::create();
  if (!dump) return dump.error();
  Args words = {"run-steps",
                "--mode",
                mode,
                "--steps",
                std::to_string(std::max(kTimedSteps, arguments.steps)),
                "--dumped-steps",
                std::to_string(compared),
                "--result-fd",
                std::to_string(result->descriptor()),
                "--dump-fd",
                std::to_string(dump->descriptor())};
  words.insert(words.end(), passed_on.begin(), passed_on.end());
  if (Status status = run_child(words); !status) return status.error();
  Result<std::string> text = result->content();
  if (!text) return text.error();
  Result<MeasuredRun> run = measured_run_from_json(*text);
  if (!run) return run.error();
  return ChildRun{std::move(run).value(), std::move(dump).value()};
}

std::string verdict(const Verification& v) {
  if (v.difference.bitwise) {
    return "loss, gradients and parameters of " + count_of(v.compared_steps, "step") +
           " are bitwise equal (" + with_commas(v.difference.tensors) + " tensors)";
  }
  if (!v.repeatability.bitwise) {
    return "the model does not repeat itself (two runs without a plan differ by up to " +
           std::to_string(v.repeatability.max_abs_diff) + "); the planned run differs by up to " +
           std::to_string(v.difference.max_abs_diff);
  }
  return with_commas(v.difference.differing) + " of " + with_commas(v.difference.tensors) +
         " tensors differ, first " + v.difference.first + ", by up to " +
         std::to_string(v.difference.max_abs_diff);
}

std::string verify_text(const Verification& v, const Trace& trace) {
  std::string text = (v.passed ? "verified: " : "NOT verified: ") + run_line(trace) + "\n";
  text += "  results     " + verdict(v) + "\n";
  text += "  peak        " + exact_bytes(v.planned.peak_requested) + " requested, predicted " +
          with_commas(v.predicted.peak_requested) + ", difference " +
          with_commas(v.planned.peak_requested - v.predicted.peak_requested) +
          " bytes; without the plan " + exact_bytes(v.reference.peak_requested) + "\n";
  text += counters_text(v.planned, v.predicted);
  text += "  step time   " + format_time(v.planned.step_ns) + ", predicted " +
          format_time(v.predicted.step) + ratio_text(v.planned.step_ns, v.predicted.step) +
          "; without the plan " + format_time(v.reference.step_ns) + "\n";
  text += "  stall       " + format_time(v.planned.stall_ns) + ", predicted " +
          format_time(v.predicted.stall) + "\n";
  if (trace.env.device == "cpu") {
    text +=
        "              (times are reported, not judged: on the CPU device the copy threads "
        "and other programs compete with compute)\n";
  }
  text += "  host        " + exact_bytes(v.planned.host_bytes) + "\n";
  return text + parameters_text(v.planned);
}

Bytes peak_of(const MeasuredRun& run, simulator::PeakKind kind) {
  switch (kind) {
    case simulator::PeakKind::requested:
      return run.peak_requested;
    case simulator::PeakKind::active:
      return run.peak_active;
    case simulator::PeakKind::reserved:
      return run.peak_reserved;
  }
  STOWAGE_ASSERT(false && "unknown counter");
}

// What makes the comparison void or the plan useless, whatever else holds; empty = nothing.
std::vector<std::string> objections(const Verification& v, const simulator::PlanBudget& budget) {
  std::vector<std::string> found;
  const auto compared =
      std::min(v.planned.steps.size(), static_cast<std::size_t>(v.compared_steps));
  for (std::size_t k = 0; k < compared; ++k) {
    if (std::isfinite(v.planned.steps[k].loss)) continue;
    found.push_back("the loss of step " + std::to_string(k) +
                    " is not a number: equal results say nothing about the gradients");
    break;
  }
  const Bytes peak = peak_of(v.planned, budget.on);
  if (budget.device && peak > *budget.device) {
    found.push_back(std::string("the peak ") + simulator::name_of(budget.on) + " of " +
                    exact_bytes(peak) + " is above the plan's budget of " +
                    exact_bytes(*budget.device));
  }
  return found;
}

// Bitwise, or within the tolerance that was asked for; bytes as predicted.
bool passes(const Verification& v, bool tolerance_given) {
  const bool results = v.difference.bitwise || (tolerance_given && v.difference.within_tolerance) ||
                       (!v.repeatability.bitwise && std::isfinite(v.repeatability.max_abs_diff) &&
                        v.difference.max_abs_diff <= v.repeatability.max_abs_diff);
  return results && v.planned.on_plan && v.planned.peaks_constant &&
         v.planned.peak_requested == v.predicted.peak_requested &&
         v.planned.host_bytes == v.predicted.host;
}

}  // namespace

int verb_verify(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("verify", "Runs the model with and without the plan and compares");
  RunArguments run;
  std::optional<std::string> rtol;
  run.declare(line);
  line.option("--rtol", "R", rtol,
              "accept |planned - reference| <= R * |reference| (default: bitwise equal)");
  line.detail(
      "Three processes: the reference (nothing moves) twice, to see whether the model\n"
      "repeats itself, and the planned run, all from the same seed. Compared are the loss,\n"
      "every gradient and every parameter of each step, and the peaks with the prediction.\n"
      "Exit code 1 when something differs.");
  line.example("stowage verify --plan p.json --json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (Status status = run.read(3); !status) return status.error();
    double tolerance = 0;
    if (rtol) {
      char* end = nullptr;
      tolerance = std::strtod(rtol->c_str(), &end);
      if (end == rtol->c_str() || *end != '\0' || !(tolerance >= 0) || std::isinf(tolerance)) {
        return usage_error("--rtol " + *rtol + " is not allowed", "a number such as 1e-5");
      }
    }
    Result<PlanInputs> inputs = load_plan_inputs(*run.plan, run.trace, run.model, run.flags);
    if (!inputs) return inputs.error();
    for (const std::string& warning : inputs->warnings) console.warn(warning);

    // The children read the same plan and trace; a recording made again goes to them as a file.
    ScratchFile* recorded = nullptr;
    Result<ScratchFile> scratch = ScratchFile::create();
    if (!scratch) return scratch.error();
    Args passed_on = {"--plan", *run.plan, "--trace", inputs->trace_file};
    if (inputs->trace_file.empty()) {
      recorded = &*scratch;
      const std::string text = trace_to_json(*inputs->trace);
      if (Status status = write_descriptor(recorded->descriptor(), text); !status) {
        return status.error();
      }
      passed_on.back() = "/proc/self/fd/" + std::to_string(recorded->descriptor());
    }
    Result<ScratchFile> plan_copy = ScratchFile::create();
    if (!plan_copy) return plan_copy.error();
    if (*run.plan == "-") {  // was read to its end above
      const std::string text = simulator::plan_to_json(inputs->plan);
      if (Status status = write_descriptor(plan_copy->descriptor(), text); !status) {
        return status.error();
      }
      passed_on[1] = "/proc/self/fd/" + std::to_string(plan_copy->descriptor());
    }
    if (run.flags.seed) {
      passed_on.insert(passed_on.end(), {"--seed", std::to_string(*run.flags.seed)});
    }
    Args planned_args = passed_on;
    if (run.limit_given) {
      planned_args.insert(planned_args.end(), {"--memory-limit", *run.limit_given});
    }

    Verification v;
    v.plan_file = *run.plan;
    v.trace_file = inputs->trace_file;
    v.predicted = inputs->predicted;
    v.compared_steps = run.steps;
    Result<ChildRun> reference = run_in_child("reference", run, run.steps, passed_on);
    if (!reference) return reference.error();
    Result<ChildRun> again = run_in_child("reference", run, run.steps, passed_on);
    if (!again) return again.error();
    Result<ChildRun> planned = run_in_child("planned", run, run.steps, planned_args);
    if (!planned) return planned.error();
    v.reference = reference->run;
    v.planned = planned->run;
    Result<executor::DumpDifference> repeat =
        executor::compare_dumps(again->dump.descriptor(), reference->dump.descriptor(), tolerance);
    if (!repeat) return repeat.error();
    v.repeatability = *repeat;
    Result<executor::DumpDifference> difference = executor::compare_dumps(
        planned->dump.descriptor(), reference->dump.descriptor(), tolerance);
    if (!difference) return difference.error();
    v.difference = *difference;
    const std::vector<std::string> against = objections(v, inputs->plan.budget);
    v.passed = passes(v, rtol.has_value()) && against.empty();

    for (const std::string& objection : against) console.warn(objection);
    for (const std::string& warning : v.planned.warnings) console.warn(warning);
    if (console.json) {
      console.out << verification_json(v);
    } else {
      console.out << verify_text(v, *inputs->trace);
    }
    return v.passed ? 0 : static_cast<int>(ErrorCode::condition);
  });
}

}  // namespace stowage::cli
