#include <algorithm>

#include "cli/chosen_plan.h"
#include "cli/recompute_text.h"
#include "cli/reserved_text.h"
#include "cli/shown_trace.h"
#include "cli/simulate_json.h"
#include "cli/terminal_plot.h"
#include "cli/text_table.h"
#include "cli/verbs.h"
#include "planner/budget.h"
#include "report/memory_curve.h"
#include "report/simulation.h"
#include "report/words.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

constexpr std::size_t kStallRows = 5;
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

std::string kept(bool yes, const Paint& paint) {
  return yes ? paint.green("kept") : paint.red("not kept");
}

Error over_budget(const report::Simulation& simulation, const simulator::Plan& plan,
                  const std::string& plan_file) {
  Error error{ErrorCode::condition, "", plan_file, "", ""};
  if (!simulation.device_kept) {
    error.message = std::string("the plan does not keep its budget: the peak ") +
                    simulator::name_of(plan.budget.on) + " is " +
                    report::exact_bytes(planner::peak_of(simulation.result, plan.budget.on)) +
                    ", the budget " + report::exact_bytes(*plan.budget.device);
    error.pointer = "/budget/device";
    error.hint = "make the plan again with stowage plan, or give it a larger budget";
  } else {
    error.message = "the plan does not keep its host budget: it puts " +
                    report::exact_bytes(simulation.result.host_bytes) +
                    " on the host, the budget is " + report::exact_bytes(*plan.budget.host);
    error.pointer = "/budget/host";
    error.hint = "make the plan again with stowage plan, or give it a larger host budget";
  }
  return error;
}

const char* words_of(report::Lateness why) {
  switch (why) {
    case report::Lateness::lane_busy:
      return "the lane was busy";
    case report::Lateness::started_late:
      return "it started late";
    case report::Lateness::no_room:
      return "no room earlier";
    case report::Lateness::too_large:
      return "too large for its window";
    case report::Lateness::in_line:
      return "its copy is in line";
    case report::Lateness::host_busy:
      return "the host was busy";
    case report::Lateness::host_slow:
      return "the host takes as long";
  }
  return "";
}

std::string simulation_text(const Trace& trace, const report::Simulation& simulation,
                            const simulator::Plan& plan, const std::string& title,
                            const Paint& paint) {
  const simulator::ReplayResult& with = simulation.result;
  const simulator::ReplayResult& without = simulation.resident;
  std::string in_parts = simulator::parts_text(simulator::parts_of(plan));
  if (!in_parts.empty()) in_parts.insert(0, ", ");
  std::string text = paint.bold(report::run_line(trace)) + "\n" + title + in_parts + "\n" +
                     report::streaming_lines(simulation.index->step(), plan) + "\n";
  PlotOptions plot;
  plot.width = std::min(terminal().width, 120);
  plot.unicode = terminal().unicode;
  plot.budget = plan.budget.device;
  plot.scale = without.peak_requested;
  plot.spans = report::phase_spans(trace, simulation.detail.time);
  text += draw(report::curve_of(simulation.detail, with.step_ns), plot) + "\n";

  TextTable table;
  table.column("");
  table.column("resident", Align::right);
  table.column("replayed", Align::right);
  table.column("change", Align::right);
  const auto bytes = [&table](const char* name, Bytes a, Bytes b) {
    table.row({name, a < 0 ? "-" : format_bytes(a), b < 0 ? "-" : format_bytes(b),
               report::relative(b, a)});
  };
  const auto time = [&table](const char* name, Nanoseconds a, Nanoseconds b) {
    table.row({name, format_time(a), format_time(b), report::relative(b, a)});
  };
  bytes("peak requested", without.peak_requested, with.peak_requested);
  bytes("peak active", without.peak_active, with.peak_active);
  add_reserved(simulation, plan.placement, table);
  bytes("host", without.host_bytes, with.host_bytes);
  time("step time", without.step_ns, with.step_ns);
  time("stall", without.stall_ns, with.stall_ns);
  bytes("copied out", without.d2h_bytes, with.d2h_bytes);
  bytes("copied back", without.h2d_bytes, with.h2d_bytes);
  text += table.text(2);
  text += "\nThe peak, " + report::exact_bytes(with.peak_requested) + " requested, is reached at " +
          report::place(simulation.peak_at) + ".\n";
  if (plan.budget.device) {
    text += std::string("Budget: ") + report::exact_bytes(*plan.budget.device) + " " +
            simulator::name_of(plan.budget.on) + ": " + kept(simulation.device_kept, paint) + ".\n";
  }
  if (plan.budget.host) {
    text += "Host budget: " + report::exact_bytes(*plan.budget.host) + ": " +
            kept(simulation.host_kept, paint) + ".\n";
  }
  if (!simulation.stalls.empty()) {
    TextTable stalls;
    stalls.column("stall", Align::right);
    stalls.column("waits for");
    stalls.column("bytes", Align::right);
    stalls.column("in");
    stalls.column("because");
    for (std::size_t i = 0; i < std::min(kStallRows, simulation.stalls.size()); ++i) {
      const report::StallRow& row = simulation.stalls[i];
      stalls.row({format_time(row.duration),
                  (row.is_update   ? "host's update of "
                   : row.copy_back ? "reload of "
                                   : "offload of ") +
                      row.site,
                  format_bytes(row.bytes), row.layer + ", " + row.phase, words_of(row.why)});
    }
    text += "\n" + paint.bold("Stalls") + ", longest first, " +
            report::count_of(static_cast<std::int64_t>(simulation.stalls.size()), "stall") +
            " in all\n" + stalls.text(2);
  }
  return text;
}

}  // namespace

int verb_simulate(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("simulate",
                   "Replays a trace under a plan or a policy on a model of the machine");
  std::optional<std::string> trace_file;
  ChosenPlan choice;
  std::optional<std::string> timeline;
  bool explain = false;
  line.positional_input("T", trace_file, "the trace (.json or .json.gz), - for stdin");
  line.input("--plan", "P", choice.plan_file, "the plan to replay, - for stdin");
  line.option("--policy", "NAME[:k=v,..]", choice.policy,
              "a policy to replay (see stowage policies)");
  line.option("--placement", "MODE", choice.placement,
              "planned memory or caching (default: the plan's, else see stowage plan)");
  line.option("--set", "NAME=VALUE", choice.settings,
              "another link than the recorded one; may be repeated");
  line.flag("--explain", explain, "also what recompute buys, layer by layer");
  line.output("--timeline", "OUT", timeline, "write lanes and memory as JSON (.gz compresses)");
  std::string names = "Without --plan and --policy nothing moves. Names for --set:";
  for (const auto& setting : simulator::calibration_settings()) {
    names += "\n  " + setting.name + ": " + setting.help;
  }
  line.detail(names);
  line.example("stowage simulate t.json.gz --policy torchtune:stash=5");
  line.example(
      "stowage simulate t.json.gz --plan p.json --set link.h2d_gbps=25 --timeline lanes.json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    const std::optional<std::string>& plan_file = choice.plan_file;
    if (const Status fits = check_choice(choice, *trace_file); !fits) return fits.error();
    if (timeline == "-" && console.json) {
      return usage_error("--json and --timeline - would both write to stdout");
    }
    Result<LoadedTrace> loaded = load_shown_trace(*trace_file);
    if (!loaded) return loaded.error();
    Trace& trace = loaded->trace;
    if (const Status set = apply_settings(choice, trace); !set) return set.error();
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
                     " (made by another version or from another recording)");
      }
    }
    for (std::size_t i = 0; i < std::min(kNoteRows, simulation->notes.size()); ++i) {
      console.warn(simulation->notes[i]);
    }
    if (simulation->notes.size() > kNoteRows) {
      console.warn("... and " + std::to_string(simulation->notes.size() - kNoteRows) +
                   " more (--json lists them)");
    }
    if (timeline) {
      const Status written = write_output(
          console, *timeline, timeline_json(simulation->index->trace(), *simulation, *plan));
      if (!written) return written.error();
    }
    if (console.json) {
      console.out << simulate_json(*simulation, *plan,
                                   plan_file ? "" : choice.policy.value_or("resident"));
    } else {
      std::ostream& text = timeline == "-" ? console.err : console.out;
      text << simulation_text(simulation->index->trace(), *simulation, *plan, choice.title(),
                              console.paint);
      if (explain) {
        text << recompute_by_layer_text(simulation->index->step(), simulation->result,
                                        console.paint);
      }
    }
    if (simulation->feasible) return 0;
    Console error_only = console;
    error_only.json = false;  // the object above says it
    return report_error(error_only, over_budget(*simulation, *plan, plan_file.value_or("")));
  });
}

}  // namespace stowage::cli
