#include "gui/model/min_max_pyramid.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/result.h"

namespace stowage::gui {
namespace {

constexpr MinMaxPyramid::Extent kNone{std::numeric_limits<Bytes>::max(),
                                      std::numeric_limits<Bytes>::lowest(),
                                      std::numeric_limits<std::size_t>::max()};

}  // namespace

void MinMaxPyramid::take(Extent& into, Bytes min, Bytes max, std::size_t at) {
  into.min = std::min(into.min, min);
  if (max > into.max || (max == into.max && at < into.max_at)) {
    into.max = max;
    into.max_at = at;
  }
}

MinMaxPyramid::MinMaxPyramid(std::vector<Bytes> values) : values_(std::move(values)) {
  STOWAGE_ASSERT(values_.size() < std::numeric_limits<std::uint32_t>::max());
  const auto block = [](const Extent& of) {
    return Block{of.min, of.max, static_cast<std::uint32_t>(of.max_at)};
  };
  std::vector<Block> level;
  for (std::size_t i = 0; i < values_.size(); i += kFan) {
    Extent extent = kNone;
    for (std::size_t j = i; j < std::min(i + kFan, values_.size()); ++j) {
      take(extent, values_[j], values_[j], j);
    }
    level.push_back(block(extent));
  }
  while (!level.empty()) {
    const SharedColumn<Block> below(std::move(level));
    levels_.push_back(below);
    level = {};
    if (below.size() == 1) break;
    for (std::size_t i = 0; i < below.size(); i += kFan) {
      Extent extent = kNone;
      for (std::size_t j = i; j < std::min(i + kFan, below.size()); ++j) {
        take(extent, below[j].min, below[j].max, below[j].max_at);
      }
      level.push_back(block(extent));
    }
  }
}

MinMaxPyramid::Extent MinMaxPyramid::extent(std::size_t first, std::size_t last) const {
  STOWAGE_ASSERT(first < last && last <= values_.size());
  Extent extent = kNone;
  const auto value = [&](std::size_t i) { take(extent, values_[i], values_[i], i); };
  while (first < last && first % kFan != 0) value(first++);
  while (first < last && last % kFan != 0) value(--last);
  for (std::size_t level = 0; first < last; ++level) {
    first /= kFan;
    last /= kFan;
    const SharedColumn<Block>& blocks = levels_[level];
    const auto whole = [&](std::size_t i) {
      take(extent, blocks[i].min, blocks[i].max, blocks[i].max_at);
    };
    while (first < last && first % kFan != 0) whole(first++);
    while (first < last && last % kFan != 0) whole(--last);
  }
  return extent;
}

}  // namespace stowage::gui
