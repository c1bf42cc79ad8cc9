#include "tests/predictions/golden_answers.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/cli/process.h"

namespace stowage::predictions {
namespace {

constexpr const char* kJson = ".json";

std::string golden_folder() {
  return std::string(STOWAGE_GOLDEN_DIR) + "/predictions/";
}

}  // namespace

bool update_wanted() {
  const char* update = std::getenv("STOWAGE_UPDATE_GOLDEN");
  return update != nullptr && std::string(update) == "1";
}

void write_answers(const std::string& sample, const Answers& answers) {
  std::string text;
  for (const auto& [name, answer] : answers) {
    text += (text.empty() ? "{\n\n" : ",\n\n") + nlohmann::json(name).dump() +
            ": {\n\"figures\": " + answer.figures.dump(2) + ",\n\"plan\": " + answer.plan + "\n}";
  }
  std::filesystem::create_directories(golden_folder());
  std::ofstream file(golden_folder() + sample + kJson, std::ios::binary);
  if (!(file << text + "\n\n}\n").flush()) {
    throw std::runtime_error(golden_folder() + sample + kJson + ": cannot be written");
  }
}

Answers read_answers(const std::string& sample) {
  const std::string file = golden_folder() + sample + kJson;
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error("no " + file + ": STOWAGE_UPDATE_GOLDEN=1 writes it");
  }
  const auto json = PlanJson::parse(cli_tests::read_text(file));
  Answers answers;
  for (const auto& [name, row] : json.items()) {
    answers[name] = {nlohmann::json(row.at("figures")), plan_lines(row.at("plan"))};
  }
  return answers;
}

std::vector<std::string> recorded_samples() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() == kJson) names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace stowage::predictions
