#include "cli/torch/run_arguments.h"

#include "cli/option_values.h"
#include "cli/torch/ranks.h"
#include "simulator/plan/plan_json.h"
#include "traces/sha256.h"
#include "traces/size_text.h"

namespace stowage::cli {

void RunArguments::declare(CommandLine& line, const std::string& steps_help,
                           std::int64_t default_steps) {
  steps = default_steps;
  line.input("--plan", "FILE", plan, "the plan", true);
  line.input("--trace", "FILE", trace,
             "the trace that the plan was made from (default: where the plan says; else the step "
             "is recorded again)");
  line.option("--model", "SPEC", model, "the plan's model, to be sure");
  line.option("--steps", "N", steps_given,
              steps_help + " (default: " + std::to_string(default_steps) + ")");
  line.option("--memory-limit", "SIZE", limit_given,
              "device memory that the step may use; more is out of memory");
  line.option("--placement", "MODE", placement_given,
              "planned: memory taken once, a place for each allocation; or caching: PyTorch's "
              "allocator (default: the plan's)");
  line.offer("--model", model_words());
  line.offer("--placement", {"planned", "caching"});
  flags.declare(line, "the recording's", "the recording's");
}

Status RunArguments::check_ranks(const PlanInputs& inputs) const {
  if (flags.ranks == nullptr) return Unit{};
  const std::string plan_text = simulator::plan_to_json(inputs.plan);
  if (Status status =
          flags.ranks->check_same("plan", sha256_of(plan_text).substr(0, 12), "the plan");
      !status) {
    return status;
  }
  if (Status status = flags.ranks->check_same("recording", inputs.trace->fingerprint.substr(0, 12),
                                              "the plan's step");
      !status) {
    return status;
  }
  // One that went on alone would wait for the others.
  return flags.ranks->check_same("steps", std::to_string(steps), "--steps");
}

Status RunArguments::read() {
  steps = steps_given.value_or(steps);
  if (steps < 1 || steps > 1'000'000) {
    return usage_error("--steps " + std::to_string(steps) + " is not allowed",
                       "a whole number from 1 to 1000000");
  }
  if (flags.distributed && ((plan && *plan == "-") || (trace && *trace == "-"))) {
    return usage_error("--plan and --trace are read by several processes",
                       "give files, not standard input");
  }
  if (placement_given) {
    const Result<simulator::PlacementMode> named = placement_named(*placement_given);
    if (!named) return named.error();
    placement = *named;
  }
  if (limit_given) {
    Result<Bytes> limit = parse_size(*limit_given);
    if (!limit) {
      return usage_error("--memory-limit " + *limit_given + ": " + limit.error().message,
                         limit.error().hint);
    }
    memory_limit = *limit;
  }
  return Unit{};
}

}  // namespace stowage::cli
