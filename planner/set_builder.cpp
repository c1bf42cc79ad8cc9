#include "planner/set_builder.h"

#include <algorithm>

namespace stowage::planner {

SetBuilder::SetBuilder(const FootprintChanges& changes, const std::vector<Choice>& offload)
    : changes_(&changes),
      offload_(&offload),
      choices_(changes.movables(), Choice::keep),
      profile_(changes.resident()) {}

void SetBuilder::apply(std::size_t movable, Choice choice, Bytes sign) {
  for (const ByteChange& change : changes_->of(movable, choice)) {
    profile_.add(change.first, change.last, sign * change.bytes);
  }
}

void SetBuilder::take(std::size_t movable) {
  if (has(movable) || !can_take(movable)) return;
  choices_[movable] = (*offload_)[movable];
  apply(movable, choices_[movable], 1);
}

void SetBuilder::put_back(std::size_t movable) {
  if (!has(movable)) return;
  apply(movable, choices_[movable], -1);
  choices_[movable] = Choice::keep;
}

Bytes SetBuilder::peak() const {
  return profile_.max(0, changes_->segments());
}

bool SetBuilder::fill(const std::vector<std::size_t>& order, Bytes target) {
  const std::size_t end = changes_->segments();
  while (true) {
    const std::size_t at = profile_.last_above(0, end, target);
    if (at == end) return true;
    const auto next = std::find_if(order.begin(), order.end(), [&](std::size_t m) {
      return !has(m) && can_take(m) && changes_->frees(m, (*offload_)[m], at);
    });
    if (next == order.end()) return false;
    take(*next);
  }
}

void SetBuilder::prune(const std::vector<std::size_t>& order, Bytes target) {
  for (auto m = order.rbegin(); m != order.rend(); ++m) {
    if (!has(*m)) continue;
    put_back(*m);
    if (peak() > target) take(*m);
  }
}

}  // namespace stowage::planner
