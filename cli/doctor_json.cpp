#include "cli/doctor_json.h"

#include "cli/json_pieces_json.h"
#include "traces/build_info.h"
#include "traces/json_bounds.h"

namespace stowage::cli {
namespace {

const Json* member(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found == json.end() ? nullptr : &*found;
}

std::optional<bool> truth(const Json* json) {
  if (json == nullptr) return std::nullopt;
  if (json->is_boolean()) return json->get<bool>();
  if (const Json* available = member(*json, "available"); available != nullptr) {
    return truth(available);
  }
  return std::nullopt;
}

Json parse(const std::string& text) {
  if (!check_json_bounds(text, "", kAnswerBounds)) return Json(nullptr);
  Json json = Json::parse(text, nullptr, false);
  return json.is_object() ? json : Json(nullptr);
}

}  // namespace

TorchFacts read_torch_facts(const std::string& text) {
  TorchFacts facts;
  const Json json = parse(text);
  if (!json.is_object()) return facts;
  facts.answered = true;
  facts.text = text;
  // The version itself, or an object that has it.
  const Json* torch = member(json, "libtorch");
  if (torch != nullptr && torch->is_object()) torch = member(*torch, "version");
  if (torch != nullptr && torch->is_string()) facts.version = torch->get<std::string>();
  if (const Json* features = member(json, "features"); features != nullptr) {
    facts.cuda_built = truth(member(*features, "cuda"));
  }
  facts.cupti = truth(member(json, "cupti"));
  return facts;
}

std::string doctor_json(const Doctor& doctor) {
  const Machine& machine = doctor.machine;
  const Json torch = doctor.torch.answered ? parse(doctor.torch.text) : Json(nullptr);
  const auto passed_on = [&torch](const char* key) {
    const Json* found = member(torch, key);
    return found == nullptr ? Json(nullptr) : *found;
  };
  Json json;
  json["schema"] = "stowage-doctor/1";
  json["version"] = kVersion;
  json["features"] = {{"plan", true},
                      {"simulate", true},
                      {"torch", doctor.torch.answered},
                      {"cuda", doctor.torch.cuda_built.value_or(false)},
                      {"build_type", kBuildType},
                      {"compiler", kCompiler},
                      {"sanitizers", kSanitizers}};
  json["torch_command"] = doctor.torch_command.empty() ? Json(nullptr) : Json(doctor.torch_command);
  json["machine"] = {
      {"cpu", machine.cpu},
      {"cpus", machine.cpus},
      {"memory_bytes", machine.memory},
      {"memory_available_bytes", machine.memory_available},
      {"nvidia_driver",
       machine.driver_version.empty() ? Json(nullptr) : Json(machine.driver_version)},
      {"gpus", machine.gpus}};
  json["devices"] = passed_on("devices");
  json["libtorch"] = passed_on("libtorch");
  json["cupti"] = passed_on("cupti");
  json["link"] = passed_on("link");
  return dump(json);
}

}  // namespace stowage::cli
