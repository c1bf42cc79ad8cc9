#include "executor/model_spec.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "executor/models/option_reader.h"

namespace stowage::executor {

namespace {

constexpr std::int64_t kMostBatch = 1'000'000'000;
constexpr std::string_view kPlugin = "plugin:";
constexpr std::string_view kScript = "script:";
constexpr std::string_view kPython = "python:";
static_assert(kPlugin.size() == kScript.size());

// Where the model's name ends: at a colon or at the end.
std::size_t name_end(const std::string& text) {
  if (!text.starts_with(kPlugin) && !text.starts_with(kScript)) {
    return std::min(text.find(':'), text.size());
  }
  for (std::size_t at = text.find(':', kPlugin.size()); at != text.npos;
       at = text.find(':', at + 1)) {
    const std::size_t stop = text.find_first_of("./=,:", at + 1);
    if (stop == text.npos || (text[stop] != '.' && text[stop] != '/')) return at;
  }
  return text.size();
}

Status set_option(ModelSpec& spec, const std::string& item, const std::string& text) {
  const std::size_t equals = item.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
    return usage_error("model spec '" + text + "': '" + item + "' is not an option",
                       "options are written NAME:key=value,key=value");
  }
  std::string key = item.substr(0, equals);
  std::string value = item.substr(equals + 1);
  bool fresh = true;
  if (key == "batch") {
    fresh = spec.batch == 0;
    const char* const end = value.data() + value.size();
    std::int64_t parsed = 0;
    const auto [stop, code] = std::from_chars(value.data(), end, parsed);
    if (code != std::errc() || stop != end || parsed < 1 || parsed > kMostBatch) {
      return usage_error("model spec '" + text + "': batch=" + value + " is not allowed",
                         "a whole number from 1 to " + std::to_string(kMostBatch));
    }
    spec.batch = parsed;
  } else if (key == "dtype") {
    fresh = spec.dtype.empty();
    spec.dtype = std::move(value);
  } else {
    fresh = spec.options.emplace(key, std::move(value)).second;
  }
  if (!fresh) return usage_error("model spec '" + text + "': option '" + key + "' stands twice");
  return Unit{};
}

}  // namespace

std::string ModelSpec::text() const {
  std::string result = name;
  char separator = ':';
  for (const auto& [key, value] : options) {
    result += separator + key + "=" + value;
    separator = ',';
  }
  return result;
}

bool ModelSpec::is_plugin() const {
  return name.starts_with(kPlugin);
}

bool ModelSpec::is_script() const {
  return name.starts_with(kScript);
}

std::string ModelSpec::file() const {
  return is_plugin() || is_script() ? name.substr(kPlugin.size()) : "";
}

Result<ModelSpec> parse_model_spec(const std::string& text) {
  ModelSpec spec;
  spec.dtype.clear();
  const std::size_t colon = name_end(text);
  spec.name = text.substr(0, colon);
  if (spec.name.empty()) {
    return usage_error("model spec '" + text + "' has no model name",
                       "for example gpt2:layers=6,width=256");
  }
  if (text.starts_with(kPython)) {
    return usage_error(
        "'" + text + "' is a model of a Python program, which this command cannot make",
        "run its plan from there: stowage.attach(model, optimizer, plan=.., trace=..)");
  }
  if (spec.name == kPlugin || spec.name == kScript) {
    return usage_error("model spec '" + text + "' names no file",
                       "for example plugin:./libnet.so:width=256 or script:net.pt:shape=8x16");
  }
  if (colon < text.size()) {
    std::size_t begin = colon + 1;
    while (begin <= text.size()) {
      const std::size_t comma = std::min(text.find(',', begin), text.size());
      Status status = set_option(spec, text.substr(begin, comma - begin), text);
      if (!status) return std::move(status).error();
      begin = comma + 1;
    }
  }
  if (spec.dtype.empty()) spec.dtype = "fp32";
  return spec;
}

}  // namespace stowage::executor
