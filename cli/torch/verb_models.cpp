#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "cli/torch/results_json.h"
#include "cli/torch/torch_verbs.h"

namespace stowage::cli {

int verb_models(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("models", "Lists the built-in models, with their options");
  line.example("stowage models");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (console.json) {
      console.out << models_json();
      return 0;
    }
    for (const executor::ModelInfo& info : executor::models()) {
      console.out << info.name << "  " << info.summary << "\n";
      for (const executor::ModelOption& option : info.options) {
        console.out << "  " << option.name << "=" << option.default_value << "  " << option.help
                    << "\n";
      }
    }
    console.out << "\nexample: stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 "
                   "--batch 4 -o t.json.gz\n";
    return 0;
  });
}

int verb_torch_doctor(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("doctor", "What this build of stowage-torch can do");
  line.example("stowage doctor");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    Environment env;
    env.torch = TORCH_VERSION;
    env.device_name = "cpu";
    if (console.json) {
      console.out << doctor_json(env, at::get_num_threads());
    } else {
      console.out << "LibTorch " << env.torch << ", cpu, " << at::get_num_threads() << " threads\n";
    }
    return 0;
  });
}

}  // namespace stowage::cli
