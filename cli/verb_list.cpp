#include "cli/verb_list.h"

#include <sstream>

#include "cli/torch_command.h"
#include "cli/verb_description_json.h"
#include "cli/verbs.h"

namespace stowage::cli {

const std::vector<ListedVerb>& listed_verbs() {
  static const std::vector<ListedVerb> verbs = {
      {"doctor", "", "what this build and this machine can do, and how to get the rest",
       verb_doctor},
      {"models", "", "lists the models, built-in and of your own, with their options", nullptr},
      {"profile", "MODEL -o T", "records one step of a model", nullptr},
      {"inspect", "T", "what is in a trace: phases, layers, who makes the peak", verb_inspect},
      {"policies", "", "lists the policies, with their options", verb_policies},
      {"simulate", "T", "replays a trace under a plan or a policy", verb_simulate},
      {"plan", "T --budget B", "finds the best plan, with its lower bound", verb_plan},
      {"execute", "--plan P", "runs real steps under a plan", nullptr},
      {"verify", "--plan P", "runs the model with and without the plan and compares", nullptr},
      {"attribute", "MODEL --layers L", "gradient x activation of layers, under a plan or without",
       nullptr},
      {"check", "--plan P", "fails when memory or stall has grown: for CI", nullptr},
      {"diff", "A B", "what changed between two traces, plans or results", verb_diff},
      {"export", "T -o F", "Chrome trace, picture, tables, memory_viz of a step", verb_export},
      {"completions", "SHELL", "a script that completes this command in bash, zsh or fish",
       verb_completions},
      {"man", "", "the manual page, for man -l -", verb_man},
  };
  return verbs;
}

std::vector<VerbDescription> describe_verbs() {
  std::vector<VerbDescription> verbs;
  for (const ListedVerb& verb : listed_verbs()) {
    std::string text;
    if (verb.function != nullptr) {
      std::ostringstream out;
      std::ostringstream err;
      (void)verb.function({kDescribe}, out, err);
      text = out.str();
    } else {
      text = torch_command_output({verb.name, kDescribe});
    }
    auto description = read_verb_description(text);
    if (!description) description = VerbDescription{.verb = verb.name};
    // The line of `stowage --help` is shorter.
    description->summary = verb.summary;
    verbs.push_back(std::move(*description));
  }
  return verbs;
}

}  // namespace stowage::cli
