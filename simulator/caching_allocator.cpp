#include "simulator/caching_allocator.h"

#include <algorithm>
#include <utility>

#include "traces/result.h"

namespace stowage::simulator {
namespace {

constexpr Bytes kMiB = 1 << 20;
constexpr Bytes kLargeSegment = 20 * kMiB;  // of requests below kMinLargeSize
constexpr Bytes kMinLargeSize = 10 * kMiB;
constexpr Bytes kRoundLarge = 2 * kMiB;

Bytes segment_size(Bytes size) {
  if (size <= CachingAllocator::kSmallSize) return CachingAllocator::kSmallSegment;
  if (size < kMinLargeSize) return kLargeSegment;
  return (size + kRoundLarge - 1) / kRoundLarge * kRoundLarge;
}

bool is_split_off(Bytes rest, bool small) {
  return small ? rest >= CachingAllocator::kGranule : rest > CachingAllocator::kSmallSize;
}

}  // namespace

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes) {
  if (bytes <= 0) return kNoBlock;
  const Bytes size = rounded(bytes);
  const bool small = size <= kSmallSize;
  FreeSet& free_blocks = pool(small);
  const auto fit = free_blocks.lower_bound(Free{size, 0, kNoBlock});
  Block block = kNoBlock;
  if (fit != free_blocks.end()) {
    block = fit->block;
    erase_free(free_blocks, fit);
  } else {
    block = new_segment(segment_size(size), small);
    if (block == kOutOfMemory) return kOutOfMemory;
  }
  if (is_split_off(node(block).size - size, small)) split(block, size);
  node(block).allocated = true;
  active_ += node(block).size;
  peak_active_ = std::max(peak_active_, active_);
  return block;
}

void CachingAllocator::free(Block block) {
  if (block == kNoBlock) return;
  STOWAGE_ASSERT(block >= 0 && node(block).allocated);
  active_ -= node(block).size;
  node(block).allocated = false;
  for (const bool behind : {false, true}) {
    const Block neighbour = behind ? node(block).next : node(block).previous;
    if (neighbour == kNoBlock || node(neighbour).allocated) continue;
    FreeSet& free_blocks = pool(node(neighbour).small);
    erase_free(free_blocks,
               free_blocks.find(Free{node(neighbour).size, node(neighbour).address, neighbour}));
    block = behind ? merge(block, neighbour) : merge(neighbour, block);
  }
  insert_free(block);
}

void CachingAllocator::reset_peaks() {
  peak_active_ = active_;
  peak_reserved_ = reserved_;
}

std::vector<CachingAllocator::Piece> CachingAllocator::layout() const {
  std::vector<Piece> pieces;
  pieces.reserve(nodes_.size() - unused_.size());
  for (Block block : segments_) {
    for (; block != kNoBlock; block = node(block).next) {
      pieces.push_back({node(block).address, node(block).size, node(block).allocated});
    }
  }
  return pieces;
}

CachingAllocator::Block CachingAllocator::new_node(const Node& made) {
  if (unused_.empty()) {
    nodes_.push_back(made);
    return static_cast<Block>(nodes_.size() - 1);
  }
  const Block block = unused_.back();
  unused_.pop_back();
  node(block) = made;
  return block;
}

void CachingAllocator::insert_free(Block block) {
  const Free key{node(block).size, node(block).address, block};
  FreeSet& free_blocks = pool(node(block).small);
  if (spare_.empty()) {
    free_blocks.insert(key);
    return;
  }
  spare_.back().value() = key;
  free_blocks.insert(std::move(spare_.back()));
  spare_.pop_back();
}

void CachingAllocator::erase_free(FreeSet& free_blocks, FreeSet::iterator at) {
  STOWAGE_ASSERT(at != free_blocks.end());
  spare_.push_back(free_blocks.extract(at));
}

CachingAllocator::Block CachingAllocator::new_segment(Bytes size, bool small) {
  if (limit_ >= 0 && reserved_ + size > limit_) {
    release_cached();
    if (reserved_ + size > limit_) return kOutOfMemory;
  }
  Node whole;
  whole.address = addresses_.take(size);
  whole.size = size;
  whole.small = small;
  reserved_ += size;
  segments_taken_.push_back(size);
  peak_reserved_ = std::max(peak_reserved_, reserved_);
  const auto behind = std::upper_bound(
      segments_.begin(), segments_.end(), whole.address,
      [&](Bytes address, Block segment) { return address < node(segment).address; });
  return *segments_.insert(behind, new_node(whole));
}

// Gives back every segment that is one free block.
void CachingAllocator::release_cached() {
  std::erase_if(segments_, [&](Block block) {
    const Node& head = node(block);
    if (head.allocated || head.next != kNoBlock) return false;
    FreeSet& free_blocks = pool(head.small);
    erase_free(free_blocks, free_blocks.find(Free{head.size, head.address, block}));
    reserved_ -= head.size;
    unused_.push_back(block);
    return true;
  });
}

// `block` keeps its first `size` bytes; the rest becomes a free block behind it.
void CachingAllocator::split(Block block, Bytes size) {
  Node rest = node(block);
  rest.address += size;
  rest.size -= size;
  rest.previous = block;
  const Block behind = new_node(rest);
  if (rest.next != kNoBlock) node(rest.next).previous = behind;
  node(block).size = size;
  node(block).next = behind;
  insert_free(behind);
}

CachingAllocator::Block CachingAllocator::merge(Block first, Block second) {
  node(first).size += node(second).size;
  node(first).next = node(second).next;
  if (node(second).next != kNoBlock) node(node(second).next).previous = first;
  unused_.push_back(second);
  return first;
}

}  // namespace stowage::simulator
