// Slow, obvious oracle for the caching allocator: every block of every segment in one list in order
// of address, searched from end to end for each request.
#pragma once

#include <list>
#include <vector>

#include "simulator/allocator/caching_allocator.h"

namespace stowage::testing {

class OracleAllocator {
 public:
  explicit OracleAllocator(Bytes limit = -1) : limit_(limit) {}

  // The address of the block; -1 for 0 bytes, -2 when out of memory.
  Bytes allocate(Bytes bytes);
  void free(Bytes address);

  [[nodiscard]] Bytes active() const;
  [[nodiscard]] Bytes reserved() const;
  [[nodiscard]] std::vector<simulator::CachingAllocator::Piece> layout() const;

 private:
  struct Item {
    Bytes address;
    Bytes size;
    Bytes segment;  // address of the segment
    bool small;
    bool used;
  };
  struct Slot {
    Bytes begin;
    Bytes used;  // from the begin on
    Bytes size;
  };
  Bytes address_of_segment(Bytes size);

  Bytes limit_;
  Bytes end_ = Bytes{1} << 46;
  std::vector<Slot> slots_;
  std::list<Item> items_;
};

}  // namespace stowage::testing
