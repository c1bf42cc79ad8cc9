#include "cli/torch/check_options.h"

#include "cli/option_values.h"
#include "traces/file_io.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

constexpr std::int64_t kLeastCheckSteps = 3;  // peaks count from the third on
constexpr std::int64_t kMostSteps = 1'000'000;

}  // namespace

void CheckOptions::declare(CommandLine& line) {
  line.input("--plan", "FILE", plan, "the plan to run under");
  line.option("--model", "SPEC", model, "without a plan: the model, whose plain step is run");
  line.offer("--model", model_words());
  line.input("--trace", "FILE", trace,
             "the plan's trace (default: where the plan says, when it is there)");
  line.option("--steps", "N", steps,
              "training steps to run (4; 15 on a GPU under a plan, where the stall is judged); "
              "peaks count from the third on");
  line.kept("--baseline", "FILE", baseline, "what the step needed before; more is a failure",
            &update);
  line.flag("--update-baseline", update, "write that file, and its folder, instead of comparing");
  line.option("--budget", "SIZE", budget_text,
              "the most that the peak may be (default: the plan's)");
  line.option("--budget-on", "NAME", budget_on_text,
              "requested, active or reserved (default: the plan's, else active)");
  line.option("--placement", "MODE", placement_text,
              "planned: memory taken once, a place for each allocation; or caching: PyTorch's "
              "allocator (default: the plan's)");
  line.option(
      "--tolerance", "SHARE", tolerance_text,
      "more than the baseline's bytes that passes, such as 1% (default: 0 for requested and "
      "host bytes, 1% for active and reserved)");
  line.option("--stall-tolerance", "SHARE", stall_tolerance_text,
              "more stall that passes, as a share of the baseline's step time (2%)");
  line.offer("--budget-on", {"requested", "active", "reserved"});
  line.offer("--placement", {"planned", "caching"});
  line.output("--junit", "FILE", junit, "the answer as JUnit XML");
  line.offer_endings("--junit", {".xml"});
  line.option("--name", "TEXT", name, "of the test in the JUnit file (default: the model)");
  flags.declare(line, "the plan's, else as in stowage profile",
                "1 on the CPU device, or the plan's");
}

Status CheckOptions::read_limits() {
  if (budget_text) {
    Result<Bytes> size = parse_size(*budget_text);
    if (!size) {
      return usage_error("--budget " + *budget_text + ": " + size.error().message,
                         size.error().hint);
    }
    budget = *size;
  }
  if (budget_on_text) {
    for (const auto kind : {simulator::PeakKind::requested, simulator::PeakKind::active,
                            simulator::PeakKind::reserved}) {
      if (*budget_on_text == simulator::name_of(kind)) budget_on = kind;
    }
    if (!budget_on) {
      return usage_error("--budget-on " + *budget_on_text + " is not allowed",
                         "requested, active or reserved");
    }
  }
  if (placement_text) {
    const Result<simulator::PlacementMode> named = placement_named(*placement_text);
    if (!named) return named.error();
    placement = *named;
  }
  if (tolerance_text) {
    Result<Ppm> share = parse_share("--tolerance", *tolerance_text);
    if (!share) return share.error();
    tolerances.exact = tolerances.allocator = *share;
  }
  if (stall_tolerance_text) {
    Result<Ppm> share = parse_share("--stall-tolerance", *stall_tolerance_text);
    if (!share) return share.error();
    tolerances.stall = *share;
  }
  return Unit{};
}

Status CheckOptions::check_what_is_asked() const {
  if (!plan && !model) return usage_error("nothing to run", "give --plan FILE or --model SPEC");
  if (trace && !plan) return usage_error("--trace is a plan's", "give --plan FILE, too");
  if (placement_text && !plan)
    return usage_error("--placement is a plan's", "give --plan FILE, too");
  if (update && !baseline) {
    return usage_error("--update-baseline needs a file", "give --baseline FILE, too");
  }
  if (!plan && !baseline && !budget_text) {
    return usage_error("nothing to compare with", "give --baseline FILE or --budget SIZE");
  }
  if (steps && (*steps < kLeastCheckSteps || *steps > kMostSteps)) {
    return usage_error("--steps " + std::to_string(*steps) + " is not allowed",
                       "a whole number from 3 to 1000000: peaks count from the third step on");
  }
  return Unit{};
}

Status CheckOptions::check_files() const {
  if ((baseline && *baseline == "-") || (junit && *junit == "-")) {
    return usage_error("a baseline and a JUnit file need a name", "- is not allowed");
  }
  return Unit{};
}

Status CheckOptions::read() {
  if (Status status = check_what_is_asked(); !status) return status;
  if (Status status = check_files(); !status) return status;
  return read_limits();
}

}  // namespace stowage::cli
