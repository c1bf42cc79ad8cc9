#include "cli/torch/micro_batches.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "cli/console.h"
#include "simulator/step/unroll.h"
#include "traces/trace_limits.h"

namespace stowage::cli {

namespace {

constexpr std::int32_t kMostParts = 1 << 20;

Error no_division(const std::string& option, const std::string& what) {
  return usage_error("--micro-batches " + option + ": " + what,
                     "a segment and numbers of parts, 2 or more: head=2,4");
}

}  // namespace

Result<std::vector<Parts>> parse_divisions(const std::vector<std::string>& options) {
  std::vector<Parts> divisions;
  for (const std::string& option : options) {
    const std::size_t equals = option.rfind('=');
    if (equals == std::string::npos || equals == 0) return no_division(option, "names no segment");
    const std::string segment = option.substr(0, equals);
    std::string_view rest = std::string_view(option).substr(equals + 1);
    while (true) {
      const std::string_view number = rest.substr(0, rest.find(','));
      std::int32_t count = 0;
      const char* const end = number.data() + number.size();
      const auto [stop, code] = std::from_chars(number.data(), end, count);
      if (code != std::errc() || stop != end || count < 2 || count > kMostParts) {
        return no_division(option, "'" + std::string(number) + "' is no number of parts (2 to " +
                                       std::to_string(kMostParts) + ")");
      }
      Parts parts{{segment, count}};
      if (std::find(divisions.begin(), divisions.end(), parts) != divisions.end()) {
        return no_division(option, simulator::parts_text(parts) + " is named twice");
      }
      if (divisions.size() == kMostDivided) {
        return no_division(option, "more than " + std::to_string(kMostDivided) + " in all");
      }
      divisions.push_back(std::move(parts));
      if (number.size() == rest.size()) break;
      rest.remove_prefix(number.size() + 1);
    }
  }
  return divisions;
}

std::vector<std::string> parts_arguments(const Parts& parts) {
  std::vector<std::string> arguments;
  for (const auto& each : parts) {
    arguments.insert(arguments.end(),
                     {"--micro-batches", each.segment + "=" + std::to_string(each.parts)});
  }
  return arguments;
}

}  // namespace stowage::cli
