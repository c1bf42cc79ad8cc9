#include "cli/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>

namespace stowage::cli {
namespace {

namespace fs = std::filesystem;

// The text after "key :" or "key:" of the first line that begins with `key`.
std::string field(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto first = line.find_first_not_of(" \t", colon + 1);
    return first == std::string::npos ? std::string() : line.substr(first);
  }
  return {};
}

// "16384 kB" of /proc/meminfo, which means KiB.
Bytes kib_field(const fs::path& file, const std::string& key) {
  const std::string text = field(file, key);
  Bytes value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value * 1024;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug ..."
std::string driver_version(const fs::path& file) {
  std::string text = field(file, "NVRM version");
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(" \t", at), text.size());
    const std::string word = text.substr(at, end - at);
    const bool version = word.find('.') != std::string::npos &&
                         word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
    at = end + 1;
  }
  return {};
}

}  // namespace

Machine look_at_machine(const std::string& proc) {
  const fs::path root(proc);
  Machine machine;
  machine.cpu = field(root / "cpuinfo", "model name");
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) machine.cpus = CPU_COUNT(&set);
  machine.memory = kib_field(root / "meminfo", "MemTotal");
  machine.memory_available = kib_field(root / "meminfo", "MemAvailable");

  std::error_code error;
  const fs::path nvidia = root / "driver" / "nvidia";
  machine.nvidia_driver = fs::exists(nvidia / "version", error);
  machine.driver_version = driver_version(nvidia / "version");
  std::vector<fs::path> folders;
  for (fs::directory_iterator at(nvidia / "gpus", error), end; !error && at != end;
       at.increment(error)) {
    folders.push_back(at->path());
  }
  std::sort(folders.begin(), folders.end());
  for (const fs::path& folder : folders) {
    const std::string name = field(folder / "information", "Model");
    machine.gpus.push_back(name.empty() ? folder.filename().string() : name);
  }
  return machine;
}

}  // namespace stowage::cli
