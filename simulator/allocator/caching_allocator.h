// A model of PyTorch's native caching allocator for one device and one stream: which block each
// allocation gets, and so what `active` and `reserved` bytes are. Addresses are made up.
//
// Source: c10/cuda/CUDACachingAllocator.cpp and c10/core/AllocatorConfig.h of PyTorch 2.11 with
// default settings. Its rules:
// - A size is rounded up to 512 bytes; up to 1 MiB it comes from the small pool, else from the
//   large one. An allocation of 0 bytes has no block.
// - Of the pool's free blocks the smallest that is large enough is taken, of equals the one at the
//   lowest address. Without one a segment is made: 2 MiB in the small pool; in the large one 20 MiB
//   for less than 10 MiB, else the size rounded up to 2 MiB.
// - The rest of a block is split off when it has 512 bytes or more (small pool), more than 1 MiB
//   (large pool); else the whole block is handed out.
// - A freed block merges with free neighbours of its segment at once.
// - When a segment would exceed the limit, free blocks that are whole segments go back to the
//   driver, all of both pools; if that is not enough, it is out of memory. (What the source does
//   between, release_available_cached_blocks, needs a max_split_size, which is unlimited by
//   default.)
// Left out: several streams and record_stream, expandable segments, private pools, rounding to
// powers of two, garbage collection. The driver's addresses are those of SegmentAddresses; they
// matter only among free blocks of equal size.
// Cost: about 100 ns an operation; O(free blocks) where these are many thousands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/allocator/observed_allocator.h"
#include "simulator/allocator/segment_addresses.h"
#include "simulator/step/block_bytes.h"
#include "traces/units.h"

namespace stowage::simulator {

class CachingAllocator {
 public:
  static constexpr Bytes kSmallSize = Bytes{1} << 20;  // the largest request of the small pool
  static constexpr Bytes kSmallSegment = 2 * kSmallSize;

  // What to ask for, so that a segment of `segment` bytes is taken where no free block is that
  // large.
  [[nodiscard]] static constexpr Bytes request_of_segment(Bytes segment) {
    return segment == kSmallSegment ? kSmallSize : segment;
  }

  // A handed out block; valid from allocate() to free().
  using Block = std::int32_t;
  static constexpr Block kNoBlock = -1;      // of 0 bytes
  static constexpr Block kOutOfMemory = -2;  // nothing was allocated

  // `limit`: the most that `reserved` may be; -1 = none.
  explicit CachingAllocator(Bytes limit = -1, AddressOrder order = kFalling)
      : limit_(limit), addresses_(order) {}

  // Goes on where another allocator is, without a limit: `blocks` are all of its blocks in order of
  // address; theirs are numbered in that order from 0 on. Segments to come lie as SegmentAddresses
  // has them behind those that there are. Cost: O(blocks log blocks).
  explicit CachingAllocator(const std::vector<ObservedBlock>& blocks);

  [[nodiscard]] Block allocate(Bytes bytes);
  void free(Block block);  // does nothing for kNoBlock

  [[nodiscard]] Bytes active() const { return active_; }
  [[nodiscard]] Bytes reserved() const { return reserved_; }
  [[nodiscard]] Bytes peak_active() const { return peak_active_; }
  [[nodiscard]] Bytes peak_reserved() const { return peak_reserved_; }
  void reset_peaks();
  // Sizes of all segments that this allocator took from the driver, in order.
  [[nodiscard]] const std::vector<Bytes>& segments_taken() const { return segments_taken_; }

  [[nodiscard]] Bytes address_of(Block block) const { return node(block).address; }
  [[nodiscard]] Bytes size_of(Block block) const { return node(block).size; }

  // All blocks in order of address. Two allocators with equal layouts behave alike from there on,
  // apart from the addresses of segments to come.
  struct Piece {
    Bytes address = 0;
    Bytes size = 0;
    bool allocated = false;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  [[nodiscard]] std::vector<Piece> layout() const;
  // The same with what its constructor wants to know.
  [[nodiscard]] std::vector<ObservedBlock> observed() const;

 private:
  struct Node {
    Bytes address = 0;
    Bytes size = 0;
    Block previous = kNoBlock;  // neighbours in the segment
    Block next = kNoBlock;
    bool allocated = false;
    bool small = false;
  };
  struct Free {
    Bytes size = 0;
    Bytes address = 0;
    Block block = kNoBlock;
    friend bool operator<(const Free& a, const Free& b) {
      return a.size != b.size ? a.size < b.size : a.address < b.address;
    }
  };
  using FreeSet = std::vector<Free>;  // by size, then address; there are few

  [[nodiscard]] const Node& node(Block block) const {
    return nodes_[static_cast<std::size_t>(block)];
  }
  Node& node(Block block) { return nodes_[static_cast<std::size_t>(block)]; }
  FreeSet& pool(bool small) { return free_[small ? 1 : 0]; }

  [[nodiscard]] static FreeSet::iterator lower_bound(FreeSet& free_blocks, const Free& key);
  Block new_node(const Node& made);
  void insert_free(Block block);
  void erase_free(Block block);
  Block new_segment(Bytes size, bool small);
  void release_cached();
  void split(Block block, Bytes size);
  Block merge(Block first, Block second);

  Bytes limit_;
  Bytes active_ = 0;
  Bytes reserved_ = 0;
  Bytes peak_active_ = 0;
  Bytes peak_reserved_ = 0;
  SegmentAddresses addresses_;
  std::vector<Bytes> segments_taken_;
  std::vector<Node> nodes_;
  std::vector<Block> unused_;    // rows of nodes_
  std::vector<Block> segments_;  // first block of each, by address
  FreeSet free_[2];
};

}  // namespace stowage::simulator
