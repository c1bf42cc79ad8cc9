#include "executor/distributed/rendezvous.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace stowage::executor {

namespace {

constexpr const char* kAgentHasStore = "TORCHELASTIC_USE_AGENT_STORE";
constexpr std::int64_t kMostRanks = 1'000'000;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Result<std::int64_t> number(const char* name, std::int64_t least, std::int64_t most) {
  const std::string text = variable(name);
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code == std::errc() && stop == end && value >= least && value <= most) return value;
  return Error{ErrorCode::usage,
               text.empty() ? std::string("--distributed, and ") + name +
                                  " is not set: this process is no rank of a run"
                            : std::string(name) + "=" + text + " is not a number from " +
                                  std::to_string(least) + " to " + std::to_string(most),
               "", "", "start it as torchrun --no-python --nproc-per-node 2 stowage .."};
}

}  // namespace

Result<Rendezvous> rendezvous_from_environment() {
  Rendezvous rendezvous;
  const Result<std::int64_t> ranks = number("WORLD_SIZE", 1, kMostRanks);
  if (!ranks) return ranks.error();
  const Result<std::int64_t> rank = number("RANK", 0, *ranks - 1);
  if (!rank) return rank.error();
  const Result<std::int64_t> port = number("MASTER_PORT", 1, 65535);
  if (!port) return port.error();
  rendezvous.rank = *rank;
  rendezvous.ranks = *ranks;
  rendezvous.port = static_cast<std::uint16_t>(*port);
  rendezvous.address = variable("MASTER_ADDR");
  if (rendezvous.address.empty()) {
    return Error{ErrorCode::usage, "--distributed, and MASTER_ADDR is not set", "", "",
                 "start it as torchrun --no-python --nproc-per-node 2 stowage .."};
  }
  rendezvous.is_made = variable(kAgentHasStore) == "True";
  if (const std::string attempt = variable("TORCHELASTIC_RESTART_COUNT"); !attempt.empty()) {
    rendezvous.attempt = attempt;
  }
  return rendezvous;
}

void tell_children(const Rendezvous& rendezvous) {
  if (rendezvous.makes_store()) ::setenv(kAgentHasStore, "True", 1);
}

}  // namespace stowage::executor
