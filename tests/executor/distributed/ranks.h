// Tests that are two ranks: the test's own program runs once more for each, with that test alone.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <future>
#include <string>
#include <vector>

#include "tests/cli/process.h"

namespace stowage {

// A port that nobody has; another process may take it before it is used.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  ::bind(socket, reinterpret_cast<sockaddr*>(&address), length);
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &length);
  ::close(socket);
  return ntohs(address.sin_port);
}

// What torchrun sets, without its agent.
inline std::vector<std::string> rank_environment(int rank, int ranks, int port) {
  return {"RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(ranks),
          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port), "OMP_NUM_THREADS=1"};
}

// All ranks at once, until the last one ends.
inline std::vector<cli_tests::Outcome> run_ranks(const std::vector<cli_tests::Command>& commands) {
  const int port = free_port();
  std::vector<std::future<cli_tests::Outcome>> running;
  for (std::size_t rank = 0; rank < commands.size(); ++rank) {
    cli_tests::Command command = commands[rank];
    const auto environment =
        rank_environment(static_cast<int>(rank), static_cast<int>(commands.size()), port);
    command.environment.insert(command.environment.end(), environment.begin(), environment.end());
    running.push_back(
        std::async(std::launch::async, [command] { return cli_tests::run(command); }));
  }
  std::vector<cli_tests::Outcome> outcomes;
  outcomes.reserve(running.size());
  for (auto& each : running) outcomes.push_back(each.get());
  return outcomes;
}

}  // namespace stowage
