#include "executor/models/option_reader.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "traces/nearest.h"

namespace stowage::executor {

namespace {

std::optional<std::int64_t> whole_number(std::string_view text, std::int64_t least,
                                         std::int64_t most) {
  std::int64_t parsed = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, parsed);
  if (code != std::errc() || stop != end || parsed < least || parsed > most) return std::nullopt;
  return parsed;
}

}  // namespace

Error usage_error(std::string message, std::string hint) {
  return Error{.code = ErrorCode::usage,
               .message = std::move(message),
               .file = {},
               .pointer = {},
               .hint = std::move(hint)};
}

std::string suggestion(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  if (!near.empty()) return "did you mean '" + near + "'?";
  std::string text = "one of: ";
  for (const std::string& candidate : candidates) {
    if (&candidate != &candidates.front()) text += ", ";
    text += candidate;
  }
  return text;
}

OptionReader::OptionReader(const ModelInfo& info, const ModelSpec& spec)
    : info_(info), spec_(spec) {
  std::vector<std::string> names;
  names.reserve(info.options.size());
  for (const ModelOption& option : info.options) names.push_back(option.name);
  for (const auto& [name, value] : spec.options) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    fail("model '" + info.name + "' has no option '" + name + "'", suggestion(name, names));
  }
}

void OptionReader::fail(const std::string& message, const std::string& hint) {
  if (!error_) error_ = usage_error(message, hint);
}

void OptionReader::fail_value(const std::string& name, const std::string& value,
                              const std::string& allowed) {
  fail("model '" + info_.name + "': " + name + "=" + value + " is not allowed", allowed);
}

std::string OptionReader::written(const std::string& name) const {
  if (const auto it = spec_.options.find(name); it != spec_.options.end()) return it->second;
  const auto declared = std::find_if(info_.options.begin(), info_.options.end(),
                                     [&](const ModelOption& o) { return o.name == name; });
  STOWAGE_ASSERT(declared != info_.options.end());
  return declared->default_value;
}

std::int64_t OptionReader::parse_integer(const std::string& name, const std::string& value,
                                         std::int64_t least, std::int64_t most) {
  if (const auto parsed = whole_number(value, least, most)) return *parsed;
  fail_value(name, value,
             "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return least;
}

std::int64_t OptionReader::integer(const std::string& name, std::int64_t least, std::int64_t most) {
  return parse_integer(name, written(name), least, most);
}

std::int64_t OptionReader::integer_or(const std::string& name, std::int64_t fallback,
                                      std::int64_t least, std::int64_t most) {
  if (spec_.options.count(name) == 0) return fallback;
  return parse_integer(name, written(name), least, most);
}

std::vector<std::int64_t> OptionReader::integers(const std::string& name, std::size_t count,
                                                 std::int64_t least, std::int64_t most) {
  const std::string value = written(name);
  std::vector<std::int64_t> numbers;
  std::size_t begin = 0;
  while (begin <= value.size() && numbers.size() <= count) {
    const std::size_t end = std::min(value.find('-', begin), value.size());
    const auto parsed =
        whole_number(std::string_view(value).substr(begin, end - begin), least, most);
    if (!parsed) break;
    numbers.push_back(*parsed);
    begin = end + 1;
  }
  if (numbers.size() == count && begin > value.size()) return numbers;
  fail_value(name, value,
             std::to_string(count) + " whole numbers from " + std::to_string(least) + " to " +
                 std::to_string(most) + ", joined by -");
  return std::vector<std::int64_t>(count, least);
}

double OptionReader::number(const std::string& name, double least, double below) {
  const std::string value = written(name);
  double parsed = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, code] = std::from_chars(value.data(), end, parsed);
  if (code == std::errc() && stop == end && parsed >= least && parsed < below) return parsed;
  fail_value(name, value,
             "a number from " + std::to_string(least) + " to below " + std::to_string(below));
  return least;
}

bool OptionReader::boolean(const std::string& name) {
  const std::string value = written(name);
  if (value == "true" || value == "1") return true;
  if (value != "false" && value != "0") fail_value(name, value, "true or false");
  return false;
}

std::string OptionReader::choice(const std::string& name, const std::vector<std::string>& allowed) {
  std::string value = written(name);
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  fail_value(name, value, suggestion(value, allowed));
  return allowed.front();
}

}  // namespace stowage::executor
