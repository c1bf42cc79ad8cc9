#include "tests/predictions/questions.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "cli/verbs.h"
#include "tests/cli/process.h"
#include "traces/trace_file.h"

namespace stowage::predictions {
namespace {

constexpr const char* kEnding = ".trace.json.gz";

std::string samples_folder() {
  return std::string(STOWAGE_SOURCE_DIR) + "/traces/samples";
}

cli_tests::Outcome command(const cli::Args& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = cli::run_stowage(args, out, err);
  return {code, out.str(), err.str()};
}

// Exit code 1 is an answer too. `args` end with --json.
nlohmann::ordered_json answer_of(const cli_tests::Outcome& outcome, const cli::Args& args) {
  if (outcome.code == 0 || outcome.code == 1) {
    auto json = PlanJson::parse(outcome.out, nullptr, false);
    if (json.is_object()) return json;
  }
  std::string line = "stowage";
  for (const std::string& word : args) line += " " + word;
  throw std::runtime_error(line + ": exit code " + std::to_string(outcome.code) + "\n" +
                           outcome.err);
}

// What plan's and simulate's answers name alike.
nlohmann::json totals(const PlanJson& json) {
  nlohmann::json figures;
  for (const char* key : {"peak_requested_bytes", "peak_active_bytes", "peak_reserved_bytes",
                          "host_bytes", "step_ns", "stall_ns"}) {
    figures[key] = json.at(key);
  }
  figures["d2h_bytes"] = json.at("transfer_bytes").at("d2h");
  figures["h2d_bytes"] = json.at("transfer_bytes").at("h2d");
  return figures;
}

}  // namespace

std::vector<std::string> sample_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(samples_folder())) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(kEnding))
      names.push_back(name.substr(0, name.size() - std::string(kEnding).size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string sample_file(const std::string& sample) {
  return samples_folder() + "/" + sample + kEnding;
}

std::int64_t memory_floor(const std::string& sample) {
  const cli::Args args = {"plan",        sample_file(sample), "--budget", "1",
                          "--placement", "caching",           "--json"};
  return answer_of(command(args), args).at("floor").at("bytes").get<std::int64_t>();
}

Recorded recorded_of(const std::string& sample) {
  const auto plans = [&](const char* policy) {
    return command({"plan", sample_file(sample), "--policy", policy, "--placement", "caching",
                    "--json"})
               .code == 0;
  };
  const cli::Args args = {"simulate", sample_file(sample), "--policy", "resident", "--json"};
  const Trace trace = load_trace(sample_file(sample)).value().trace;
  return {plans("checkpoint"),
          plans("selective"),
          !answer_of(command(args), args).at("planned_memory").is_null(),
          trace.run.optimizer != "none",
          !trace.divided.empty(),
          trace.run.model.find("attribute=") != std::string::npos};
}

std::vector<Question> questions(std::int64_t floor, const Recorded& recorded) {
  std::vector<Question> list;
  for (const char* policy :
       {"resident", "save_on_cpu", "layerwise", "layerwise:prefetch=1", "torchtune",
        "torchtune:stash=0,min_bytes=1MiB", "thunder", "thunder:fraction=0.5"}) {
    list.push_back({policy, policy, ""});
  }
  // A budget moves a policy's copies as well, and what does not fit is an answer.
  for (const char* policy : {"resident", "save_on_cpu", "layerwise", "torchtune", "thunder"}) {
    list.push_back({std::string(policy) + " 75%", policy, "75%"});
  }
  if (recorded.layers) {
    list.push_back({"checkpoint", "checkpoint", ""});
    list.push_back({"checkpoint every=2", "checkpoint:every=2", ""});
    list.push_back({"checkpoint optimal 60%", "checkpoint:schedule=optimal", "60%"});
    list.push_back({"fairscale", "fairscale", ""});
  }
  if (recorded.ops) list.push_back({"selective", "selective", ""});
  if (recorded.parts) list.push_back({"tail_accumulation", "tail_accumulation", ""});
  if (recorded.attributes) list.push_back({"captum", "captum", ""});
  if (recorded.optimizer) list.push_back({"zero_offload", "zero_offload", ""});
  for (const char* budget : {"75%", "60%", "50%"}) {
    list.push_back({std::string("auto ") + budget, "auto", budget});
  }
  list.push_back({"auto floor+5%", "auto", std::to_string(floor + floor / 20)});
  list.push_back({"auto floor-1", "auto", std::to_string(floor - 1)});
  if (recorded.driver) {
    list.push_back({"resident planned", "resident", "", "planned"});
    for (const char* budget : {"75%", "60%", "50%"}) {
      list.push_back({std::string("auto planned ") + budget, "auto", budget, "planned"});
    }
  }
  return list;
}

Answer ask(const std::string& sample, const Question& question) {
  cli::Args args = {"plan",          sample_file(sample), "--policy",
                    question.policy, "--placement",       question.placement};
  if (!question.budget.empty()) args.insert(args.end(), {"--budget", question.budget});
  args.emplace_back("--json");
  const cli_tests::Outcome outcome = command(args);
  const PlanJson json = answer_of(outcome, args);
  nlohmann::json figures = totals(json.at("predicted"));
  figures["exit_code"] = outcome.code;
  figures["outcome"] = json.at("outcome");
  figures["budget_bytes"] = json.at("budget").at("device_bytes");
  figures["lower_bound_step_ns"] = json.at("lower_bound").at("step_ns");
  figures["gap"] = json.at("gap");
  figures["floor_bytes"] = json.at("floor").at("bytes");
  return {std::move(figures), plan_lines(json.at("plan"))};
}

nlohmann::json replay(const std::string& sample, const Answer& answer) {
  const cli_tests::TemporaryFolder folder;
  const cli::Args args = {"simulate", sample_file(sample), "--plan",
                          folder.write("plan.json", answer.plan), "--json"};
  const PlanJson json = answer_of(command(args), args);
  nlohmann::json figures = totals(json);
  figures["planned_memory"] = json.at("planned_memory");
  return figures;
}

std::string plan_lines(PlanJson plan) {
  if (plan.contains("made_by")) {
    plan["made_by"].erase("created");
    plan["made_by"].erase("tool");
  }
  if (plan.contains("for")) plan["for"].erase("trace_file");
  std::string text;
  for (const auto& [key, value] : plan.items()) {
    text += (text.empty() ? "{\n" : ",\n") + PlanJson(key).dump() + ": ";
    if (!value.is_array() || value.empty()) {
      text += value.dump();
      continue;
    }
    for (std::size_t i = 0; i < value.size(); ++i)
      text += (i == 0 ? "[\n" : ",\n") + value[i].dump();
    text += "\n]";
  }
  return text + "\n}";
}

}  // namespace stowage::predictions
