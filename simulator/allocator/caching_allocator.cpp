#include "simulator/allocator/caching_allocator.h"

#include <algorithm>

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
  return small ? rest >= kBlockGranule : rest > CachingAllocator::kSmallSize;
}

}  // namespace

CachingAllocator::CachingAllocator(const std::vector<ObservedBlock>& blocks) : limit_(-1) {
  std::vector<SegmentAddresses::Range> taken;
  nodes_.reserve(blocks.size());
  for (const ObservedBlock& each : blocks) {
    const auto block = static_cast<Block>(nodes_.size());
    Node made;
    made.address = each.address;
    made.size = each.size;
    made.allocated = each.allocated;
    made.small = each.small;
    if (each.begins_segment) {
      segments_.push_back(block);
      taken.push_back({each.address, 0});
    } else {
      STOWAGE_ASSERT(block > 0 && taken.back().address + taken.back().size == each.address);
      made.previous = block - 1;
      node(block - 1).next = block;
    }
    taken.back().size += each.size;
    reserved_ += each.size;
    if (each.allocated) active_ += each.size;
    nodes_.push_back(made);
    if (!each.allocated) insert_free(block);
  }
  addresses_ = SegmentAddresses(taken);
  reset_peaks();
}

CachingAllocator::Block CachingAllocator::allocate(Bytes bytes) {
  if (bytes <= 0) return kNoBlock;
  const Bytes size = block_bytes(bytes);
  const bool small = size <= kSmallSize;
  FreeSet& free_blocks = pool(small);
  const auto fit = lower_bound(free_blocks, Free{size, 0, kNoBlock});
  Block block = kNoBlock;
  if (fit != free_blocks.end()) {
    block = fit->block;
    free_blocks.erase(fit);
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
    erase_free(neighbour);
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

std::vector<ObservedBlock> CachingAllocator::observed() const {
  std::vector<ObservedBlock> blocks;
  blocks.reserve(nodes_.size() - unused_.size());
  for (const Block segment : segments_) {
    for (Block block = segment; block != kNoBlock; block = node(block).next) {
      ObservedBlock& each = blocks.emplace_back();
      each.address = node(block).address;
      each.size = node(block).size;
      each.begins_segment = block == segment;
      each.small = node(block).small;
      each.allocated = node(block).allocated;
    }
  }
  return blocks;
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

CachingAllocator::FreeSet::iterator CachingAllocator::lower_bound(FreeSet& free_blocks,
                                                                  const Free& key) {
  return std::lower_bound(free_blocks.begin(), free_blocks.end(), key);
}

void CachingAllocator::insert_free(Block block) {
  const Free key{node(block).size, node(block).address, block};
  FreeSet& free_blocks = pool(node(block).small);
  free_blocks.insert(lower_bound(free_blocks, key), key);
}

void CachingAllocator::erase_free(Block block) {
  FreeSet& free_blocks = pool(node(block).small);
  const auto at = lower_bound(free_blocks, Free{node(block).size, node(block).address, block});
  STOWAGE_ASSERT(at != free_blocks.end() && at->block == block);
  free_blocks.erase(at);
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
    erase_free(block);
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
