#include "cli/verb_description_json.h"

#include <nlohmann/json.hpp>

namespace stowage::cli {
namespace {

using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr const char* kSchema = "stowage-verb/1";

Json options_json(const std::vector<OptionDescription>& options) {
  Json list = Json::array();
  for (const OptionDescription& option : options) {
    list.push_back({{"short", option.short_name},
                    {"long", option.long_name},
                    {"value", option.value},
                    {"help", option.help},
                    {"repeats", option.repeats},
                    {"words", option.offered.words},
                    {"file", option.offered.file},
                    {"endings", option.offered.endings}});
  }
  return list;
}

std::vector<OptionDescription> options_of(const Json& list) {
  std::vector<OptionDescription> options;
  for (const Json& row : list) {
    options.push_back({.short_name = row.at("short").get<std::string>(),
                       .long_name = row.at("long").get<std::string>(),
                       .value = row.at("value").get<std::string>(),
                       .help = row.at("help").get<std::string>(),
                       .repeats = row.at("repeats").get<bool>(),
                       .offered = {row.at("words").get<Texts>(), row.at("file").get<bool>(),
                                   row.at("endings").get<Texts>()}});
  }
  return options;
}

}  // namespace

std::string verb_description_json(const VerbDescription& description) {
  const Json json = {{"schema", kSchema},
                     {"verb", description.verb},
                     {"usage", description.usage},
                     {"summary", description.summary},
                     {"arguments", options_json(description.arguments)},
                     {"options", options_json(description.options)},
                     {"details", description.details},
                     {"examples", description.examples}};
  return json.dump() + "\n";
}

std::optional<VerbDescription> read_verb_description(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    if (json.at("schema").get<std::string>() != kSchema) return std::nullopt;
    return VerbDescription{.verb = json.at("verb").get<std::string>(),
                           .usage = json.at("usage").get<std::string>(),
                           .summary = json.at("summary").get<std::string>(),
                           .arguments = options_of(json.at("arguments")),
                           .options = options_of(json.at("options")),
                           .details = json.at("details").get<Texts>(),
                           .examples = json.at("examples").get<Texts>()};
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

}  // namespace stowage::cli
