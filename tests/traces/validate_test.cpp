#include "traces/validate.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "tests/traces/synthetic_trace.h"

namespace stowage {
namespace {

using testing::small_trace;

// Rows of small_trace(): storage 0 is the parameter, 1 ... 8 activations, 9 ... 16 temporaries.
// Events: 0 step_begin, 1 layer begin, 2 op_begin, 3 alloc (storage 1), 4 pack 0, 5 pack 1 (of the
// parameter), 6 op_end, 7 op_begin, ...; backward begins at event 38.
constexpr std::int64_t kMaxInt = std::numeric_limits<std::int64_t>::max();

struct Case {
  const char* pointer;
  std::function<void(Trace&)> change;
};

EventId end_of(const Trace& t) {
  return EventId(t.events.size() - 1);
}

const Case kCases[] = {
    // Dangling ids, in every direction.
    {"/ops/name/0", [](Trace& t) { t.ops.name[0] = StringId(99); }},
    {"/ops/name/1", [](Trace& t) { t.ops.name[1] = StringId(); }},
    {"/ops/layer/2", [](Trace& t) { t.ops.layer[2] = LayerId(3); }},
    {"/ops/phase/2", [](Trace& t) { t.ops.phase[2] = PhaseId(-2); }},
    {"/tensors/shape/1", [](Trace& t) { t.tensors.shape[1] = ListId(2); }},
    {"/tensors/storage/1", [](Trace& t) { t.tensors.storage[1] = StorageId(-2); }},
    {"/uses/tensor/3", [](Trace& t) { t.uses.tensor[3] = TensorId(1000); }},
    {"/storages/alloc_op/3", [](Trace& t) { t.storages.alloc_op[3] = OpId(1000); }},
    {"/saved/event/1", [](Trace& t) { t.saved.event[1] = EventId(); }},
    {"/unpacks/saved/1", [](Trace& t) { t.unpacks.saved[1] = SavedId(1000); }},
    {"/events/op/1", [](Trace& t) { t.events.op[1] = OpId(1000); }},
    {"/peaks/event/0", [](Trace& t) { t.peaks = {{0}, {EventId(999)}, {OpId()}, {1}, {1}, {-1}}; }},
    // Trees.
    {"/layers/parent/1", [](Trace& t) { t.layers.parent[1] = LayerId(2); }},
    {"/layers/parent/2", [](Trace& t) { t.layers.parent[2] = LayerId(2); }},
    {"/ops/parent/0", [](Trace& t) { t.ops.parent[0] = OpId(1); }},
    {"/ops/forward_op/9", [](Trace& t) { t.ops.forward_op[9] = OpId(9); }},
    // Columns and enums of traces made in memory.
    {"/ops/start", [](Trace& t) { t.ops.start.pop_back(); }},
    {"/storages/class/1", [](Trace& t) { t.storages.storage_class[1] = StorageClass{10}; }},
    {"/schema/major", [](Trace& t) { t.schema.major = 2; }},
    {"/gpu/start/1",
     [](Trace& t) {
       t.gpu = {{GpuKind{}, GpuKind{}},
                {OpId(), OpId()},
                {StringId(0), StringId(0)},
                {1, 2},
                {0, 0},
                {20, 19},
                {1, 1},
                {0, 0},
                {0, 0},
                {0, 0},
                {EventId(1), EventId(1)}};
     }},
    // The setup. Storage 1 is made in the step.
    {"/setup/event/0",
     [](Trace& t) {
       t.setup = {{8}, {-1}, {StorageId()}, {EventId(89)}};
     }},
    {"/setup/event/0",
     [](Trace& t) {
       t.setup = {{8}, {-1}, {StorageId(1)}, {EventId(3)}};
     }},
    {"/setup/event/1",
     [](Trace& t) {
       t.setup = {{8, 8}, {-1, -1}, {StorageId(), StorageId()}, {EventId(3), EventId()}};
     }},
    {"/setup/storage/0",
     [](Trace& t) {
       t.setup = {{t.storages.bytes[1]}, {-1}, {StorageId(1)}, {EventId()}};
     }},
    {"/setup/storage/1",
     [](Trace& t) {
       const Bytes bytes = t.storages.bytes[0];
       t.setup = {{bytes, bytes}, {-1, -1}, {StorageId(0), StorageId(0)}, {EventId(), EventId()}};
     }},
    {"/setup/bytes/0",
     [](Trace& t) {
       t.setup = {{t.storages.bytes[0] + 1}, {-1}, {StorageId(0)}, {EventId()}};
     }},
    {"/setup/event",
     [](Trace& t) {
       t.setup = {{8}, {-1}, {StorageId()}, {}};
     }},
    // Sizes and times.
    {"/storages/bytes/2", [](Trace& t) { t.storages.bytes[2] = -1; }},
    {"/storages/bytes/2", [](Trace& t) { t.storages.bytes[2] = kMaxInt; }},
    {"/storages/rounded_bytes/2", [](Trace& t) { t.storages.rounded_bytes[2] = 1; }},
    {"/storages/device/2", [](Trace& t) { t.storages.device[2] = -1; }},
    {"/ops/duration/2", [](Trace& t) { t.ops.duration[2] = -1; }},
    {"/ops/duration/2", [](Trace& t) { t.ops.duration[2] = kMaxInt; }},
    {"/lists/0/1", [](Trace& t) { t.lists[0][1] = -3; }},
    {"/lists/0/1", [](Trace& t) { t.lists[0][1] = kMaxInt; }},
    {"/tensors/offset/0", [](Trace& t) { t.tensors.offset[0] = -1; }},
    {"/tensors/shape/0",
     [](Trace& t) {
       t.lists[0] = {1LL << 50, 1LL << 50};
     }},
    {"/tensors/shape/0",
     [](Trace& t) {
       t.lists[1] = {1LL << 50, 1};
     }},
    {"/tensors/strides/0", [](Trace& t) { t.lists[1] = {1}; }},
    {"/run/batch", [](Trace& t) { t.run.batch = -1; }},
    {"/env/device_memory", [](Trace& t) { t.env.device_memory = -1; }},
    {"/overhead/clean/step_ns", [](Trace& t) { t.overhead.clean.step_ns = -1; }},
    {"/quality/unmatched_frees", [](Trace& t) { t.quality.unmatched_frees = -1; }},
    // The order of events.
    {"/events/n", [](Trace& t) { t = Trace(); }},
    {"/events/kind/0", [](Trace& t) { t.events.kind[0] = EventKind::backward_begin; }},
    {"/events/kind/1", [](Trace& t) { t.events.kind[1] = EventKind::step_begin; }},
    {"/events/kind/1", [](Trace& t) { t.events.kind[1] = EventKind::step_end; }},
    {"/events/kind/88", [](Trace& t) { t.events.kind.back() = EventKind::backward_end; }},
    {"/events/time/5", [](Trace& t) { t.events.time[5] = t.events.time[4] - 1; }},
    {"/events/ref/0", [](Trace& t) { t.events.ref[0] = 0; }},
    {"/events/ref/1", [](Trace& t) { t.events.ref[1] = 3; }},
    {"/events/ref/2", [](Trace& t) { t.events.ref[2] = -1; }},
    {"/events/ref/4", [](Trace& t) { t.events.ref[4] = 1; }},
    {"/events/ref/3", [](Trace& t) { t.events.ref[3] = 2; }},
    {"/events/ref/3", [](Trace& t) { t.storages.alloc_event[1] = EventId(); }},
    // Updates of parameters: one after the other, each with its end.
    {"/events/kind/88",
     [](Trace& t) {
       t.events.kind[1] = EventKind::parameter_update_begin;
       t.events.ref[1] = 0;
     }},
    {"/events/kind/2",
     [](Trace& t) {
       for (const std::size_t i : {1, 2}) {
         t.events.kind[i] = EventKind::parameter_update_begin;
         t.events.ref[i] = 0;
       }
     }},
    {"/events/ref/1",
     [](Trace& t) {
       t.events.kind[1] = EventKind::parameter_update_end;
       t.events.ref[1] = 0;
     }},
    {"/events/ref/2",
     [](Trace& t) {
       t.events.kind[1] = EventKind::parameter_update_begin;
       t.events.kind[2] = EventKind::parameter_update_end;
       t.events.ref[1] = 0;
       t.events.ref[2] = 1;
     }},
    {"/events/ref/1",
     [](Trace& t) {
       t.events.kind[1] = EventKind::parameter_update_begin;
       t.events.ref[1] = 99;
     }},
    // Storages against events.
    {"/storages/alloc_event/0", [](Trace& t) { t.storages.alloc_event[0] = EventId(3); }},
    {"/storages/free_event/0", [](Trace& t) { t.storages.free_event[0] = EventId(2); }},
    {"/storages/free_event/1",
     [](Trace& t) {  // the alloc event of storage 1 becomes its free, and the other way round
       const EventId alloc = t.storages.alloc_event[1];
       const EventId free = t.storages.free_event[1];
       t.events.kind[alloc.index()] = EventKind::free;
       t.events.kind[free.index()] = EventKind::alloc;
       t.storages.alloc_event[1] = free;
       t.storages.free_event[1] = alloc;
     }},
    {"/storages/natural_free_event/1",
     [](Trace& t) { t.storages.natural_free_event[1] = EventId(2); }},
    {"/storages/natural_free_event/1",
     [](Trace& t) { t.storages.natural_free_event[1] = t.storages.free_event[1]; }},
    // Saved tensors.
    {"/events/ref/5",
     [](Trace& t) {
       std::swap(t.events.ref[4], t.events.ref[5]);
       t.events.ref[4] = 0;
     }},
    {"/saved/event/0", [](Trace& t) { t.saved.event[0] = EventId(3); }},
    {"/saved/storage/0", [](Trace& t) { t.saved.storage[0] = StorageId(2); }},
    {"/saved/storage_index/1", [](Trace& t) { t.saved.storage_index[1] = 0; }},
    {"/saved/tensor/0", [](Trace& t) { t.tensors.offset[t.saved.tensor[0].index()] = 1; }},
    {"/saved/tensor/0", [](Trace& t) { --t.storages.bytes[1]; }},
    {"/saved/event/0",
     [](Trace& t) {  // storage 1 is allocated right behind its first pack
       std::swap(t.events.kind[3], t.events.kind[4]);
       std::swap(t.events.ref[3], t.events.ref[4]);
       t.storages.alloc_event[1] = EventId(4);
       t.saved.event[0] = EventId(3);
     }},
    {"/unpacks/event/0", [](Trace& t) { t.unpacks.event[0] = EventId(3); }},
    {"/unpacks/released_event/0", [](Trace& t) { t.unpacks.released_event[0] = EventId(3); }},
    {"/unpacks/released_event/0",
     [](Trace& t) { t.unpacks.released_event[0] = t.storages.free_event[8]; }},
    // The allocator's counter.
    {"/allocator/requested/0", [](Trace& t) { ++t.allocator.requested[0]; }},
    {"/allocator/requested/0",
     [](Trace& t) {
       t.storages.bytes[0] += 4;
       t.storages.rounded_bytes[0] += 4;
     }},
    {"/allocator/event/1", [](Trace& t) { t.allocator.event[1] = t.allocator.event[0]; }},
    {"/allocator/event/0", [](Trace& t) { t.allocator.event[0] = EventId(2); }},
    {"/allocator/active/0", [](Trace& t) { t.allocator.active[0] = -2; }},
    {"/allocator/active/0", [](Trace& t) { t.allocator.active[0] = kMaxInt; }},
    // Phases.
    {"/phases/first_event/0", [](Trace& t) { t.phases.first_event[0] = EventId(1); }},
    {"/phases/first_event/1", [](Trace& t) { t.phases.last_event[0] = EventId(40); }},
    {"/phases/last_event/1",
     [](Trace& t) { t.phases.last_event[1] = EventId(end_of(t).value - 1); }},
    // Calibration.
    {"/calibration/d2h/bytes/1", [](Trace& t) { t.calibration.d2h.bytes[1] = 1 << 20; }},
    {"/calibration/h2d/bytes_per_second/0",
     [](Trace& t) { t.calibration.h2d.bytes_per_second[0] = 0; }},
    {"/calibration/h2d/bytes_per_second_p10",
     [](Trace& t) { t.calibration.h2d.bytes_per_second_p10.pop_back(); }},
    {"/calibration/h2d/latency", [](Trace& t) { t.calibration.h2d.latency = -1; }},
    {"/calibration/duplex", [](Trace& t) { t.calibration.duplex = 0; }},
    {"/calibration/duplex", [](Trace& t) { t.calibration.duplex = 1'000'001; }},
    {"/calibration/compute_interference",
     [](Trace& t) { t.calibration.compute_interference = -5; }},
    {"/calibration/least_compute", [](Trace& t) { t.calibration.least_compute = 1'000'001; }},
    {"/calibration/handover_ns", [](Trace& t) { t.calibration.handover_ns = -1; }},
    {"/calibration/rest_gain", [](Trace& t) { t.calibration.rest_gain = -1; }},
};

TEST(Validate, AcceptsGoodTraces) {
  for (const int ops : {1, 8, 500}) {
    const auto status = validate(testing::SyntheticTrace(ops, 4).trace(), "t.json");
    EXPECT_TRUE(status) << status.error().text();
  }
}

TEST(Validate, NamesTheRow) {
  for (const Case& c : kCases) {
    Trace trace = small_trace();
    c.change(trace);
    const auto status = validate(trace, "t.json");
    ASSERT_FALSE(status) << c.pointer;
    EXPECT_EQ(status.error().pointer, c.pointer) << status.error().text();
    EXPECT_EQ(status.error().code, ErrorCode::bad_input);
    EXPECT_EQ(status.error().file, "t.json");
  }
}

TEST(Validate, UnpacksStandInTheOrderOfTheirTable) {
  Trace trace = small_trace();
  const EventId first = trace.unpacks.event[0];
  const EventId second = trace.unpacks.event[1];
  std::swap(trace.unpacks.event[0], trace.unpacks.event[1]);
  std::swap(trace.events.ref[first.index()], trace.events.ref[second.index()]);
  const auto status = validate(trace, "t.json");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().pointer, "/events/ref/" + std::to_string(first.value));
}

TEST(Validate, AcceptsSavedTensorsWithoutStorage) {
  Trace trace = small_trace();
  trace.tensors.storage[trace.saved.tensor[8].index()] = StorageId();
  trace.saved.storage[8] = StorageId();
  trace.saved.storage_index[8] = -1;
  const auto status = validate(trace, "t.json");
  EXPECT_TRUE(status) << status.error().text();
}

TEST(Validate, RefusesSumsThatOverflow) {
  Trace trace = small_trace();
  for (int i = 0; i < 5000; ++i) {
    trace.storages.device.push_back(1);
    trace.storages.bytes.push_back(std::int64_t{1} << 50);
    trace.storages.rounded_bytes.push_back(std::int64_t{1} << 50);
    trace.storages.storage_class.push_back(StorageClass::other);
    trace.storages.evidence.push_back(Evidence::none);
    trace.storages.layer.emplace_back();
    trace.storages.alloc_op.emplace_back();
    trace.storages.alloc_event.emplace_back();
    trace.storages.free_event.emplace_back();
    trace.storages.natural_free_event.emplace_back();
    trace.storages.parameter.emplace_back();
  }
  const auto status = validate(trace, "t.json");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().pointer.substr(0, 16), "/storages/bytes/");
}

// All saved tensors lie in one storage of 2^50 bytes; moving it 4097 times makes more than 2^62. Of
// 4096 forward ops each is unpacked once, and every eighth packs another tensor.
TEST(Validate, RefusesBytesToMoveThatOverflow) {
  for (const auto& [ops, pointer] :
       {std::pair{5000, "/unpacks/saved/4096"}, {4096, "/saved/storage/4096"}}) {
    Trace trace = testing::SyntheticTrace(ops, 4).trace();
    const StorageId one(std::size_t{0});
    trace.storages.bytes[0] = trace.storages.rounded_bytes[0] = std::int64_t{1} << 50;
    trace.tensors.storage.assign(trace.tensors.size(), one);
    trace.saved.storage.assign(trace.saved.size(), one);
    trace.saved.storage_index.assign(trace.saved.size(), 0);
    const auto status = validate(trace, "t.json");
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().pointer, pointer) << status.error().text();
  }
}

}  // namespace
}  // namespace stowage
