#include "traces/fingerprint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "traces/sha256.h"

namespace stowage {
namespace {

struct Option {
  std::string name;
  std::string value;
};

// Threads change gradients and bytes on a CPU only.
std::vector<Option> options_of(const Trace& trace) {
  std::vector<Option> options = {{"device", trace.env.device == "cpu" ? "cpu" : "gpu"},
                                 {"deterministic", trace.run.deterministic ? "yes" : "no"},
                                 {"dtype", trace.run.dtype},
                                 {"allocator", trace.env.allocator}};
  options.push_back({"autocast", trace.run.autocast});
  if (trace.env.device == "cpu") options.push_back({"threads", std::to_string(trace.run.threads)});
  return options;
}

std::string or_none(const std::string& value) {
  return value.empty() ? "none" : value;
}

std::string list_text(const std::vector<std::int64_t>& list) {
  std::string out = "[";
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (i > 0) out += ",";
    out += std::to_string(list[i]);
  }
  return out + "]";
}

// Site, dtype, shape, strides, storage index.
using Pack = std::array<std::string, 5>;

Pack pack_of(const Trace& trace, std::size_t row) {
  const Saved& saved = trace.saved;
  const std::size_t tensor = saved.tensor[row].index();
  return {trace.string(saved.site[row]), name_of(trace.tensors.dtype[tensor]),
          list_text(trace.list(trace.tensors.shape[tensor])),
          "strides " + list_text(trace.list(trace.tensors.strides[tensor])),
          "storage " + std::to_string(saved.storage_index[row])};
}

// The parts [first, last] in words.
std::string words(const Pack& pack, std::size_t first, std::size_t last) {
  std::string out;
  for (std::size_t i = first; i <= last; ++i) {
    if (!out.empty()) out += " ";
    out += pack[i];
  }
  return out;
}

constexpr std::size_t kShape = 2;  // what is always shown ends here

}  // namespace

std::string fingerprint(const Trace& trace) {
  Sha256 hash;
  for (const Option& option : options_of(trace)) {
    // Nothing of what earlier versions did not know where it is not there.
    const bool is_hashed =
        option.name == "autocast" ? !option.value.empty() : option.name != "device";
    if (is_hashed) hash.update(option.name + "=" + option.value + "\n");
  }
  std::string line;
  for (std::size_t row = 0; row < trace.saved.size(); ++row) {
    const Pack pack = pack_of(trace, row);
    line = words(pack, 0, pack.size() - 1) + "\n";
    hash.update(line);
  }
  return "sha256:" + hash.hex();
}

std::optional<std::string> first_difference(const Trace& there, const Trace& here) {
  const std::vector<Option> options_there = options_of(there);
  const std::vector<Option> options_here = options_of(here);
  for (std::size_t i = 0; i < std::min(options_there.size(), options_here.size()); ++i) {
    if (options_there[i].value != options_here[i].value) {
      return options_there[i].name + ": " + or_none(options_there[i].value) + " there, " +
             or_none(options_here[i].value) + " here";
    }
  }
  const std::size_t packs = std::max(there.saved.size(), here.saved.size());
  for (std::size_t row = 0; row < packs; ++row) {
    const std::string prefix = "pack " + std::to_string(row) + ": ";
    if (row >= here.saved.size()) {
      return prefix + words(pack_of(there, row), 0, kShape) + " there, no more packs here";
    }
    if (row >= there.saved.size()) {
      return prefix + "no more packs there, " + words(pack_of(here, row), 0, kShape) + " here";
    }
    const Pack a = pack_of(there, row);
    const Pack b = pack_of(here, row);
    const auto differs =
        static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
    if (differs == a.size()) continue;
    const std::size_t last = std::max(differs, kShape);
    return prefix + words(a, 0, last) + " there, " + words(b, differs, last) + " here";
  }
  return std::nullopt;
}

}  // namespace stowage
