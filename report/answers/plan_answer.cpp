#include "report/answers/plan_answer.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "planner/budget.h"
#include "planner/plan_as_recorded.h"
#include "report/answers/leaving_text.h"
#include "report/answers/note_lines.h"
#include "report/answers/recompute_text.h"
#include "report/answers/reserved_rows.h"
#include "report/answers/terminal_plot.h"
#include "report/answers/text_table.h"
#include "report/inspect.h"
#include "report/less_memory.h"
#include "report/memory_curve.h"
#include "report/simulation.h"
#include "report/words.h"
#include "simulator/machine/step_interval.h"
#include "simulator/plan/decisions.h"
#include "simulator/step/recomputed_step.h"
#include "traces/build_info.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

using planner::PlanKind;
using planner::PlanOutcome;

constexpr std::size_t kFloorRows = 8;

std::string counter_of(const PlanAnswer& answer) {
  return std::string("peak ") + simulator::name_of(answer.budget_on);
}

std::string floor_place(const planner::MemoryFloor& floor) {
  std::string text = floor.op_name.empty() ? "no op" : floor.op_name;
  return text + " in layer " + (floor.layer.empty() ? "step" : floor.layer);
}

std::string gap_text(std::int64_t ppm) {
  return percent(ppm, kPpm);
}

bool is_over_host_budget(const PlanOutcome& outcome) {
  return outcome.plan.budget.host && outcome.predicted.host_bytes > *outcome.plan.budget.host;
}

// Where the host's is the only one that is broken. A device budget is kept with an allowance.
bool is_over_host_budget_alone(const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  const auto& device = outcome.plan.budget.device;
  return is_over_host_budget(outcome) &&
         (!device || planner::peak_of(outcome.predicted, answer.budget_on) <= *device);
}

std::string on_the_host(const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  return exact_bytes(outcome.predicted.host_bytes, answer.units) +
         " on the host; the host budget is " + exact_bytes(*outcome.plan.budget.host, answer.units);
}

// "what is pinned (3 decisions)"
std::string pinned_words(const PlanOutcome& outcome) {
  return "what is pinned (" + count_of(outcome.pinned, "decision") + ")";
}

// " with what is pinned (..)" where something is.
std::string with_pins(const PlanOutcome& outcome) {
  return outcome.pinned > 0 ? " with " + pinned_words(outcome) : std::string();
}

// What a peak cannot be lowered with.
std::string means_of(const PlanOutcome& outcome) {
  const std::string text = outcome.allowed.text();
  return text.empty() ? "offload" : "what is allowed (" + text + ")";
}

// "Within the budget", of which bytes where more is reserved; `rest`: what else is told of it.
std::string kept_text(const PlanAnswer& answer, const std::string& within,
                      const std::string& rest) {
  const std::string over =
      over_the_card(answer.outcome.plan.budget, answer.outcome.predicted, answer.units);
  if (over.empty()) return within + rest + ".\n";
  return within + " of " + simulator::name_of(answer.budget_on) + " bytes" + rest + over +
         " (--fit is for a card).\n";
}

// Proven: with what is pinned none is within the budget, in whole pages.
bool is_for_the_pins(const PlanOutcome& outcome) {
  const auto& budget = outcome.plan.budget;
  return budget.device && planner::lowest_budget(outcome.floor.bytes, budget.on) > *budget.device;
}

std::string verdict(const PlanAnswer& answer, const Paint& paint) {
  const PlanOutcome& outcome = answer.outcome;
  switch (outcome.kind) {
    case PlanKind::fits_already:
      return paint.green("It fits already") + kept_text(answer,
                                                        ": the step stays within the budget",
                                                        " as it is, so the plan moves nothing");
    case PlanKind::planned:
      if (!outcome.plan.budget.device) return "Without a budget: the policy's plan as it is.\n";
      return kept_text(answer, paint.green("Within the budget"), "");
    case PlanKind::infeasible:
      return paint.red("Infeasible") + ": no " + outcome.allowed.limits("plan") +
             " keeps this budget.\n";
    case PlanKind::offload_cannot_help: {
      std::string means = means_of(outcome);
      means.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(means.front())));
      return paint.red(means + " cannot lower this peak") + ": nothing that " +
             (outcome.allowed.text().empty() ? "could" : "is allowed to") +
             " leave is alive there, and it is above the budget.\n";
    }
    case PlanKind::policy_over_budget:
      return paint.red(is_over_host_budget_alone(answer) ? "Over the host budget"
                                                         : "Over the budget") +
             ": this policy's plan does not keep it.\n";
    case PlanKind::not_found:
      if (outcome.pinned > 0 && is_for_the_pins(outcome)) {
        return paint.red("Not found") + ": no " + outcome.allowed.limits("plan") +
               with_pins(outcome) + " keeps this budget.\n";
      }
      return paint.red("Not found") + ": the search found no " + outcome.allowed.limits("plan") +
             (outcome.plan.budget.host ? " within both budgets" : " within the budget") +
             ", and no proof that there is none.\n" +
             (is_over_host_budget(outcome)
                  ? "The tightest plan known puts " + on_the_host(answer) + ".\n"
                  : "");
  }
  return {};
}

// What the bytes at the peak of the recorded step are there for, and what the plan takes for those
// that are gone.
std::string peak_text(const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  std::string text = "At its peak the step has " + use_headline(answer.peak_use, answer.units);
  if (!outcome.feasible()) return text + ".\n";
  const std::string less = less_memory(outcome.resident, outcome.predicted, answer.units);
  return text + (less.empty() ? "" : "; " + less) + ".\n";
}

std::string figures(const Trace& recording, const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  const auto& before = outcome.resident;
  const auto& after = outcome.predicted;
  TextTable table;
  table.column("");
  table.column("resident", Align::right);
  table.column(outcome.feasible() ? "predicted" : "best known", Align::right);
  table.column("change", Align::right);
  const auto bytes = [&](const char* name, Bytes a, Bytes b) {
    table.row({name, a < 0 ? "-" : format_bytes(a, answer.units),
               b < 0 ? "-" : format_bytes(b, answer.units), relative(b, a)});
  };
  bytes("peak requested", before.peak_requested, after.peak_requested);
  bytes("peak active", before.peak_active, after.peak_active);
  if (answer.simulation)
    add_reserved(*answer.simulation, outcome.plan.placement, table, answer.units);
  bytes("host", before.host_bytes, after.host_bytes);
  table.row({"step time", format_time(before.step_ns), format_time(after.step_ns),
             relative(after.step_ns, before.step_ns)});
  // A recording of before 1.14 does not know how far its steps are apart.
  if (recording.overhead.clean_spread > 0) {
    const Nanoseconds interval = simulator::step_interval(recording, after.step_ns);
    if (interval > 0) table.row({"give or take", "", format_time(interval), ""});
  }
  table.row({"stall", format_time(before.stall_ns), format_time(after.stall_ns), ""});
  if (outcome.feasible()) {
    table.row({"lower bound", "", format_time(outcome.lower_bound_step),
               relative(outcome.lower_bound_step, before.step_ns)});
    table.row({"gap to it", "", gap_text(outcome.gap_ppm), ""});
  }
  return table.text(2);
}

std::string reached_text(const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  const simulator::PeakKind on = answer.budget_on;
  if (outcome.kept_from == 0) return "";
  if (outcome.floor.reached && on != simulator::PeakKind::reserved) return ", and one reaches it";
  return "; the tightest plan known keeps a budget of " +
         exact_bytes(outcome.kept_from, answer.units) +
         (on == simulator::PeakKind::reserved ? " reserved" : "");
}

// Reserved bytes cannot be fewer than active ones, which is what the floor counts for both.
std::string floor_text(const PlanAnswer& answer, std::size_t rows) {
  const PlanOutcome& outcome = answer.outcome;
  const simulator::PeakKind on = answer.budget_on;
  const planner::MemoryFloor& floor = outcome.floor;
  TextTable table;
  table.column("bytes", Align::right);
  table.column("class");
  table.column("layer");
  table.column("made by");
  for (std::size_t i = 0; i < std::min(rows, floor.storages.size()); ++i) {
    const planner::FloorStorage& row = floor.storages[i];
    table.row({format_bytes(row.bytes, answer.units), stowage::name_of(row.storage_class),
               row.layer.empty() ? "step" : row.layer,
               (row.made_by.empty() ? "(before the step)" : row.made_by) +
                   (row.reloaded ? ", reloaded" : "")});
  }
  std::string text =
      "The floor: no " + outcome.allowed.limits("mix of decisions") + with_pins(outcome) +
      " has a lower peak " +
      (on == simulator::PeakKind::reserved ? "active (reserved bytes are never fewer)"
                                           : simulator::name_of(on)) +
      " than " + exact_bytes(floor.bytes, answer.units) + reached_text(answer) +
      ".\nIt is made at " + floor_place(floor) + " by\n" + table.text(2);
  if (floor.storages.size() > rows) {
    Bytes rest = 0;
    for (std::size_t i = rows; i < floor.storages.size(); ++i) rest += floor.storages[i].bytes;
    text += "  and " + std::to_string(floor.storages.size() - rows) + " smaller ones, " +
            format_bytes(rest, answer.units) + " together\n";
  }
  return text;
}

std::string fit_text(const Trace& trace, const PlanAnswer& answer) {
  const Bytes needs = answer.outcome.predicted.peak_reserved + trace.env.context_bytes;
  return "Device of " + exact_bytes(*answer.fit, answer.units) + ": " +
         exact_bytes(needs, answer.units) + " are needed, " +
         exact_bytes(trace.env.context_bytes, answer.units) + " of them for the CUDA context.\n";
}

// Why there are two figures of what is reserved.
std::string memory_words(const simulator::Plan& plan, const Simulation& simulation) {
  if (!simulation.reserved) return "";
  return plan.placement == simulator::PlacementMode::planned
             ? "\nThe plan runs in planned memory, taken from the driver once; PyTorch's caching "
               "allocator\nwould reserve what its row says (--placement caching).\n"
             : "\nThe plan runs in the caching allocator's memory; planned memory, taken from the "
               "driver once,\nwould take what its row says (--placement planned).\n";
}

// What each rule of the plan decides: how many saved tensors, and their bytes.
std::string rules_text(const simulator::StepIndex& index, const simulator::Plan& plan) {
  const Trace& trace = index.trace();
  const auto decisions = simulator::resolve(trace, plan);
  if (!decisions) return {};
  struct Sum {
    std::int64_t saved = 0;
    Bytes bytes = 0;
  };
  std::vector<Sum> sums(plan.saved.size());
  // What ops make again is decided about where it is given up, in forward.
  std::vector<bool> is_given_up(trace.saved.size(), false);
  for (const simulator::SegmentRows& segment : index.step().segments()) {
    if (!segment.is_chain()) continue;
    for (const SavedId saved : segment.saved) is_given_up[saved.index()] = true;
  }
  for (std::size_t i = 0; i < decisions->saved.size(); ++i) {
    const std::int32_t rule = decisions->saved[i].rule;
    if (rule < 0 || (index.is_of_segment(SavedId(i)) && !is_given_up[i])) continue;
    ++sums[static_cast<std::size_t>(rule)].saved;
    sums[static_cast<std::size_t>(rule)].bytes += byte_range(trace, trace.saved.tensor[i]).size();
  }
  TextTable table;
  table.column("rule", Align::right);
  table.column("site");
  table.column("do");
  table.column("saved tensors", Align::right);
  table.column("bytes", Align::right);
  for (std::size_t i = 0; i < plan.saved.size(); ++i) {
    const simulator::SavedRule& rule = plan.saved[i];
    table.row({std::to_string(i), rule.site.value_or("*"), simulator::name_of(rule.decision),
               with_commas(sums[i].saved), format_bytes(sums[i].bytes)});
  }
  return table.empty() ? "  nothing is moved\n" : table.text(2);
}

std::string search_text(const planner::SearchStats& search) {
  std::string text = "Search: " + count_of(search.evaluations, "replay") + " over " +
                     count_of(search.candidates, "storage") + " that could leave, " +
                     count_of(search.grid_points, "budget") + " tried";
  if (search.structures > 0) {
    text += ", " + count_of(search.structures, "choice") + " of what runs again";
  }
  if (search.stopped) text += ", stopped by the time limit";
  if (search.exhausted) text += ", ended by its limit of evaluations";
  return text + ".\n";
}

// The floor is counted in active bytes for a budget on reserved ones.
std::string of_active(const PlanAnswer& answer) {
  return answer.budget_on == simulator::PeakKind::reserved ? " active" : "";
}

// As it was asked for: the context of a device counts in --fit. The number can be given as it
// stands; rounded it might be less than what is kept.
std::string least_budget(const PlanAnswer& answer, Bytes budget) {
  const Bytes least = answer.outcome.kept_from + (answer.fit ? *answer.fit - budget : 0);
  return (answer.fit ? "--fit " : "a budget of ") + std::to_string(least) +
         (answer.fit ? " (" : " bytes (") + format_bytes(least, answer.units) + ") or more";
}

Error what_is_infeasible(const PlanAnswer& answer) {
  const PlanOutcome& outcome = answer.outcome;
  const Bytes budget = outcome.plan.budget.device.value_or(0);
  const std::string asked = exact_bytes(budget, answer.units);
  Error error{ErrorCode::condition, "", "", "", ""};
  switch (outcome.kind) {
    case PlanKind::infeasible:
      error.message = "infeasible: the floor " +
                      (outcome.allowed.text().empty()
                           ? ""
                           : "of what is allowed (" + outcome.allowed.text() + ") ") +
                      (outcome.pinned > 0 ? "with " + pinned_words(outcome) + " " : "") + "is " +
                      exact_bytes(outcome.floor.bytes, answer.units) + of_active(answer) +
                      ", made at " + floor_place(outcome.floor) + "; the budget is " + asked +
                      (of_active(answer).empty() ? "" : " reserved, which are never fewer") +
                      (outcome.floor.bytes > budget ? "" : " and come in pages of 2 MiB");
      error.hint = least_budget(answer, budget) + ", which the tightest plan known keeps" +
                   (outcome.allowed.text().empty() ? "" : ", to allow more") +
                   ", a smaller batch, or a model that needs less there";
      break;
    case PlanKind::offload_cannot_help:
      error.message =
          "infeasible: " + means_of(outcome) + " cannot lower this peak of " +
          exact_bytes(planner::peak_of(outcome.resident, answer.budget_on), answer.units) +
          ", made at " + floor_place(outcome.floor) + "; the budget is " + asked;
      error.hint = std::string(outcome.allowed.text().empty() ? "" : "to allow more, ") +
                   "a smaller batch, or a model that needs less there";
      break;
    case PlanKind::policy_over_budget:
      if (is_over_host_budget_alone(answer)) {
        error.message = "the policy's plan puts " + on_the_host(answer);
        error.hint = "a larger --host-budget; without one the policy's plan is written as it is";
        break;
      }
      error.message =
          "the policy's plan needs a " + counter_of(answer) + " of " +
          exact_bytes(planner::peak_of(outcome.predicted, answer.budget_on), answer.units) +
          "; the budget is " + asked;
      if (is_over_host_budget(outcome)) error.message += "; it puts " + on_the_host(answer);
      error.hint = std::string("--policy auto finds its own plan; without ") +
                   (answer.fit ? "--fit" : "--budget") + " the policy's is written as it is";
      break;
    case PlanKind::not_found:
      error.message =
          "no " + outcome.allowed.limits("plan") + with_pins(outcome) + " within " + asked +
          " was found; the best has a " + counter_of(answer) + " of " +
          exact_bytes(planner::peak_of(outcome.predicted, answer.budget_on), answer.units);
      if (is_over_host_budget(outcome)) {
        error.message += " and puts " + on_the_host(answer);
        error.hint = "a larger --host-budget or --budget";
        break;
      }
      error.hint = outcome.search.stopped
                       ? "a longer --time-limit, or a larger budget"
                       : least_budget(answer, budget) + ", which the tightest plan known keeps" +
                             (outcome.pinned > 0 ? ", or fewer pins" : "") + "; the floor is " +
                             format_bytes(outcome.floor.bytes, answer.units) + of_active(answer);
      break;
    case PlanKind::planned:
    case PlanKind::fits_already:
      break;
  }
  return error;
}

}  // namespace

Result<PlanAnswer> answer_plan(const simulator::StepIndex& index,
                               const planner::PlanRequest& request) {
  Result<PlanOutcome> outcome = planner::make_plan(index, request);
  if (!outcome) return outcome.error();
  PlanAnswer answer{std::move(*outcome), request.budget_on};
  auto simulation = simulate(index, answer.outcome.plan, "");
  if (!simulation) return simulation.error();
  answer.simulation = std::move(*simulation);
  answer.peak_use = use_at_peak(index.step().recording());
  answer.units = request.units;
  return answer;
}

Error why_infeasible(const PlanAnswer& answer) {
  Error error = what_is_infeasible(answer);
  const std::string& text = answer.outcome.plan.budget.device_text;
  const Bytes budget = answer.outcome.plan.budget.device.value_or(0);
  const bool is_bare = text.find_first_not_of("0123456789.") == std::string::npos;
  constexpr Bytes kNoBudget = 100'000;  // no step is that small
  if (is_bare && !text.empty() && budget > 0 && budget <= kNoBudget) {
    error.hint = "a bare number is bytes: did you mean " +
                 (budget <= 100 ? text + "% or " + text + "GiB?" : text + "MiB?");
  }
  return error;
}

std::string plan_text(const simulator::StepIndex& index, const PlanAnswer& answer, bool explain,
                      const TextStyle& style) {
  const Paint& paint = style.paint;
  const PlanOutcome& outcome = answer.outcome;
  const Trace& trace = index.trace();
  std::string text = paint.bold(run_line(trace)) + "\n" + verdict(answer, paint) + "\n";

  if (const auto& simulation = answer.simulation) {
    PlotOptions plot;
    plot.width = std::min(style.width, 120);
    plot.unicode = style.unicode;
    plot.scale = outcome.resident.peak_requested;
    plot.budget = outcome.plan.budget.device;
    plot.units = answer.units;
    plot.spans = phase_spans(trace, simulation->detail.time);
    text += draw(curve_of(simulation->detail, outcome.predicted.step_ns), plot) + "\n";
  }
  text += peak_text(answer) + "\n" + figures(index.step().recording(), answer);
  if (const auto& simulation = answer.simulation) {
    text += memory_words(outcome.plan, *simulation);
    text += leaving_text(trace, simulation->schedule, answer.units, style.rows_or(kLeavingRows));
  }
  text += recompute_text(index.step(), answer.units);
  const std::string streaming = streaming_lines(index.step(), outcome.plan);
  if (!streaming.empty()) text += "\n" + streaming;
  if (outcome.plan.budget.device) {
    text += std::string("\nBudget: ") + exact_bytes(*outcome.plan.budget.device, answer.units) +
            " " + simulator::name_of(answer.budget_on);
    if (outcome.plan.budget.host)
      text += ", host " + exact_bytes(*outcome.plan.budget.host, answer.units);
    text += ".\n";
  } else if (outcome.plan.budget.host) {
    text += "\nHost budget: " + exact_bytes(*outcome.plan.budget.host, answer.units) + ".\n";
  }
  if (outcome.pinned > 0) {
    text += "Pinned: " + count_of(outcome.pinned, "decision") + ", left as said.\n";
  }
  if (answer.fit) text += fit_text(trace, answer);
  for (const std::string& setting : answer.settings) {
    text += "Set in place of what was recorded: " + setting + ".\n";
  }
  if (!outcome.feasible() || explain) text += "\n" + floor_text(answer, style.rows_or(kFloorRows));
  if (explain) {
    text += recompute_by_layer_text(index.step(), outcome.predicted, paint);
    text += "\n" + paint.bold("Rules") + " (the first that matches decides)\n" +
            rules_text(index, outcome.plan) + "\n" + search_text(outcome.search);
  }
  if (!outcome.notes.empty()) {
    text += "\n";
    for (const std::string& note : note_lines(outcome.notes)) text += "note: " + note + "\n";
  }
  if (outcome.search.stopped && !explain) text += "The time limit stopped the search.\n";
  if (!answer.written_to.empty()) {
    text += "\nWritten to " + answer.written_to + ". Next: stowage verify --plan " +
            answer.written_to + "\n";
  }
  return text;
}

}  // namespace stowage::report
