#include "executor/device/block_table.h"

#include <utility>

#include "traces/result.h"

namespace stowage::executor {

namespace {
constexpr std::size_t kFirstSlots = 4096;
}  // namespace

BlockTable::BlockTable() : slots_(kFirstSlots) {}

std::size_t BlockTable::home(const void* address) const {
  // Fibonacci hashing; the low bits of an aligned address carry nothing.
  const std::uint64_t hash =
      (reinterpret_cast<std::uintptr_t>(address) >> 6) * 0x9E3779B97F4A7C15ULL;
  return static_cast<std::size_t>(hash >> 32) & (slots_.size() - 1);
}

std::size_t BlockTable::slot_of(const void* address) const {
  std::size_t slot = home(address);
  while (slots_[slot].address != nullptr && slots_[slot].address != address) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void BlockTable::insert(const Block& block) {
  STOWAGE_ASSERT(block.address != nullptr);
  if (2 * (size_ + 1) > slots_.size()) grow();
  Block& slot = slots_[slot_of(block.address)];
  STOWAGE_ASSERT(slot.address == nullptr);
  slot = block;
  ++size_;
}

const Block* BlockTable::find(const void* address) const {
  if (address == nullptr) return nullptr;
  const Block& slot = slots_[slot_of(address)];
  return slot.address == nullptr ? nullptr : &slot;
}

std::optional<Block> BlockTable::erase(const void* address) {
  if (address == nullptr) return std::nullopt;
  std::size_t hole = slot_of(address);
  if (slots_[hole].address == nullptr) return std::nullopt;
  const Block erased = slots_[hole];
  const std::size_t mask = slots_.size() - 1;
  // Move back every later entry of the run whose home does not lie after the hole.
  for (std::size_t next = (hole + 1) & mask; slots_[next].address != nullptr;
       next = (next + 1) & mask) {
    const std::size_t from_home = (next - home(slots_[next].address)) & mask;
    const std::size_t from_hole = (next - hole) & mask;
    if (from_home < from_hole) continue;
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = Block{};
  --size_;
  return erased;
}

void BlockTable::grow() {
  std::vector<Block> old(slots_.size() * 2);
  std::swap(old, slots_);
  for (const Block& block : old) {
    if (block.address != nullptr) slots_[slot_of(block.address)] = block;
  }
}

std::vector<Block> BlockTable::blocks() const {
  std::vector<Block> live;
  live.reserve(size_);
  for (const Block& block : slots_) {
    if (block.address != nullptr) live.push_back(block);
  }
  return live;
}

}  // namespace stowage::executor
