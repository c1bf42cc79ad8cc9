#include "cli/simulated_ranks.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include "report/answers/data_parallel_text.h"
#include "report/words.h"

namespace stowage::cli {
namespace {

constexpr std::int64_t kMostRanks = 1'000'000;

Result<std::vector<std::int64_t>> numbers_of(const std::string& text) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string each = text.substr(begin, end - begin);
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(each.data(), each.data() + each.size(), number);
    if (error != std::errc() || rest != each.data() + each.size() || number < 1 ||
        number > kMostRanks) {
      return usage_error("--ranks: '" + each + "' is not a number of ranks",
                         "1 to 1000000, several with commas: 8,64,512");
    }
    numbers.push_back(number);
    begin = end + 1;
  }
  return numbers;
}

}  // namespace

Result<RanksAsked> ranks_asked(const std::optional<std::string>& ranks,
                               std::vector<std::string>& settings) {
  RanksAsked asked;
  const auto of_network = std::stable_partition(
      settings.begin(), settings.end(),
      [](const std::string& setting) { return !simulator::is_network_setting(setting); });
  const std::vector<std::string> network(std::make_move_iterator(of_network),
                                         std::make_move_iterator(settings.end()));
  settings.erase(of_network, settings.end());
  if (const Status set = simulator::apply_settings(asked.model, network); !set) return set.error();
  if (!ranks) {
    if (network.empty()) return asked;
    return usage_error("--set " + network.front() + " without --ranks",
                       "say over how many ranks, as --ranks 8,64");
  }
  Result<std::vector<std::int64_t>> numbers = numbers_of(*ranks);
  if (!numbers) return numbers.error();
  for (const std::int64_t number : *numbers) {
    if (simulator::fills_hosts(asked.model.network, number)) continue;
    const std::string in_host = std::to_string(asked.model.network.ranks_per_host);
    return usage_error(
        "--ranks: " + std::to_string(number) + " is no whole number of hosts of " + in_host +
            " ranks",
        "at most " + in_host + ", a multiple of it, or another --set network.ranks_per_host");
  }
  asked.numbers = std::move(numbers).value();
  return asked;
}

Result<std::optional<simulator::DataParallel>> simulate_ranks(const RanksAsked& asked,
                                                              const report::Simulation& simulation,
                                                              const simulator::Plan& plan,
                                                              const std::string& trace_file,
                                                              const Console& console) {
  if (asked.numbers.empty()) return std::optional<simulator::DataParallel>();
  Result<simulator::DataParallel> ranks = simulator::data_parallel(
      *simulation.index, plan, simulation.result, asked.model, asked.numbers);
  if (!ranks) {
    Error error = std::move(ranks).error();
    if (error.file.empty()) error.file = trace_file;
    return error;
  }
  if (!report::keeps_budget(*ranks, plan.budget)) {
    const Bytes peak = report::peak_of(*ranks, plan.budget.on);
    console.warn("with DDP's buckets the peak " + std::string(simulator::name_of(plan.budget.on)) +
                 " is " + report::exact_bytes(peak) + ", over the plan's budget of " +
                 report::exact_bytes(*plan.budget.device) + ": plan with " +
                 report::exact_bytes(peak - *plan.budget.device) + " less");
  }
  return std::optional<simulator::DataParallel>(std::move(ranks).value());
}

std::string network_names_for_set() {
  std::string names;
  for (const simulator::NetworkSetting& setting : simulator::network_settings()) {
    names += "\n  " + setting.name + ": " + setting.help;
  }
  return names;
}

std::vector<std::string> network_offers() {
  std::vector<std::string> offers;
  for (const simulator::NetworkSetting& setting : simulator::network_settings()) {
    offers.push_back(setting.name + "=");
  }
  return offers;
}

}  // namespace stowage::cli
