// A key that stands twice in one object, which JSON readers pass over in silence.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace stowage::simulator::plan_json {

// Told of each event of a parser, in order. Memory: the keys of the objects that are open.
class DoubledKey {
 public:
  using Event = nlohmann::ordered_json::parse_event_t;

  void tell(Event event, const nlohmann::ordered_json& parsed);
  // The first one's JSON pointer; empty without one.
  [[nodiscard]] const std::string& pointer() const { return pointer_; }

 private:
  struct Level {
    bool is_list = false;
    std::size_t index = 0;  // of a list: of what stands in it next
    std::string key;        // of an object: the last one
    std::set<std::string> keys;
  };
  void end_value();
  [[nodiscard]] std::string here() const;

  std::vector<Level> levels_;
  std::string pointer_;
};

}  // namespace stowage::simulator::plan_json
