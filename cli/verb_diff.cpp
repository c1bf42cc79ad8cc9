#include "cli/option_values.h"
#include "cli/verbs.h"
#include "report/answers/diff_output_json.h"
#include "report/answers/diff_text.h"
#include "report/diff.h"
#include "traces/file_io.h"

namespace stowage::cli {

int verb_diff(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("diff",
                   "Says what changed between two traces, two plans, or two answers of a verb");
  std::optional<std::string> before;
  std::optional<std::string> after;
  std::optional<std::int64_t> top;
  line.positional_input("A", before,
                        "a trace, a plan, or what a verb printed with --json; - for stdin");
  line.positional_input("B", after, "another one of the same kind");
  line.option("--top", "N", top, "rows of each table (default 20; --json lists all)");
  line.detail("Exits 0 whether something changed or not: the difference is the answer.");
  line.example("stowage diff before.json.gz after.json.gz");
  line.example("stowage diff --json verify-monday.json verify-tuesday.json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    const Result<int> rows = table_rows(top, 20);
    if (!rows) return rows.error();
    if (*before == "-" && *after == "-") {
      return usage_error("A and B cannot both come from stdin");
    }
    const Result<std::string> a = read_file(*before);
    if (!a) return a.error();
    const Result<std::string> b = read_file(*after);
    if (!b) return b.error();
    const Result<report::Diff> diff = report::diff_texts(*a, *before, *b, *after);
    if (!diff) return diff.error();
    if (console.json) {
      console.out << report::diff_json(*diff, *before, *after);
    } else {
      console.say(report::diff_text(*diff, *before, *after, *rows, console.paint));
    }
    return 0;
  });
}

}  // namespace stowage::cli
