#include "executor/device/host_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace stowage::executor {

Bytes available_host_bytes() {
  std::ifstream meminfo("/proc/meminfo");
  std::string key;
  std::string unit;
  Bytes kib = 0;
  while (meminfo >> key >> kib) {
    std::getline(meminfo, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return std::numeric_limits<Bytes>::max();
}

}  // namespace stowage::executor
