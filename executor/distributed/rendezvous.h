// Rendezvous: which rank of how many this process is, and where they meet: what torchrun tells its
// processes in their environment, as PyTorch's "env://" reads it.
#pragma once

#include <cstdint>
#include <string>

#include "traces/result.h"

namespace stowage::executor {

struct Rendezvous {
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::string address;
  std::uint16_t port = 0;
  // torchrun's agent has the store; else the first rank makes it.
  bool is_made = false;
  std::string attempt = "0";  // torchrun's restart, whose ranks do not meet those before it

  [[nodiscard]] bool makes_store() const { return rank == 0 && !is_made; }
};

// From RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Errors (usage): one is missing, or is no
// number that can be.
[[nodiscard]] Result<Rendezvous> rendezvous_from_environment();

// For processes that this one starts: they are the same rank, and its store is there.
void tell_children(const Rendezvous& rendezvous);

}  // namespace stowage::executor
