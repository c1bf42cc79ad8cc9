#include "profiler/cupti/decode.h"

#include <cupti.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "profiler/cupti/buffer_pool.h"

namespace stowage::profiler {
namespace {

// Records one behind the other, as CUPTI lays them into its buffers. The real
// cuptiActivityGetNextRecord walks them; it needs no driver.
class Buffer {
 public:
  template <class Record>
  Buffer& add(CUpti_ActivityKind kind, Record record) {
    record.kind = kind;
    const std::size_t at = size_;
    size_ += sizeof record;
    std::memcpy(bytes_ + at, &record, sizeof record);
    return *this;
  }
  RawActivities decoded() {
    ActivityDecoder decoder;
    const Status status = decoder.decode(bytes_, size_);
    EXPECT_TRUE(status.ok()) << status.error().text();
    return decoder.take();
  }
  std::uint8_t* data() { return bytes_; }
  std::size_t size() const { return size_; }

 private:
  alignas(64) std::uint8_t bytes_[4096] = {};
  std::size_t size_ = 0;
};

CUpti_ActivityKernel10 kernel(const char* name, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityKernel10 record{};
  record.name = name;
  record.start = start;
  record.end = end;
  record.correlationId = 5;
  record.streamId = 9;
  return record;
}

CUpti_ActivityAPI call(std::uint64_t start, std::uint64_t end, std::uint32_t which) {
  CUpti_ActivityAPI record{};
  record.cbid = which;
  record.start = start;
  record.end = end;
  record.correlationId = 5;
  record.threadId = 4321;
  return record;
}

TEST(Decode, EveryKindOfRecord) {
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("_Z3addPfi", 100, 150));
  CUpti_ActivityMemcpy6 copy{};
  copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  copy.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  copy.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  copy.bytes = 4096;
  copy.start = 160;
  copy.end = 170;
  copy.correlationId = 6;
  copy.streamId = 10;
  buffer.add(CUPTI_ACTIVITY_KIND_MEMCPY, copy);
  CUpti_ActivityMemset4 fill{};
  fill.bytes = 64;
  fill.start = 171;
  fill.end = 172;
  fill.correlationId = 7;
  fill.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  buffer.add(CUPTI_ACTIVITY_KIND_MEMSET, fill);
  buffer.add(CUPTI_ACTIVITY_KIND_RUNTIME,
             call(80, 85, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  buffer.add(CUPTI_ACTIVITY_KIND_DRIVER, call(81, 84, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  CUpti_ActivityExternalCorrelation external{};
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;
  external.externalId = static_cast<std::uint64_t>(kExecutorId);
  external.correlationId = 5;
  buffer.add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, external);
  external.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;  // somebody else's
  buffer.add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, external);
  buffer.add(CUPTI_ACTIVITY_KIND_RUNTIME,
             call(180, 190, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020));
  buffer.add(CUPTI_ACTIVITY_KIND_DRIVER, call(200, 230, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize));
  CUpti_ActivityOverhead3 overhead{};
  overhead.start = 10;
  overhead.end = 17;
  buffer.add(CUPTI_ACTIVITY_KIND_OVERHEAD, overhead);
  const RawActivities raw = buffer.decoded();

  EXPECT_EQ(raw.names, (std::vector<std::string>{"add", "memcpy DtoH", "memset"}));
  ASSERT_EQ(raw.activities.size(), 3U);
  EXPECT_EQ(raw.activities[0].kind, GpuKind::kernel);
  EXPECT_EQ(raw.activities[0].start_ns, 100);
  EXPECT_EQ(raw.activities[0].end_ns, 150);
  EXPECT_EQ(raw.activities[0].correlation, 5);
  EXPECT_EQ(raw.activities[0].stream, 9);
  EXPECT_EQ(raw.activities[1].kind, GpuKind::memcpy);
  EXPECT_EQ(raw.activities[1].bytes, 4096);
  EXPECT_EQ(raw.activities[1].source, MemoryKind::device);
  EXPECT_EQ(raw.activities[1].destination, MemoryKind::pinned);
  EXPECT_EQ(raw.activities[2].kind, GpuKind::memset);
  EXPECT_EQ(raw.activities[2].bytes, 64);
  ASSERT_EQ(raw.launches.size(), 2U);
  EXPECT_EQ(raw.launches[0].thread, 4321);
  EXPECT_EQ(raw.launches[1].end_ns, 84);
  ASSERT_EQ(raw.externals.size(), 1U);
  EXPECT_EQ(raw.externals[0].id, kExecutorId);
  ASSERT_EQ(raw.syncs.size(), 2U);
  EXPECT_EQ(raw.syncs[0].start_ns, 180);
  EXPECT_EQ(raw.syncs[0].end_ns, 190);
  EXPECT_EQ(raw.syncs[1].end_ns, 230);
  EXPECT_EQ(raw.overhead_ns, 7);
  EXPECT_EQ(raw.zero_timestamps, 0);
  EXPECT_EQ(raw.other_records, 0);
}

TEST(Decode, TheDriversNumbersOfCallsAreNotTheRuntimes) {
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_DRIVER,
             call(80, 85, CUPTI_RUNTIME_TRACE_CBID_cudaStreamSynchronize_v3020));
  buffer.add(CUPTI_ACTIVITY_KIND_RUNTIME, call(86, 89, CUPTI_DRIVER_TRACE_CBID_cuEventSynchronize));
  const RawActivities raw = buffer.decoded();
  EXPECT_TRUE(raw.syncs.empty());
  EXPECT_TRUE(raw.launches.empty());
}

// Where whole kinds are recorded, most calls neither launch nor wait.
TEST(Decode, OtherCallsAreDropped) {
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_RUNTIME,
             call(80, 85, CUPTI_RUNTIME_TRACE_CBID_cudaGetDevice_v3020));
  buffer.add(CUPTI_ACTIVITY_KIND_DRIVER, call(80, 85, CUPTI_DRIVER_TRACE_CBID_cuEventQuery));
  buffer.add(CUPTI_ACTIVITY_KIND_DRIVER, call(86, 89, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx));
  const RawActivities raw = buffer.decoded();
  ASSERT_EQ(raw.launches.size(), 1U);
  EXPECT_EQ(raw.launches[0].start_ns, 86);
  EXPECT_TRUE(raw.syncs.empty());
}

TEST(Decode, RecordsWithoutATimeAreCountedOnly) {
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 0, 0));
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 100, 0));  // still ran
  buffer.add(CUPTI_ACTIVITY_KIND_RUNTIME,
             call(0, 0, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000));
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 100, 101));
  const RawActivities raw = buffer.decoded();
  EXPECT_EQ(raw.zero_timestamps, 3);
  EXPECT_EQ(raw.activities.size(), 1U);
  EXPECT_TRUE(raw.launches.empty());
}

TEST(Decode, AnInvalidRecordEndsTheBuffer) {
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 100, 101));
  buffer.add(CUPTI_ACTIVITY_KIND_INVALID, kernel("k", 100, 101));
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 200, 201));
  EXPECT_EQ(buffer.decoded().activities.size(), 1U);
}

TEST(Decode, EqualNamesAreOneRowOverBuffers) {
  ActivityDecoder decoder;
  for (int i = 0; i < 2; ++i) {
    Buffer buffer;
    const std::string name = "same";  // another address each time
    buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel(name.c_str(), 100, 101));
    ASSERT_TRUE(decoder.decode(buffer.data(), buffer.size()).ok());
  }
  const RawActivities raw = decoder.take();
  EXPECT_EQ(raw.names.size(), 1U);
  EXPECT_EQ(raw.activities.size(), 2U);
  EXPECT_TRUE(decoder.take().activities.empty());
}

TEST(KernelName, IsReadable) {
  EXPECT_EQ(kernel_name("_Z3addPfi"), "add");
  EXPECT_EQ(kernel_name("_Z1kIN12_GLOBAL__N_11fEEvT_"), "k<(anonymous namespace)::f>");
  EXPECT_EQ(kernel_name("sm90_xmma_gemm_f32f32(x)"), "sm90_xmma_gemm_f32f32(x)");
  EXPECT_EQ(kernel_name(nullptr), "kernel");
  EXPECT_EQ(kernel_name(std::string(500, 'x').c_str()).size(), 160U);
}

TEST(BufferPool, UsesABufferAgainAndHandsOverWhatWasInIt) {
  BufferPool pool;
  std::uint8_t* const first = pool.take();
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % BufferPool::kAlignment, 0U);
  Buffer buffer;
  buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel("k", 100, 101));
  std::memcpy(first, buffer.data(), buffer.size());
  pool.give_back(first, buffer.size());
  EXPECT_EQ(pool.take(), first);
  pool.give_back(first, 0);
  const Result<RawActivities> records = pool.take_records();
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->activities.size(), 1U);
}

}  // namespace
}  // namespace stowage::profiler
