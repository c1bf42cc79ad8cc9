#include <algorithm>
#include <chrono>
#include <ctime>

#include "cli/chosen_plan.h"
#include "cli/option_values.h"
#include "cli/pin_options.h"
#include "cli/progress_bar.h"
#include "cli/reserved_text.h"
#include "cli/shown_trace.h"
#include "cli/verbs.h"
#include "planner/budget.h"
#include "planner/planner.h"
#include "report/answers/plan_answer.h"
#include "report/answers/simulate_json.h"
#include "report/plans_trace.h"
#include "simulator/plan/plan_json.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

// Options of docs/cli.md's contract whose decisions the planner does not know yet.
constexpr const char* kFutureOptions[] = {"--minimize", "--max-slowdown", "--maximize", "--pareto"};

struct PlanOptions {
  std::optional<std::string> trace;
  std::optional<std::string> budget;
  std::optional<std::string> budget_on;
  std::optional<std::string> fit;
  std::optional<std::string> placement;
  std::optional<std::string> host_budget;
  std::optional<std::string> policy;
  std::optional<std::string> allow;
  std::optional<std::string> deny;
  PinOptions pinned;
  std::optional<std::int64_t> seed;
  std::optional<std::string> time_limit;
  std::optional<std::string> output;
  std::vector<std::string> settings;
  std::optional<std::string> timeline;
  std::optional<std::int64_t> top;
  bool explain = false;
};

void declare(CommandLine& line, PlanOptions& options) {
  line.positional_input("T", options.trace, "the trace (.json or .json.gz), - for stdin");
  line.option("--budget", "B", options.budget,
              "device memory: 24GiB, 24GB, bytes, or 60% of the resident peak of the same counter");
  line.option("--budget-on", "COUNTER", options.budget_on,
              "what the budget bounds: requested, active, or a GPU's reserved (default there in "
              "planned memory, else active)");
  line.option("--placement", "MODE", options.placement,
              "where the plan runs: planned (memory of its own; default of a GPU's trace) or "
              "caching (PyTorch's allocator)");
  line.option("--fit", "B", options.fit,
              "instead of --budget: the size of a GPU, such as 24GiB, for reserved bytes and the "
              "CUDA context");
  line.option("--host-budget", "B", options.host_budget, "host memory that the plan may use");
  line.option("--policy", "NAME[:k=v,..]", options.policy,
              "auto (default), or a policy (see stowage policies); then --budget is optional");
  line.option("--allow", "LIST", options.allow,
              "auto decides these alone, of offload,recompute,params,optimizer,gradients,"
              "micro-batch (default: all)");
  line.option("--deny", "LIST", options.deny, "auto leaves these as they are");
  declare_pins(line, options.pinned);
  line.output("-o,--output", "P", options.output, "write the plan here; - or nothing: to stdout");
  line.option("--time-limit", "TIME", options.time_limit,
              "stop the search after 500ms, 10s; the best plan so far is the answer");
  line.option("--seed", "N", options.seed, "recorded in the plan (default 1)");
  line.option("--set", "NAME=VALUE", options.settings,
              "another link than the recorded one (see stowage simulate); may be repeated");
  line.output("--timeline", "OUT", options.timeline,
              "write lanes and memory under the plan as JSON (.gz compresses)");
  line.option("--top", "N", options.top, "rows of each table (default 8)");
  line.flag("--explain", options.explain,
            "also what makes the floor, what recompute buys, the rules, and the search");
  offer_replay_values(line, {"auto"});
  line.offer("--budget-on", {"requested", "active", "reserved"});
  line.offer("--allow", planner::Allowed::names());
  line.offer("--deny", planner::Allowed::names());
  for (const char* name : kFutureOptions) line.future_option(name);
  line.detail(
      "optimizer: its state streams, or the host updates the parameters; gradients go with that.\n"
      "Planned memory is taken from the driver once, and each allocation has its place in it: "
      "little\n"
      "more is reserved than is alive. --placement caching plans for PyTorch's allocator.\n"
      "Without -o the plan goes to stdout and the text to stderr, so that\n"
      "`stowage plan t.json.gz --budget 60% > p.json` works. With -o FILE the text goes to\n"
      "stdout. With --json one object, which holds the plan, goes to stdout.");
  line.example("stowage plan t.json.gz --fit 24GiB -o p.json");
  line.example("stowage plan t.json.gz --budget 60% -o p.json");
  line.example("stowage plan t.json.gz --budget 24GiB --host-budget 64GiB --explain -o p.json");
  line.example("stowage plan t.json.gz --budget 60% --deny params -o p.json");
  line.example(
      "stowage plan t.json.gz --budget 60% --pins p.json --pin 'layers.0.*=keep' -o q.json");
  line.example("stowage plan t.json.gz --budget 60% --placement caching -o p.json");
  line.example("stowage plan t.json.gz --policy torchtune:stash=5 -o p.json");
}

Result<simulator::PeakKind> counter(const std::string& name) {
  using simulator::PeakKind;
  return value_of_name("--budget-on", "counter", name,
                       {PeakKind::requested, PeakKind::active, PeakKind::reserved});
}

Error in_option(const std::string& option, Error error) {
  error.message = option + ": " + error.message;
  return error;
}

std::vector<std::string> names_of(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return names;
}

// What --allow and --deny say.
Result<planner::Allowed> allowed_by(const PlanOptions& options) {
  using planner::Allowed;
  if (options.allow && options.deny) return usage_error("--allow and --deny", "give one of them");
  const Result<Allowed> allowed = options.allow  ? Allowed::only(names_of(*options.allow))
                                  : options.deny ? Allowed::all_but(names_of(*options.deny))
                                                 : Allowed{};
  if (!allowed) return in_option(options.allow ? "--allow" : "--deny", allowed.error());
  return *allowed;
}

// 0: none.
Result<Nanoseconds> limit_of(const PlanOptions& options) {
  if (!options.time_limit) return Nanoseconds{0};
  const auto time = parse_time(*options.time_limit);
  if (!time) return in_option("--time-limit", time.error());
  if (*time == 0) return usage_error("--time-limit: 0 leaves no time for a search");
  return *time;
}

std::string now_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

// Everything of the request that the command line says.
Result<planner::PlanRequest> request_of(const PlanOptions& options,
                                        const simulator::StepIndex& index) {
  planner::PlanRequest request;
  request.policy = options.policy.value_or("auto");
  request.seed = options.seed.value_or(1);
  if ((options.allow || options.deny) && request.policy != "auto") {
    return usage_error("--allow and --deny say what auto decides", "without --policy");
  }
  if (options.pinned.given() && request.policy != "auto") {
    return usage_error("--pin and --pins say what auto leaves as it is", "without --policy");
  }
  const Result<planner::Allowed> allowed = allowed_by(options);
  if (!allowed) return allowed.error();
  request.allowed = *allowed;
  Result<simulator::Plan> pins = pins_of(options.pinned, index);
  if (!pins) return pins.error();
  request.pins = std::move(pins).value();
  request.placement = planner::usual_placement(index.trace());
  if (options.placement) {
    const auto placement = placement_named(*options.placement);
    if (!placement) return placement.error();
    request.placement = *placement;
  }
  const std::string usual =
      options.fit ? "reserved"
                  : simulator::name_of(planner::usual_counter(index.trace(), request.placement));
  const auto on = counter(options.budget_on.value_or(usual));
  if (!on) return on.error();
  request.budget_on = *on;
  if (options.fit) {
    if (options.budget || options.budget_on) {
      return usage_error("--fit bounds reserved bytes by itself",
                         "without --budget and --budget-on");
    }
    const auto device = parse_size(*options.fit);
    if (!device) return in_option("--fit", device.error());
    const auto bytes = planner::reserved_to_fit(index.trace(), *device, units_of(*options.fit));
    if (!bytes) return in_option("--fit", bytes.error());
    request.budget = *bytes;
  } else if (options.budget) {
    const auto peak = planner::resident_peak(index, *on, request.placement);
    if (!peak) {
      return in_option(std::string("--budget-on ") + simulator::name_of(*on), peak.error());
    }
    const auto bytes = parse_size(*options.budget, *peak);
    if (!bytes) return in_option("--budget", bytes.error());
    request.budget = *bytes;
    request.budget_text = *options.budget;
  } else if (!options.policy || request.policy == "auto") {
    return usage_error("no --budget",
                       "such as --budget 24GiB or --budget 60%, or --fit 24GiB; only a named "
                       "--policy plans without one");
  }
  if (options.host_budget) {
    const auto bytes = parse_size(*options.host_budget);
    if (!bytes) return in_option("--host-budget", bytes.error());
    request.host_budget = *bytes;
    request.host_budget_text = *options.host_budget;
  }
  return request;
}

// The text goes where the plan does not.
void say_plan(const Console& console, bool beside, const simulator::StepIndex& index,
              const report::PlanAnswer& answer, bool explain, int rows) {
  report::TextStyle style = console.style(beside ? console.paint_err : console.paint);
  style.rows = static_cast<std::size_t>(rows);
  const std::string text = report::plan_text(index, answer, explain, style);
  beside ? console.say_beside(text) : console.say(text);
}

// The plan, its timeline and the answer, each to where it goes.
Result<int> give(const Console& console, const PlanOptions& options, int rows,
                 report::PlanAnswer& answer) {
  const bool to_stdout = !options.output || options.output == "-";
  // The plan is shown on the step that it makes of the recording.
  const simulator::StepIndex& shown = *answer.simulation->index;
  const simulator::Plan& plan = answer.outcome.plan;
  if (!answer.outcome.feasible()) {
    if (console.json) {
      console.out << report::plan_answer_json(shown, answer);
    } else if (!console.quiet) {
      say_plan(console, to_stdout, shown, answer, options.explain, rows);
    }
    Console error_only = console;
    error_only.json = false;  // the object above has the error
    return report_error(error_only, report::why_infeasible(answer));
  }
  if (options.timeline) {
    const Status written = write_output(
        console, *options.timeline, report::timeline_json(shown.trace(), *answer.simulation, plan));
    if (!written) return written.error();
  }
  if (!to_stdout) {
    const Status written = write_output(console, *options.output, simulator::plan_to_json(plan));
    if (!written) return written.error();
    answer.written_to = *options.output;
  }
  if (console.json) {
    console.out << report::plan_answer_json(shown, answer);
  } else if (to_stdout) {
    console.out << simulator::plan_to_json(plan);
    if (!console.quiet) say_plan(console, to_stdout, shown, answer, options.explain, rows);
  } else {
    say_plan(console, to_stdout, shown, answer, options.explain, rows);
  }
  return 0;
}

}  // namespace

int verb_plan(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("plan",
                   "Finds the plan with the shortest step within a memory budget, with a "
                   "lower bound");
  PlanOptions options;
  declare(line, options);
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (console.json && options.output == "-") {
      return usage_error("--json and -o - would both write to stdout",
                         "the plan is in the JSON, under \"plan\"");
    }
    if (options.timeline == "-") {
      return usage_error("--timeline - and the plan would both write to stdout",
                         "give --timeline a file");
    }
    if (options.pinned.file == "-" && options.trace == "-") {
      return usage_error("the trace and --pins cannot both come from stdin");
    }
    const Result<int> rows = options.top ? table_rows(options.top, 0) : Result<int>(0);
    if (!rows) return rows.error();
    const Result<Nanoseconds> limit = limit_of(options);
    if (!limit) return limit.error();
    Result<LoadedTrace> loaded = load_shown_trace(*options.trace);
    if (!loaded) return loaded.error();
    if (const Status set = apply_settings(options.settings, loaded->trace); !set)
      return set.error();
    const simulator::StepIndex index(loaded->trace);
    Result<planner::PlanRequest> request = request_of(options, index);
    if (!request) return request.error();

    request->units = units_of(options.fit.value_or(options.budget.value_or("")));
    note_no_reserved(loaded->trace, request->placement, console);
    ProgressBar bar(console.err, console.progress(), "planning", "plans", terminal().err_width);
    std::stop_source stop;
    request->stop = stop.get_token();
    const auto begin = std::chrono::steady_clock::now();
    request->progress = [&](const planner::Progress& progress) {
      const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
      if (*limit > 0 && taken.count() >= *limit) stop.request_stop();
      bar.update(progress.evaluations, progress.max_evaluations,
                 progress.best_step_ns < 0 ? "none within the budget yet"
                                           : "best step " + format_time(progress.best_step_ns));
    };
    Result<report::PlanAnswer> answered = report::answer_plan(index, *request);
    if (!answered) {
      Error error = answered.error();
      if (error.code == ErrorCode::bad_input && error.file.empty()) error.file = *options.trace;
      return error;
    }
    report::PlanAnswer& answer = *answered;
    if (options.fit) answer.fit = *parse_size(*options.fit);
    answer.given_at = now_utc();
    answer.settings = options.settings;
    simulator::Plan& plan = answer.outcome.plan;
    plan.target.trace = loaded->sha256;
    plan.target.trace_file = report::trace_file_for(*options.trace, options.output.value_or(""));

    return give(console, options, *rows, answer);
  });
}

}  // namespace stowage::cli
