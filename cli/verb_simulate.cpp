#include <algorithm>

#include "cli/chosen_plan.h"
#include "cli/option_values.h"
#include "cli/reserved_text.h"
#include "cli/shown_trace.h"
#include "cli/simulated_ranks.h"
#include "cli/verbs.h"
#include "planner/budget.h"
#include "report/answers/data_parallel_text.h"
#include "report/answers/note_lines.h"
#include "report/answers/recompute_text.h"
#include "report/answers/simulate_json.h"
#include "report/answers/simulation_text.h"
#include "report/simulation.h"
#include "report/words.h"
#include "simulator/machine/calibration_settings.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

constexpr std::size_t kNoteRows = 5;

// What the simulator said when the plan was written, against what it says now.
std::string difference(const simulator::Predicted& then, const simulator::ReplayResult& now) {
  if (then.peak_requested != now.peak_requested) {
    return "peak requested " + report::exact_bytes(then.peak_requested) + ", now " +
           report::exact_bytes(now.peak_requested);
  }
  if (then.peak_active != now.peak_active) {
    return "peak active " + report::exact_bytes(then.peak_active) + ", now " +
           report::exact_bytes(now.peak_active);
  }
  const bool reserve = then.peak_reserved >= 0 && now.peak_reserved >= 0;
  if (reserve && then.peak_reserved != now.peak_reserved) {
    return "peak reserved " + report::exact_bytes(then.peak_reserved) + ", now " +
           report::exact_bytes(now.peak_reserved);
  }
  if (then.step != now.step_ns) {
    return "step time " + format_time(then.step) + ", now " + format_time(now.step_ns);
  }
  if (then.host != now.host_bytes) {
    return "host bytes " + report::exact_bytes(then.host) + ", now " +
           report::exact_bytes(now.host_bytes);
  }
  return {};
}

// `placement`: the memory that was asked for; empty: the plan's own.
Error over_budget(const report::Simulation& simulation, const simulator::Plan& plan,
                  const std::string& plan_file, const std::string& placement) {
  Error error{ErrorCode::condition, "", plan_file, "", ""};
  const ByteUnits units = units_of(plan.budget.device_text);
  if (!simulation.device_kept) {
    error.message =
        std::string("the plan does not keep its budget: the peak ") +
        simulator::name_of(plan.budget.on) + " is " +
        report::exact_bytes(planner::peak_of(simulation.result, plan.budget.on), units) +
        ", the budget " + report::exact_bytes(*plan.budget.device, units);
    error.pointer = "/budget/device";
    error.hint = placement.empty()
                     ? "make the plan again with stowage plan, or give it a larger budget"
                     : "a plan keeps its budget in the memory that it was made for: leave out "
                       "--placement, or make one with stowage plan --placement " +
                           placement;
  } else {
    error.message = "the plan does not keep its host budget: it puts " +
                    report::exact_bytes(simulation.result.host_bytes, units) +
                    " on the host, the budget is " + report::exact_bytes(*plan.budget.host, units);
    error.pointer = "/budget/host";
    error.hint = "make the plan again with stowage plan, or give it a larger host budget";
  }
  return error;
}

void warn_of(const std::vector<std::string>& all, const Console& console) {
  const std::vector<std::string> notes = report::note_lines(all);
  for (std::size_t i = 0; i < std::min(kNoteRows, notes.size()); ++i) console.warn(notes[i]);
  if (notes.size() <= kNoteRows) return;
  console.warn("... and " + std::to_string(notes.size() - kNoteRows) + " more (--json lists them)");
}

std::string names_for_set() {
  std::string names;
  for (const auto& setting : simulator::calibration_settings()) {
    names += "\n  " + setting.name + ": " + setting.help;
  }
  return names;
}

// What is said of it on stdout; with a timeline there beside it.
struct Answer {
  const ChosenPlan& choice;
  const ChosenReplay& replay;
  const std::optional<simulator::DataParallel>& ranks;
  std::size_t rows = 0;  // of the stalls; 0: as usual
  bool explain = false;
  bool is_beside = false;
};

void say(const Answer& answer, Console& console) {
  const report::Simulation& simulation = answer.replay.simulation;
  const ChosenPlan& choice = answer.choice;
  if (console.json) {
    console.out << report::simulate_json(simulation, answer.replay.plan,
                                         choice.plan_file ? "" : choice.policy.value_or("resident"),
                                         answer.ranks ? &*answer.ranks : nullptr);
    return;
  }
  const Paint& paint = answer.is_beside ? console.paint_err : console.paint;
  report::TextStyle style = console.style(paint);
  style.rows = answer.rows;
  std::string text = report::simulation_text(simulation.index->trace(), simulation,
                                             answer.replay.plan, printable(choice.title()), style);
  if (answer.ranks) text += report::data_parallel_text(*answer.ranks, paint);
  if (answer.explain) {
    text += report::recompute_by_layer_text(simulation.index->step(), simulation.result, paint);
  }
  answer.is_beside ? console.say_beside(text) : console.say(text);
}

}  // namespace

int verb_simulate(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("simulate",
                   "Replays a trace under a plan or a policy on a model of the machine");
  std::optional<std::string> trace_file;
  ChosenPlan choice;
  std::optional<std::string> timeline;
  std::optional<std::string> ranks_option;
  std::optional<std::int64_t> top;
  bool explain = false;
  line.positional_input("T", trace_file, "the trace (.json or .json.gz), - for stdin");
  line.input("--plan", "P", choice.plan_file, "the plan to replay, - for stdin");
  line.option("--policy", "NAME[:k=v,..]", choice.policy,
              "a policy to replay (see stowage policies)");
  line.option(
      "--placement", "MODE", choice.placement,
      "planned (memory of its own) or caching (default: the plan's, else see stowage plan)");
  line.option("--set", "NAME=VALUE", choice.settings,
              "another link than the recorded one, or network; may be repeated");
  line.option("--ranks", "N[,N..]", ranks_option,
              "also what data-parallel training over so many ranks would take (assumed)");
  line.option("--top", "N", top, "rows of the table of stalls (default 5; --json lists all)");
  line.flag("--explain", explain, "also what recompute buys, layer by layer");
  line.output("--timeline", "OUT", timeline, "write lanes and memory as JSON (.gz compresses)");
  offer_replay_values(line, {}, network_offers());
  line.detail("Without --plan and --policy nothing moves. Names for --set:" + names_for_set());
  line.detail("With --ranks also, of a network that nobody measured:" + network_names_for_set());
  line.example("stowage simulate t.json.gz --policy torchtune:stash=5");
  line.example(
      "stowage simulate t.json.gz --plan p.json --set link.h2d_gbps=25 --timeline lanes.json");
  line.example("stowage simulate t.json.gz --ranks 8,64,512,4096 --set network.gbps=100");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    const std::optional<std::string>& plan_file = choice.plan_file;
    const Result<int> rows = top ? table_rows(top, 0) : Result<int>(0);
    if (!rows) return rows.error();
    if (const Status fits = check_choice(choice, *trace_file); !fits) return fits.error();
    if (timeline == "-" && console.json) {
      return usage_error("--json and --timeline - would both write to stdout");
    }
    const Result<RanksAsked> asked = ranks_asked(ranks_option, choice.settings);
    if (!asked) return asked.error();
    Result<LoadedTrace> loaded = load_shown_trace(*trace_file);
    if (!loaded) return loaded.error();
    Trace& trace = loaded->trace;
    if (const Status set = apply_settings(choice.settings, trace); !set) return set.error();
    const simulator::StepIndex index(trace);
    const Result<ChosenReplay> replay = replay_choice(choice, index, loaded->sha256);
    if (!replay) return replay.error();
    const simulator::Plan* const plan = &replay->plan;
    const report::Simulation* const simulation = &replay->simulation;

    if (choice.placement) note_no_reserved(trace, plan->placement, console);
    if (plan->predicted && choice.settings.empty() && !choice.placement) {
      const std::string changed = difference(*plan->predicted, simulation->result);
      if (!changed.empty()) {
        console.warn(*plan_file + ": /predicted: the plan says " + changed +
                     " (made by another version, from another recording, or edited since)");
      }
    }
    warn_of(simulation->notes, console);
    const auto ranks = simulate_ranks(*asked, *simulation, *plan, *trace_file, console);
    if (!ranks) return ranks.error();
    if (timeline) {
      const Status written =
          write_output(console, *timeline,
                       report::timeline_json(simulation->index->trace(), *simulation, *plan));
      if (!written) return written.error();
    }
    say({choice, *replay, *ranks, static_cast<std::size_t>(*rows), explain, timeline == "-"},
        console);
    if (simulation->feasible) return 0;
    Console error_only = console;
    error_only.json = false;  // the object above says it
    return report_error(error_only, over_budget(*simulation, *plan, plan_file.value_or(""),
                                                choice.placement.value_or("")));
  });
}

}  // namespace stowage::cli
