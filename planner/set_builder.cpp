#include "planner/set_builder.h"

#include <algorithm>

namespace stowage::planner {

SetBuilder::SetBuilder(const FootprintChanges& changes)
    : changes_(&changes),
      choices_(changes.movables(), Choice::keep),
      profile_(changes.resident()) {}

void SetBuilder::apply(std::size_t movable, Choice choice, Bytes sign) {
  for (const ByteChange& change : changes_->of(movable, choice)) {
    profile_.add(change.first, change.last, sign * change.bytes);
  }
}

void SetBuilder::set(std::size_t movable, Choice choice) {
  apply(movable, choices_[movable], -1);
  choices_[movable] = choice;
  apply(movable, choices_[movable], 1);
}

Bytes SetBuilder::peak() const {
  return profile_.max(0, changes_->segments());
}

bool SetBuilder::fill(const std::vector<WayOut>& order, Bytes target) {
  const std::size_t end = changes_->segments();
  while (true) {
    const std::size_t at = profile_.last_above(0, end, target);
    if (at == end) return true;
    const auto next = std::find_if(order.begin(), order.end(), [&](const WayOut& way_out) {
      const Choice before = choices_[way_out.movable];
      const Choice after = with(before, way_out.choice);
      return after != Choice::keep &&
             changes_->at(way_out.movable, after, at) < changes_->at(way_out.movable, before, at);
    });
    if (next == order.end()) return false;
    set(next->movable, with(choices_[next->movable], next->choice));
  }
}

void SetBuilder::prune(const std::vector<WayOut>& order, Bytes target) {
  for (auto way_out = order.rbegin(); way_out != order.rend(); ++way_out) {
    const Choice before = choices_[way_out->movable];
    if (before != way_out->choice && before != Choice::always) continue;
    const Choice rest = without(before, way_out->choice);
    set(way_out->movable, changes_->of(way_out->movable, rest).empty() ? Choice::keep : rest);
    if (peak() > target) set(way_out->movable, before);
  }
}

}  // namespace stowage::planner
