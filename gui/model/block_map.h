// Where each block of device memory lies at any moment of a step: in planned memory as it is
// placed, by the model of the caching allocator else.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gui/model/simulated.h"
#include "simulator/allocator/allocator_periods.h"
#include "simulator/placement/memory_layout.h"

namespace stowage::gui {

// Who says where the blocks lie.
enum class BlockSource : std::uint8_t {
  planned,    // the plan's own memory: known ahead, the same in each step
  caching,    // a model of PyTorch's caching allocator, in the period that repeats
  first_fit,  // nobody: the trace does not know its allocator; as the export for memory_viz has it
};

// A stretch of the memory, from the begin of all of it: of planned memory in its physical pages, of
// the caching allocator in its segments, one behind the other.
struct BlockPiece {
  Bytes begin = 0;
  Bytes bytes = 0;
};

struct MemoryBlock {
  StorageId storage;     // none: what the process holds besides, such as a library's workspace
  SavedId saved;         // its first pack; of a copy that is back the first that it serves
  bool is_copy = false;  // one that came back to the device, or is loaded
  Bytes bytes = 0;       // asked for
  Bytes taken = 0;       // of the memory; 0: it lies outside of planned memory, nobody knows where
  Bytes address = -1;    // of planned memory from its region's begin; -1: not known
  std::vector<BlockPiece> pieces;  // in order of address
};

class BlockMap {
 public:
  // Of the planned step, or of the recorded one, which the caching allocator serves. Cost: that of
  // replay_allocator() or of memory_layout(); for a job in the background.
  BlockMap(SimulatedPtr simulated, bool recorded);

  [[nodiscard]] BlockSource source() const { return source_; }
  [[nodiscard]] const Trace& trace() const { return *trace_; }
  // All that pieces lie in: physical pages, or segments when the step ends.
  [[nodiscard]] Bytes memory() const { return memory_; }

  // Behind an event; where its instructions allocate and free, when most is there. In order of
  // address, those without one last. Precondition: the trace has the event. Cost: O(steps of the
  // sequence + slots + blocks log blocks).
  [[nodiscard]] std::vector<MemoryBlock> at(EventId event) const;

 private:
  using Place = simulator::AllocatorTrail::Place;
  using Slot = simulator::AllocationSequence::Slot;
  enum class There : std::uint8_t { no, since_before, made };

  void place_first_fit();
  void lay_out_segments();
  [[nodiscard]] std::vector<There> there_at(EventId event) const;
  [[nodiscard]] MemoryBlock block_of(std::size_t slot, There there) const;
  void put_into_range(MemoryBlock& block, std::int32_t range) const;
  void put_at(MemoryBlock& block, const Place& place) const;
  void add_setup(std::vector<MemoryBlock>& blocks) const;

  SimulatedPtr simulated_;
  const Trace* trace_;
  simulator::Schedule schedule_;
  simulator::AllocationSequence sequence_;
  std::vector<bool> goes_in_gap_;     // by slot: it is freed between two events
  std::vector<SavedId> first_saved_;  // by storage
  BlockSource source_ = BlockSource::planned;
  Bytes memory_ = 0;
  std::optional<simulator::MemoryLayout> layout_;
  std::vector<bool> is_second_;  // by slot: of two that take turns, the one made in this period
  simulator::AllocatorTrail trail_;
  std::vector<Bytes> segment_begin_;  // by segment of the trail, from the memory's begin
};

}  // namespace stowage::gui
