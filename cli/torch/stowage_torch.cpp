#include <string>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "cli/torch/torch_verbs.h"
#include "traces/nearest.h"

namespace stowage::cli {

int run_stowage_torch(const Args& args, std::ostream& out, std::ostream& err) {
  using Function = int (*)(const Args&, std::ostream&, std::ostream&);
  static const std::vector<std::pair<std::string, Function>> verbs = {
      {"profile", verb_profile},
      {"execute", verb_execute},
      {"verify", verb_verify},
      {"check", verb_check},
      {"attribute", verb_attribute},
      {"models", verb_models},
      {"doctor", verb_torch_doctor},
      {"clean-pass", verb_clean_pass},
      {"timing-pass", verb_timing_pass},
      {"run-steps", verb_run_steps},
      {"check-steps", verb_check_steps},
      {"divided-step", verb_divided_step},
      {"attribute-part", verb_attribute_part},
  };
  if (!args.empty()) {
    for (const auto& [name, function] : verbs) {
      if (name == args.front()) return function(Args(args.begin() + 1, args.end()), out, err);
    }
  }
  const Console console{out, err};
  const std::string near =
      args.empty()
          ? ""
          : nearest(args.front(), {"profile", "execute", "verify", "check", "attribute", "models"});
  return report_error(
      console, usage_error(args.empty() ? "no verb" : "unknown verb '" + args.front() + "'",
                           near.empty() ? "this program is started by `stowage`; see stowage --help"
                                        : "did you mean " + near + "?"));
}

}  // namespace stowage::cli
