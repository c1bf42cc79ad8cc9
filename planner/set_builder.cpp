#include "planner/set_builder.h"

#include <utility>

namespace stowage::planner {

SetBuilder::SetBuilder(const Footprints& footprints, const std::vector<Choice>& offload)
    : footprints_(footprints),
      offload_(offload),
      choices_(footprints.movable().size(), Choice::keep),
      profile_(footprints.resident()) {}

void SetBuilder::apply(std::size_t movable, Choice from, Choice to) {
  const Movable& m = footprints_.movable()[movable];
  for (const auto& [choice, sign] : {std::pair{from, Bytes{-1}}, std::pair{to, Bytes{1}}}) {
    for (const FootprintSpan& span : m.spans[static_cast<std::size_t>(choice)]) {
      if (span.first < span.last) {
        profile_.add(static_cast<std::size_t>(span.first), static_cast<std::size_t>(span.last),
                     sign * span.bytes);
      }
    }
  }
}

void SetBuilder::take(std::size_t movable) {
  if (has(movable) || !can_take(movable)) return;
  apply(movable, Choice::keep, offload_[movable]);
  choices_[movable] = offload_[movable];
}

void SetBuilder::put_back(std::size_t movable) {
  if (!has(movable)) return;
  apply(movable, choices_[movable], Choice::keep);
  choices_[movable] = Choice::keep;
}

Bytes SetBuilder::peak() const {
  return profile_.max(0, static_cast<std::size_t>(footprints_.positions()));
}

bool SetBuilder::fill(const std::vector<std::size_t>& order, Bytes target) {
  const auto end = static_cast<std::size_t>(footprints_.positions());
  while (true) {
    const std::size_t at = profile_.last_above(0, end, target);
    if (at == end) return true;
    const auto position = static_cast<std::int32_t>(at);
    bool taken = false;
    for (const std::size_t m : order) {
      if (has(m) || !can_take(m)) continue;
      const Movable& movable = footprints_.movable()[m];
      if (movable.bytes_at(offload_[m], position) >= movable.bytes_at(Choice::keep, position)) {
        continue;
      }
      take(m);
      taken = true;
      break;
    }
    if (!taken) return false;
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
