#include "cli/chosen_plan.h"
#include "cli/export_json.h"
#include "cli/option_values.h"
#include "cli/verbs.h"
#include "report/export_format.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {
namespace {

Result<report::ExportFormat> format_of(const std::optional<std::string>& name,
                                       const std::string& output) {
  if (!name) {
    if (const auto format = report::export_format_of_file(output)) return *format;
    return usage_error("-o " + output + " does not say the format",
                       "give --format, or a name that ends in .json, .svg, .csv or .pickle");
  }
  using report::ExportFormat;
  return value_of_name(
      "--format", "format", *name,
      {ExportFormat::chrome, ExportFormat::svg, ExportFormat::csv, ExportFormat::memory_viz});
}

Result<report::CsvTable> table_of(const std::optional<std::string>& name,
                                  report::ExportFormat format) {
  if (!name) return report::CsvTable::memory;
  if (format != report::ExportFormat::csv) {
    return usage_error("--table is for CSV alone", "give --format csv");
  }
  if (const auto table = report::csv_table_of(*name)) return *table;
  return unknown_name("--table", "table", *name, {"memory", "storages", "stalls", "timeline"});
}

void say_exported(Console& console, const ExportFacts& facts, const std::string& title) {
  if (console.json) {
    console.out << export_json(facts);
  } else if (facts.output != "-") {
    console.say("wrote " + printable(facts.output) + ": " + printable(title) + " as " +
                report::name_of(facts.format) + ", " + format_bytes(facts.bytes) + "\n");
  }
}

// Of the step as it was recorded.
Status check_recorded(const ChosenPlan& choice) {
  if (!choice.settings.empty()) {
    return usage_error("--set without --plan or --policy", "the recorded step has its own link");
  }
  if (choice.placement) {
    return usage_error("--placement without --plan or --policy",
                       "the recorded step ran in the caching allocator's memory");
  }
  return Unit{};
}

void offer_formats(CommandLine& line) {
  line.offer_endings("--output", {".json", ".svg", ".csv", ".pickle", ".pkl", ".gz"});
  line.offer("--format", {"chrome", "svg", "csv", "memory-viz"});
  line.offer("--table", {"memory", "storages", "stalls", "timeline"});
}

}  // namespace

int verb_export(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("export",
                   "Writes the recorded or the planned step for other programs: a Chrome trace, a "
                   "picture, tables, PyTorch's memory_viz");
  std::optional<std::string> trace_file;
  std::optional<std::string> output;
  std::optional<std::string> format_name;
  std::optional<std::string> table_name;
  ChosenPlan choice;
  line.positional_input("T", trace_file, "the trace (.json or .json.gz), - for stdin");
  line.output("-o,--output", "F", output, "where to, - for stdout (.gz compresses)", true);
  line.option(
      "--format", "NAME", format_name,
      "chrome, svg, csv or memory-viz (default: by F's ending, .json, .svg, .csv, .pickle)");
  line.option("--table", "NAME", table_name,
              "of CSV: memory (default), storages, stalls or timeline");
  line.input("--plan", "P", choice.plan_file, "the step under this plan, - for stdin");
  line.option("--policy", "NAME[:k=v,..]", choice.policy,
              "the step under a policy (see stowage policies)");
  line.option("--placement", "MODE", choice.placement,
              "planned (memory of its own) or caching (see stowage simulate)");
  line.option("--set", "NAME=VALUE", choice.settings,
              "another link than the recorded one (see stowage simulate); may be repeated");
  offer_replay_values(line);
  offer_formats(line);
  line.detail(
      "Without --plan and --policy: the step as it was recorded. A Chrome trace has the recorded "
      "step\nbeside the planned one. It opens in https://ui.perfetto.dev; a .pickle in "
      "https://docs.pytorch.org/memory_viz.");
  line.example("stowage export t.json.gz --plan p.json -o step.json.gz");
  line.example("stowage export t.json.gz --policy torchtune -o step.svg");
  line.example("stowage export t.json.gz --format csv --table storages -o -");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (const Status fits = check_choice(choice, *trace_file); !fits) return fits.error();
    const Result<report::ExportFormat> format = format_of(format_name, *output);
    if (!format) return format.error();
    const Result<report::CsvTable> table = table_of(table_name, *format);
    if (!table) return table.error();
    const bool planned = choice.plan_file || choice.policy;
    if (const Status asked = check_recorded(choice); !planned && !asked) return asked.error();
    if (*output == "-" && console.json) {
      return usage_error("--json and -o - would both write to stdout");
    }

    Result<LoadedTrace> loaded = load_trace(*trace_file);
    if (!loaded) return loaded.error();
    Trace& trace = loaded->trace;
    if (trace.events.size() == 0) {
      return Error{ErrorCode::bad_input, "the trace has no events", *trace_file, "/events", ""};
    }
    if (const Status set = apply_settings(choice.settings, trace); !set) return set.error();
    std::optional<report::Simulation> simulated;
    std::optional<report::StepView> recorded;
    std::optional<report::StepView> replayed;
    if (!planned || *format == report::ExportFormat::chrome) {
      recorded = report::recorded_step(trace);
    }
    if (planned) {
      const simulator::StepIndex index(trace);
      Result<ChosenReplay> replay = replay_choice(choice, index, loaded->sha256);
      if (!replay) return replay.error();
      simulated = std::move(replay->simulation);
      if (!simulated->feasible) console.warn("the plan does not keep its budget");
      replayed =
          report::planned_step(simulated->index->trace(), *simulated, replay->plan, choice.title());
    }
    std::vector<const report::StepView*> steps;
    if (recorded) steps.push_back(&*recorded);
    if (replayed) steps.push_back(&*replayed);
    const std::string text = report::export_steps(steps, *format, *table);
    if (const Status written = write_output(console, *output, text); !written) {
      return written.error();
    }
    const ExportFacts facts{*output, *format, *table, static_cast<Bytes>(text.size()),
                            steps.back()};
    say_exported(console, facts, steps.back()->title);
    return 0;
  });
}

}  // namespace stowage::cli
