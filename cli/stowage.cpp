#include <algorithm>

#include "cli/python_command.h"
#include "cli/torch_command.h"
#include "cli/verb_list.h"
#include "cli/verbs.h"
#include "report/answers/text_table.h"
#include "traces/build_info.h"
#include "traces/nearest.h"

namespace stowage::cli {
namespace {

const std::vector<std::string> kNotYet = {"import"};

std::string general_help() {
  report::TextTable table;
  table.column("");
  table.column("");
  table.column("");
  for (const ListedVerb& verb : listed_verbs())
    table.row({verb.name, verb.arguments, verb.summary});
  return "usage: stowage VERB [ARGS]\n\n"
         "Decides where every tensor of a PyTorch training step lives: records one step, finds a "
         "plan\nfor a memory budget, and applies it to the real model.\n\n" +
         table.text(2) +
         "\nin three commands:\n"
         "  stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 --batch 4 -o t.json.gz\n"
         "  stowage plan t.json.gz --budget 60% -o p.json\n"
         "  stowage verify --plan p.json\n"
         "\nEach verb has --help, --json, --quiet and --color. Sizes are 24GiB, 24GB, 512MiB, "
         "bytes "
         "or 60%.\n"
         "Exit codes: 0 ok, 1 condition not met, 2 usage, 3 bad input, 4 environment, 70 internal, "
         "130 interrupted.\n";
}

int fail(const Args& args, const Error& error, std::ostream& out, std::ostream& err) {
  Console console(out, err);
  console.json = std::find(args.begin(), args.end(), "--json") != args.end();
  console.paint_err = paint_for("auto", terminal().err_is_terminal);
  return report_error(console, error);
}

}  // namespace

int run_stowage(const Args& args, std::ostream& out, std::ostream& err) {
  if (args.empty()) {
    err << general_help();
    return static_cast<int>(ErrorCode::usage);
  }
  const std::string& name = args.front();
  if (name == "--version") {
    out << "stowage " << kVersion << '\n';
    return 0;
  }
  const bool asks_help = name == "help" || name == "--help" || name == "-h";
  if (asks_help && (args.size() == 1 || name != "help")) {
    out << general_help();
    return 0;
  }
  if (asks_help) return run_stowage({args[1], "--help"}, out, err);

  const Args rest(args.begin() + 1, args.end());
  if (name == "demo-report") return verb_demo_report(rest, out, err);
  std::vector<std::string> names;
  for (const ListedVerb& verb : listed_verbs()) {
    names.push_back(verb.name);
    if (verb.name != name) continue;
    if (verb.function != nullptr) return verb.function(rest, out, err);
    if (is_python_profile(args)) return fail(rest, exec_python_profile(args, out, err), out, err);
    return fail(rest, exec_torch_command(args, out, err), out, err);
  }
  if (std::find(kNotYet.begin(), kNotYet.end(), name) != kNotYet.end()) {
    return fail(rest, not_supported_yet("'stowage " + name + "'"), out, err);
  }
  if (name.starts_with("-")) {
    return fail(rest,
                usage_error("unknown option '" + name + "' before the verb", "see stowage --help"),
                out, err);
  }
  const std::string near = nearest(name, names);
  return fail(rest,
              usage_error("unknown verb '" + name + "'",
                          near.empty() ? "see stowage --help" : "did you mean " + near + "?"),
              out, err);
}

}  // namespace stowage::cli
