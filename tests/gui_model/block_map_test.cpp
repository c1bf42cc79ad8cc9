#include "gui/model/block_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "tests/support/micro_trace.h"
#include "traces/trace_file.h"

namespace stowage::gui {
namespace {

TracePtr recording(const char* name) {
  auto loaded =
      load_trace(std::string(STOWAGE_SOURCE_DIR "/traces/samples/") + name + ".trace.json.gz");
  EXPECT_TRUE(loaded) << loaded.error().text();
  return std::make_shared<const TraceData>(std::move(loaded->trace), "", "");
}

SimulatedPtr planned(const TracePtr& trace, simulator::PlacementMode placement, bool offload) {
  PlanState state = fresh_state(trace->trace);
  state.plan.placement = placement;
  if (offload) {
    simulator::SavedRule& rule = state.plan.saved.emplace_back();
    rule.site = "*";
    rule.decision = simulator::Decision::offload;
    rule.reload.kind = simulator::ReloadPoint::Kind::unpack;
  }
  auto result = simulate(trace, std::make_shared<const PlanState>(state));
  EXPECT_TRUE(result) << result.error().text();
  return *result;
}

// Of storages and copies; what the process holds besides is no part of the step.
Bytes requested(const std::vector<MemoryBlock>& blocks) {
  Bytes sum = 0;
  for (const MemoryBlock& block : blocks) sum += block.storage.valid() ? block.bytes : 0;
  return sum;
}

// No two pieces of a moment share a byte, and all lie in the memory.
void expect_apart(const BlockMap& map, const std::vector<MemoryBlock>& blocks) {
  std::vector<BlockPiece> pieces;
  for (const MemoryBlock& block : blocks) {
    Bytes of_block = 0;
    for (const BlockPiece& piece : block.pieces) {
      pieces.push_back(piece);
      of_block += piece.bytes;
    }
    ASSERT_EQ(of_block, block.taken);
    ASSERT_TRUE(block.taken == 0 || block.taken >= block.bytes);
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const BlockPiece& a, const BlockPiece& b) { return a.begin < b.begin; });
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Bytes end = i + 1 < pieces.size() ? pieces[i + 1].begin : map.memory();
    ASSERT_LE(pieces[i].begin + pieces[i].bytes, end);
  }
}

// True: some are copies that came back.
bool expect_blocks_of(const SimulatedPtr& step, const BlockMap& map) {
  bool has_copies = false;
  const std::size_t events = step->detail.requested.size();
  for (std::size_t e = 0; e < events; e += 7) {
    const std::vector<MemoryBlock> blocks = map.at(EventId(e));
    EXPECT_EQ(requested(blocks), step->detail.requested[e]) << e;
    expect_apart(map, blocks);
    for (const MemoryBlock& block : blocks) has_copies = has_copies || block.is_copy;
  }
  return has_copies;
}

TEST(BlockMap, InPlannedMemoryBlocksShareNoPageAndAreWhatThePlanHolds) {
  const TracePtr trace = recording("gpt2-bf16-h200");
  for (const bool offload : {false, true}) {
    const SimulatedPtr step = planned(trace, simulator::PlacementMode::planned, offload);
    const BlockMap map(step, false);
    EXPECT_EQ(map.source(), BlockSource::planned);
    EXPECT_LE(map.memory(), step->result.peak_reserved);
    EXPECT_GT(map.memory(), step->result.peak_active * 9 / 10);
    EXPECT_EQ(expect_blocks_of(step, map), offload);
    const std::vector<MemoryBlock> peak = map.at(step->result.peak_event);
    EXPECT_EQ(requested(peak), step->result.peak_requested);
  }
}

TEST(BlockMap, WhatStreamsIsThereInItsStaysAlone) {
  const TracePtr trace = recording("gpt2-bf16-h200");
  for (const auto mode : {simulator::PlacementMode::planned, simulator::PlacementMode::caching}) {
    PlanState state = fresh_state(trace->trace);
    state.plan.placement = mode;
    state.plan.parameters.emplace();
    for (const char* const layer : {"layers.0", "layers.5", "layers.11"}) {
      state.plan.parameters->shards.push_back({layer});
    }
    state.plan.parameters->stream = simulator::StreamMode::always;
    const auto step = simulate(trace, std::make_shared<const PlanState>(state));
    ASSERT_TRUE(step) << step.error().text();
    ASSERT_FALSE((*step)->schedule.stays.empty());
    const BlockMap map(*step, false);
    const auto& bytes = (*step)->detail.requested;
    for (std::size_t e = 0; e < bytes.size(); e += 97) {
      ASSERT_EQ(requested(map.at(EventId(e))), bytes[e]) << e;
    }
  }
}

TEST(BlockMap, OfTheCachingAllocatorLieInItsSegments) {
  const TracePtr trace = recording("gpt2-bf16-h200");
  const SimulatedPtr step = planned(trace, simulator::PlacementMode::caching, true);
  const BlockMap map(step, false);
  EXPECT_EQ(map.source(), BlockSource::caching);
  EXPECT_EQ(map.memory(), step->detail.reserved.back());
  EXPECT_TRUE(expect_blocks_of(step, map));
  Bytes taken = 0;
  const std::size_t at = step->result.peak_event.index();
  for (const MemoryBlock& block : map.at(EventId(at))) {
    EXPECT_GE(block.address, 0);
    taken += block.taken;
  }
  EXPECT_EQ(taken, step->detail.active[at]) << "what the model has handed out then";
}

TEST(BlockMap, OfTheRecordedStepAreThoseOfTheCachingAllocator) {
  const TracePtr trace = recording("gpt2-bf16-h200");
  const SimulatedPtr step = planned(trace, simulator::PlacementMode::planned, true);
  const BlockMap map(step, true);
  EXPECT_EQ(map.source(), BlockSource::caching);
  EXPECT_EQ(requested(map.at(step->resident().peak_event)), step->resident().peak_requested);
}

// a, 1000 bytes, takes 1024 from 0 on; b lies behind it. When a goes, c takes the lowest gap that
// is large enough: of 512 bytes, at 0.
TEST(BlockMap, WithoutAnAllocatorTheLowestGapIsTaken) {
  testing::MicroTrace t;
  t.run(10).begin_op("aten::a");
  const auto a = t.alloc(1000);
  const auto b = t.alloc(300);
  t.run(10).free(a);
  const auto c = t.alloc(400);
  t.run(10).end_op();
  t.free(b);
  t.free(c);
  const auto trace = std::make_shared<const TraceData>(t.finish(), "", "");
  const SimulatedPtr step = planned(trace, simulator::PlacementMode::caching, false);
  const BlockMap map(step, false);
  EXPECT_EQ(map.source(), BlockSource::first_fit);
  EXPECT_EQ(map.memory(), 1536);
  const Storages& storages = trace->trace.storages;
  const std::vector<MemoryBlock> both = map.at(storages.alloc_event[b.index()]);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].storage, a);
  EXPECT_EQ(both[0].taken, 1024);
  EXPECT_EQ(both[1].address, 1024);
  const std::vector<MemoryBlock> later = map.at(storages.alloc_event[c.index()]);
  ASSERT_EQ(later.size(), 2U);
  EXPECT_EQ(later[0].storage, c);
  EXPECT_EQ(later[0].address, 0);
  EXPECT_EQ(later[1].storage, b);
}

TEST(BlockMap, OfACpuShareNoByteEither) {
  const TracePtr trace = recording("mlp-l6-fp32-cpu");
  const SimulatedPtr step = planned(trace, simulator::PlacementMode::caching, true);
  const BlockMap map(step, false);
  EXPECT_EQ(map.source(), BlockSource::first_fit);
  EXPECT_TRUE(expect_blocks_of(step, map));
}

}  // namespace
}  // namespace stowage::gui
