// What is made from the descriptions of the verbs: completions and the manual page.
#include "cli/completion_scripts.h"
#include "cli/man_page.h"
#include "cli/verb_list.h"
#include "cli/verbs.h"
#include "traces/named_value.h"

namespace stowage::cli {
namespace {

const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

void note_what_is_missing(const std::vector<VerbDescription>& verbs, const Console& console) {
  std::string without;
  for (const VerbDescription& verb : verbs) {
    if (verb.options.empty()) without += (without.empty() ? "" : ", ") + verb.verb;
  }
  if (without.empty()) return;
  console.warn("options are left out of " + without +
               ": stowage-torch, which has them, is not there or did not answer");
}

}  // namespace

int verb_completions(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("completions", "Prints a script that completes this command in a shell");
  std::optional<std::string> shell;
  line.positional("SHELL", shell, "bash, zsh or fish");
  line.offer("SHELL", kShells);
  line.detail(
      "An installed stowage has them where the shells look. By hand, for one user:\n"
      "  bash: ~/.local/share/bash-completion/completions/stowage\n"
      "  zsh:  a file _stowage in a folder of $fpath\n"
      "  fish: ~/.config/fish/completions/stowage.fish");
  line.example("source <(stowage completions bash)");
  line.example("stowage completions fish > ~/.config/fish/completions/stowage.fish");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (console.json) return usage_error("--json: a script is no JSON");
    std::string (*script)(const std::vector<VerbDescription>&) = nullptr;
    if (*shell == "bash") script = bash_completions;
    if (*shell == "zsh") script = zsh_completions;
    if (*shell == "fish") script = fish_completions;
    if (script == nullptr) return unknown_name("SHELL", "shell", *shell, kShells);
    const std::vector<VerbDescription> verbs = describe_verbs();
    note_what_is_missing(verbs, console);
    console.out << script(verbs);
    return 0;
  });
}

int verb_man(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("man", "Prints the manual page");
  line.example("stowage man | man -l -");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (console.json) return usage_error("--json: a manual page is no JSON");
    const std::vector<VerbDescription> verbs = describe_verbs();
    note_what_is_missing(verbs, console);
    console.out << man_page(verbs);
    return 0;
  });
}

}  // namespace stowage::cli
