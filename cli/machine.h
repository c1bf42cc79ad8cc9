// What this machine is, read from /proc: no library of any vendor is asked or linked.
#pragma once

#include <string>
#include <vector>

#include "traces/units.h"

namespace stowage::cli {

struct Machine {
  std::string cpu;   // model name, or empty
  int cpus = 0;      // that this process may use
  Bytes memory = 0;  // physical, 0 = not known
  Bytes memory_available = 0;
  bool nvidia_driver = false;     // /proc/driver/nvidia is there
  std::string driver_version;     // "535.104.05", or empty
  std::vector<std::string> gpus;  // names
};

// `proc` is the root of the proc file system; a test gives its own. Nothing there is an error: what
// cannot be read stays empty.
[[nodiscard]] Machine look_at_machine(const std::string& proc = "/proc");

}  // namespace stowage::cli
