#include "cli/verbs.h"
#include "planner/policy.h"
#include "report/answers/policies_json.h"
#include "report/answers/text_table.h"

namespace stowage::cli {

int verb_policies(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("policies",
                   "Lists the policies and their options, as stowage simulate and "
                   "stowage plan take them");
  line.example("stowage policies");
  line.example("stowage simulate t.json.gz --policy torchtune:stash=5");
  return run_verb(line, args, out, err, [](Console& console) -> Result<int> {
    if (console.json) {
      console.out << report::policies_json(planner::policies());
      return 0;
    }
    report::TextTable table;
    table.column("policy");
    table.column("option");
    table.column("default");
    table.column("");
    for (const planner::PolicyInfo& policy : planner::policies()) {
      table.row({policy.name, "", "", policy.summary});
      for (const planner::PolicyOption& option : policy.options) {
        table.row({"", option.name, option.default_value.empty() ? "-" : option.default_value,
                   option.help});
      }
    }
    console.say(table.text() + "\nWritten NAME:option=value,option=value.\n");
    return 0;
  });
}

}  // namespace stowage::cli
