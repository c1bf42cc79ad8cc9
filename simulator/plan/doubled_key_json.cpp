#include "simulator/plan/doubled_key_json.h"

#include "simulator/plan/plan_reader_json.h"

namespace stowage::simulator::plan_json {

void DoubledKey::tell(Event event, const nlohmann::ordered_json& parsed) {
  switch (event) {
    case Event::object_start:
    case Event::array_start:
      levels_.push_back({event == Event::array_start, 0, {}, {}});
      return;
    case Event::object_end:
    case Event::array_end:
      levels_.pop_back();
      end_value();
      return;
    case Event::value:
      end_value();
      return;
    case Event::key:
      levels_.back().key = parsed.get_ref<const std::string&>();
      if (!levels_.back().keys.insert(levels_.back().key).second && pointer_.empty()) {
        pointer_ = here();
      }
      return;
  }
}

void DoubledKey::end_value() {
  if (!levels_.empty() && levels_.back().is_list) ++levels_.back().index;
}

std::string DoubledKey::here() const {
  std::string pointer;
  for (const Level& level : levels_) {
    pointer = level.is_list ? child(pointer, level.index) : child(pointer, level.key);
  }
  return pointer;
}

}  // namespace stowage::simulator::plan_json
