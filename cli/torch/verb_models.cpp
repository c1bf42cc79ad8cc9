#include <ATen/Parallel.h>
#include <torch/headeronly/version.h>

#include "cli/torch/device_choice.h"
#include "cli/torch/results_json.h"
#include "cli/torch/run_request.h"
#include "cli/torch/torch_verbs.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

std::string model_text(const executor::ModelInfo& info) {
  std::string text = info.name + "  " + info.summary + "\n";
  for (const executor::ModelOption& option : info.options) {
    text += "  " + option.name + "=" + option.default_value + "  " + option.help + "\n";
  }
  return text;
}

}  // namespace

int verb_models(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("models", "Lists the models, with their options");
  std::optional<std::string> model;
  line.positional("MODEL", model, "only this one; a plugin's options too", /*required=*/false);
  line.offer("MODEL", model_words());
  line.detail(
      "plugin:LIB.so and script:FILE.pt are models of your own (docs/models.md); both are code\n"
      "that runs with your rights, a plugin's already when its options are asked for.");
  line.example("stowage models");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    std::vector<executor::ModelInfo> list;
    if (model) {
      Result<executor::ModelSpec> spec = executor::parse_model_spec(*model);
      if (!spec) return spec.error();
      Result<executor::ModelInfo> info = executor::describe_model(*spec);
      if (!info) return info.error();
      list.push_back(std::move(info).value());
    } else {
      list = executor::models();
      list.insert(list.end(), executor::file_models().begin(), executor::file_models().end());
    }
    if (console.json) {
      console.out << models_json(list);
      return 0;
    }
    std::string text;
    for (const executor::ModelInfo& info : list) text += model_text(info);
    if (!model) {
      text +=
          "\nexample: stowage profile gpt2:layers=6,width=256,seq=256,vocab=1024 "
          "--batch 4 -o t.json.gz\n";
    }
    console.say(text);
    return 0;
  });
}

namespace {

TorchDoctor examine() {
  TorchDoctor doctor;
  doctor.cpu.torch = TORCH_VERSION;
  doctor.cpu.device_name = "cpu";
  doctor.threads = at::get_num_threads();
  doctor.cuda_built = cuda_built();
  Result<executor::Device*> device = open_device("cuda");
  if (device) {
    doctor.gpu.emplace();
    (*device)->describe(*doctor.gpu);
    doctor.link = gpu_link_text();
  } else {
    doctor.no_gpu_because = device.error().message;
  }
  return doctor;
}

std::string doctor_text(const TorchDoctor& doctor) {
  std::string text =
      "LibTorch " + doctor.cpu.torch + ", cpu, " + std::to_string(doctor.threads) + " threads\n";
  if (!doctor.gpu) return text + "no GPU: " + doctor.no_gpu_because + "\n";
  const Environment& gpu = *doctor.gpu;
  text += gpu.device_name + ", " + format_bytes(gpu.device_memory) + ", of it " +
          format_bytes(gpu.context_bytes) + " used outside PyTorch\n";
  text += "  driver " + gpu.driver + "; CUDA runtime " + gpu.cuda + "\n";
  if (!doctor.link.empty()) text += "  link   " + doctor.link + "\n";
  return text;
}

}  // namespace

int verb_torch_doctor(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("doctor", "What this build of stowage-torch can do");
  line.example("stowage doctor");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    const TorchDoctor doctor = examine();
    if (console.json) {
      console.out << doctor_json(doctor);
    } else {
      console.say(doctor_text(doctor));
    }
    return 0;
  });
}

}  // namespace stowage::cli
