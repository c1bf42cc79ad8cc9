#include "simulator/lowering/memory_profile.h"

#include <algorithm>
#include <limits>

namespace stowage::simulator {
namespace {
// Far below any sum of bytes, far enough from the end of the type to add to.
constexpr Bytes kLowest = std::numeric_limits<Bytes>::min() / 2;
}  // namespace

MemoryProfile::MemoryProfile(const std::vector<Bytes>& bytes) {
  while (leaves_ < bytes.size()) leaves_ *= 2;
  nodes_.resize(2 * leaves_);
  for (std::size_t i = 0; i < leaves_; ++i) {
    nodes_[leaves_ + i].max = i < bytes.size() ? bytes[i] : kLowest;
  }
  for (std::size_t i = leaves_; i-- > 1;) {
    nodes_[i].max = std::max(nodes_[2 * i].max, nodes_[2 * i + 1].max);
  }
}

MemoryProfile::Span MemoryProfile::left(Span at) {
  return {2 * at.node, at.first, (at.first + at.last) / 2};
}

MemoryProfile::Span MemoryProfile::right(Span at) {
  return {2 * at.node + 1, (at.first + at.last) / 2, at.last};
}

void MemoryProfile::add(std::size_t first, std::size_t last, Bytes bytes) {
  if (first >= last) return;
  const auto add_to = [&](std::size_t node) {
    nodes_[node].max += bytes;
    nodes_[node].add += bytes;
  };
  const auto mend_above = [&](std::size_t node) {
    while ((node /= 2) > 0) {
      nodes_[node].max =
          std::max(nodes_[2 * node].max, nodes_[2 * node + 1].max) + nodes_[node].add;
    }
  };
  // From the leaves up: whole subtrees between the two ends.
  std::size_t left = leaves_ + first;
  std::size_t right = leaves_ + last;
  for (; left < right; left /= 2, right /= 2) {
    if (left % 2 == 1) add_to(left++);
    if (right % 2 == 1) add_to(--right);
  }
  mend_above(leaves_ + first);
  mend_above(leaves_ + last - 1);
}

Bytes MemoryProfile::max(std::size_t first, std::size_t last) const {
  return first < last ? max(root(), first, last) : kLowest;
}

std::size_t MemoryProfile::last_above(std::size_t first, std::size_t last, Bytes limit) const {
  return first < last ? std::min(last, last_above(root(), first, last, limit)) : last;
}

Bytes MemoryProfile::max(Span at, std::size_t first, std::size_t last) const {
  if (last <= at.first || at.last <= first) return kLowest;
  const Node& node = nodes_[at.node];
  if (first <= at.first && at.last <= last) return node.max;
  return std::max(max(left(at), first, last), max(right(at), first, last)) + node.add;
}

std::size_t MemoryProfile::last_above(Span at, std::size_t first, std::size_t last,
                                      Bytes limit) const {
  const Node& node = nodes_[at.node];
  if (last <= at.first || at.last <= first || node.max <= limit) return last;
  if (at.last - at.first == 1) return at.first;
  const std::size_t later = last_above(right(at), first, last, limit - node.add);
  return later != last ? later : last_above(left(at), first, last, limit - node.add);
}

}  // namespace stowage::simulator
