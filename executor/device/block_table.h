// From the address of a live block to what is known of it: open addressing with linear probing and
// backward-shift deletion (Knuth, The Art of Computer Programming 3, 6.4, algorithm R), so there
// are no tombstones and a long run costs no more than a short one. insert, find and erase are O(1)
// expected; the table doubles at a load of 1/2 and never shrinks. Not thread-safe. Its own memory
// is plain host memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "traces/units.h"

namespace stowage::executor {

struct Block {
  const void* address = nullptr;  // never null for a live block
  Bytes bytes = 0;                // as requested
  std::int64_t serial = 0;
  std::int64_t tag = 0;
};

class BlockTable {
 public:
  BlockTable();

  // `block.address` must not be null and not be in the table yet.
  void insert(const Block& block);
  [[nodiscard]] const Block* find(const void* address) const;  // valid until the next change
  // Removes and returns the block, nothing when there is none.
  std::optional<Block> erase(const void* address);
  [[nodiscard]] std::size_t size() const { return size_; }
  // All live blocks, in no order.
  [[nodiscard]] std::vector<Block> blocks() const;

 private:
  [[nodiscard]] std::size_t home(const void* address) const;
  // The slot of `address`, or the free slot where it would go.
  [[nodiscard]] std::size_t slot_of(const void* address) const;
  void grow();

  std::vector<Block> slots_;  // a power of two of them
  std::size_t size_ = 0;
};

}  // namespace stowage::executor
