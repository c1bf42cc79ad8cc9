#include "cli/memory_check.h"

#include <algorithm>

#include "cli/console.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

constexpr std::size_t kLargest = 10;

std::int64_t with_share(std::int64_t base, std::int64_t of, Ppm share) {
  return base + static_cast<std::int64_t>(Wide{of} * share / kPpm);
}

std::string more(std::int64_t now, std::int64_t then) {
  return report::with_commas(now - then) + " bytes more than the baseline's " +
         report::with_commas(then) + " (" + report::relative(now, then) + ")";
}

CheckCase skipped(const std::string& name, const std::string& why) {
  CheckCase result;
  result.name = name;
  result.outcome = CaseOutcome::skipped;
  result.message = why;
  return result;
}

CheckCase bytes_case(const std::string& name, Bytes now, Bytes then, Ppm tolerance) {
  CheckCase result;
  result.name = name;
  result.measured = now;
  result.baseline = then;
  result.limit = with_share(then, then, tolerance);
  result.message = report::exact_bytes(now);
  if (now > *result.limit) {
    result.outcome = CaseOutcome::failed;
    result.message += " is " + more(now, then);
  } else if (now > then) {
    result.message += ", within the tolerance: " + more(now, then);
  } else if (now == then) {
    result.message += ", as in the baseline";
  } else {
    result.message += ", " + report::with_commas(then - now) + " bytes less than the baseline's " +
                      report::with_commas(then);
    result.can_be_lowered = with_share(now, then, tolerance) < then;
    if (result.can_be_lowered) {
      result.message += ": the baseline can be lowered with --update-baseline";
    }
  }
  return result;
}

CheckCase stall_case(const CheckInput& input, const StepCost& then) {
  const StepCost& now = input.now;
  CheckCase result;
  result.name = "stall";
  result.measured = now.stall_ns;
  result.message = format_time(now.stall_ns) + " of a step of " + format_time(now.step_ns);
  const std::string why = !input.stall_not_judged.empty()         ? input.stall_not_judged
                          : then.stall_ns < 0 || then.step_ns < 0 ? "the baseline has no times"
                                                                  : std::string();
  if (!why.empty()) {
    result.outcome = CaseOutcome::skipped;
    result.message += "; not judged: " + why;
    return result;
  }
  result.baseline = then.stall_ns;
  result.limit = with_share(then.stall_ns, then.step_ns, input.tolerances.stall);
  result.message +=
      ", in the baseline " + format_time(then.stall_ns) + " of " + format_time(then.step_ns);
  if (now.stall_ns > *result.limit) {
    result.outcome = CaseOutcome::failed;
    result.message += ": more than " + format_time(*result.limit);
  }
  return result;
}

void add_baseline_cases(const CheckInput& input, std::vector<CheckCase>& cases) {
  const StepCost& now = input.now;
  const StepCost& then = input.baseline->measured;
  CheckCase comparable;
  comparable.name = "baseline";
  if (!input.incomparable.empty()) {
    comparable.outcome = CaseOutcome::failed;
    comparable.message = "the baseline is not comparable: " + input.incomparable.front();
    comparable.details.assign(input.incomparable.begin() + 1, input.incomparable.end());
    comparable.details.emplace_back(
        "run it as the baseline was run, or write a new one with --update-baseline");
    cases.push_back(std::move(comparable));
    for (const char* name :
         {"peak_requested", "peak_active", "peak_reserved", "host_bytes", "stall"}) {
      cases.push_back(skipped(name, "the baseline is not comparable"));
    }
    return;
  }
  comparable.message = "comparable";
  cases.push_back(std::move(comparable));
  const Tolerances& may = input.tolerances;
  cases.push_back(bytes_case("peak_requested", now.peak_requested, then.peak_requested, may.exact));
  if (now.peak_reserved < 0 || then.peak_reserved < 0) {
    cases.push_back(skipped("peak_active", "the same as requested on the CPU device"));
    cases.push_back(skipped("peak_reserved", "the CPU device has no such counter"));
  } else {
    cases.push_back(bytes_case("peak_active", now.peak_active, then.peak_active, may.allocator));
    CheckCase reserved =
        bytes_case("peak_reserved", now.peak_reserved, then.peak_reserved, may.allocator);
    if (!input.reserved_not_judged.empty()) {
      reserved.outcome = CaseOutcome::skipped;
      reserved.message += "; not judged: " + input.reserved_not_judged;
    }
    cases.push_back(std::move(reserved));
  }
  cases.push_back(bytes_case("host_bytes", now.host_bytes, then.host_bytes, may.exact));
  cases.push_back(stall_case(input, then));
}

CheckCase budget_case(const CheckInput& input) {
  CheckCase result;
  result.name = "budget";
  const Bytes peak = input.budget_on == simulator::PeakKind::requested ? input.now.peak_requested
                     : input.budget_on == simulator::PeakKind::active  ? input.now.peak_active
                                                                       : input.now.peak_reserved;
  result.measured = peak;
  result.limit = *input.budget;
  result.message = std::string("the peak ") + simulator::name_of(input.budget_on) + " of " +
                   report::exact_bytes(peak);
  if (peak > *input.budget) {
    result.outcome = CaseOutcome::failed;
    result.message += " is " + report::with_commas(peak - *input.budget) +
                      " bytes above the budget of " + report::exact_bytes(*input.budget);
  } else {
    result.message += " is within the budget of " + report::exact_bytes(*input.budget);
  }
  return result;
}

// What is largest now, for a budget without a baseline.
void name_largest(CheckCase& failed, const report::PeakContent& now) {
  std::vector<report::PeakRow> rows = now.on_device;
  std::stable_sort(
      rows.begin(), rows.end(),
      [](const report::PeakRow& a, const report::PeakRow& b) { return a.bytes > b.bytes; });
  failed.details.emplace_back("the largest at the peak:");
  for (std::size_t i = 0; i < std::min(rows.size(), kLargest); ++i) {
    failed.details.push_back(report::row_text(rows[i]));
  }
}

std::string moment(const report::PeakContent& content) {
  std::string text = content.op_name.empty() ? "between ops" : content.op_name;
  if (!content.layer.empty()) text += " in " + content.layer;
  if (!content.phase.empty()) text += ", " + content.phase;
  return text;
}

}  // namespace

const char* name_of(CaseOutcome value) {
  switch (value) {
    case CaseOutcome::passed:
      return "passed";
    case CaseOutcome::failed:
      return "failed";
    case CaseOutcome::skipped:
      return "skipped";
  }
  STOWAGE_ASSERT(false && "unknown outcome");
}

std::vector<CheckCase> cases_of(const CheckInput& input) {
  std::vector<CheckCase> cases;
  if (input.baseline) add_baseline_cases(input, cases);
  if (input.budget) cases.push_back(budget_case(input));
  return cases;
}

void explain(std::vector<CheckCase>& cases, const std::optional<Baseline>& baseline,
             const report::PeakContent& now) {
  for (CheckCase& each : cases) {
    if (each.outcome != CaseOutcome::failed || !each.measured || each.name == "stall") continue;
    if (!baseline) {
      name_largest(each, now);
      continue;
    }
    const report::PeakContent& then = baseline->content;
    const bool host = each.name == "host_bytes";
    each.grew = host ? report::grown(then.on_host, now.on_host)
                     : report::grown(then.on_device, now.on_device);
    if (!host && moment(then) != moment(now)) {
      each.details.push_back("the peak is now at " + moment(now) + "; it was at " + moment(then));
    }
    if (!host && now.peak_requested == then.peak_requested && each.name != "peak_requested") {
      each.details.emplace_back(
          "the requested bytes are those of the baseline: the difference is the allocator's");
    }
    if (each.name == "budget" && each.grew.empty()) name_largest(each, now);
  }
}

bool all_passed(const std::vector<CheckCase>& cases) {
  return std::none_of(cases.begin(), cases.end(),
                      [](const CheckCase& each) { return each.outcome == CaseOutcome::failed; });
}

Result<Ppm> parse_share(const std::string& option, const std::string& text) {
  if (text == "0" || text == "0%") return Ppm{0};
  Result<Bytes> share = usage_error("not a share");
  if (text.ends_with("%")) share = parse_size(text, kPpm);
  if (!share || *share > Bytes{kPpm} * 10) {
    return usage_error(option + " " + text + " is not allowed", "a share such as 1%, or 0");
  }
  return static_cast<Ppm>(*share);
}

}  // namespace stowage::cli
