#include "cli/option_values.h"
#include "cli/shown_trace.h"
#include "cli/verbs.h"
#include "report/answers/inspect_json.h"
#include "report/answers/inspect_text.h"
#include "report/inspect.h"

namespace stowage::cli {
namespace {

Result<report::GroupBy> group_by(const std::string& name) {
  if (name == "layer") return report::GroupBy::layer;
  if (name == "op") return report::GroupBy::op;
  if (name == "class") return report::GroupBy::storage_class;
  return unknown_name("--by", "grouping", name, {"layer", "op", "class"});
}

}  // namespace

int verb_inspect(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("inspect",
                   "Shows what is in a trace: phases, layers, the memory curve, who "
                   "makes the peak and what could leave");
  std::optional<std::string> file;
  std::optional<std::string> by_option;
  std::optional<std::string> at;
  std::optional<std::int64_t> top;
  line.positional_input("T", file, "the trace (.json or .json.gz), - for stdin");
  line.option("--top", "N", top, "rows of each table (default 10)");
  line.option("--by", "KEY", by_option,
              "who makes the peak: by layer, op or class (default layer)");
  line.option("--at", "WHEN", at,
              "peak (default), an op's number, or an op's name: its highest point");
  line.offer("--by", {"layer", "op", "class"});
  line.offer("--at", {"peak"});
  line.example("stowage inspect t.json.gz");
  line.example("stowage inspect t.json.gz --by op --at aten::_log_softmax_backward_data --top 20");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    const std::string by_name = by_option.value_or("layer");
    const Result<report::GroupBy> by = group_by(by_name);
    if (!by) return by.error();
    const Result<int> rows = table_rows(top, 10);
    if (!rows) return rows.error();
    const Result<LoadedTrace> loaded = load_shown_trace(*file);
    if (!loaded) return loaded.error();
    const Trace& trace = loaded->trace;
    const Result<report::InspectReport> report = report::inspect(trace, *by, at.value_or("peak"));
    if (!report) {
      Error error = report.error();
      if (error.code != ErrorCode::usage) error.file = *file;
      return error;
    }
    if (console.json) {
      console.out << report::inspect_json(trace, *report, *rows, by_name);
    } else {
      console.say(report::inspect_text(trace, *report, *rows, by_name, console.style()));
    }
    return 0;
  });
}

}  // namespace stowage::cli
