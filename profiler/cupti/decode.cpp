#include "profiler/cupti/decode.h"

#include <cupti.h>
#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include "profiler/cupti/cupti_error.h"
#include "profiler/cupti/recorded_calls.h"

namespace stowage::profiler {

namespace {

constexpr std::size_t kLongestName = 160;

MemoryKind memory_kind(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE:
      return MemoryKind::pageable;
    case CUPTI_ACTIVITY_MEMORY_KIND_PINNED:
      return MemoryKind::pinned;
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE:
    case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
      return MemoryKind::device;
    default:
      return MemoryKind::other;
  }
}

std::int64_t ns(std::uint64_t time) {
  return static_cast<std::int64_t>(time);
}

const char* copy_name(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "memcpy HtoD";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "memcpy DtoH";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "memcpy DtoD";
    default:
      return "memcpy";
  }
}

bool no_time(std::uint64_t start, std::uint64_t end) {
  return start == 0 || end == 0;
}

}  // namespace

std::string kernel_name(const char* mangled) {
  if (mangled == nullptr) return "kernel";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(mangled, nullptr, nullptr, &status), &std::free);
  std::string name = status == 0 && text ? text.get() : mangled;
  // The parameter list is the last parenthesis at depth 0 of the template's brackets.
  int depth = 0;
  std::size_t parameters = std::string::npos;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '<') ++depth;
    if (name[i] == '>') --depth;
    if (name[i] == '(' && depth == 0 && name.compare(i, 21, "(anonymous namespace)") != 0) {
      parameters = i;
      break;
    }
  }
  if (status == 0 && parameters != std::string::npos && parameters > 0) name.resize(parameters);
  if (name.starts_with("void ")) name.erase(0, 5);
  if (name.size() > kLongestName) name = name.substr(0, kLongestName - 2) + "..";
  return name;
}

std::int32_t ActivityDecoder::name_row(const char* text) {
  const std::string key = text == nullptr ? "" : text;
  const auto [entry, is_new] =
      rows_.try_emplace(key, static_cast<std::int32_t>(records_.names.size()));
  if (is_new) records_.names.push_back(kernel_name(text));
  return entry->second;
}

Status ActivityDecoder::decode(std::uint8_t* buffer, std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (valid > 0) {
    const CUptiResult code = cuptiActivityGetNextRecord(buffer, valid, &record);
    if (code == CUPTI_ERROR_MAX_LIMIT_REACHED || code == CUPTI_ERROR_INVALID_KIND) break;
    if (Status status = cupti_status(code, "cuptiActivityGetNextRecord"); !status) return status;
    switch (record->kind) {
      case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
        const auto& kernel = *reinterpret_cast<const CUpti_ActivityKernel10*>(record);
        if (no_time(kernel.start, kernel.end)) {
          ++records_.zero_timestamps;
          break;
        }
        records_.activities.push_back({GpuKind::kernel, name_row(kernel.name), ns(kernel.start),
                                       ns(kernel.end), kernel.correlationId,
                                       static_cast<std::int32_t>(kernel.streamId), 0,
                                       MemoryKind::other, MemoryKind::other});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMCPY: {
        const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
        if (no_time(copy.start, copy.end)) {
          ++records_.zero_timestamps;
          break;
        }
        records_.activities.push_back(
            {GpuKind::memcpy, name_row(copy_name(copy.copyKind)), ns(copy.start), ns(copy.end),
             copy.correlationId, static_cast<std::int32_t>(copy.streamId),
             static_cast<Bytes>(copy.bytes), memory_kind(copy.srcKind), memory_kind(copy.dstKind)});
        break;
      }
      case CUPTI_ACTIVITY_KIND_MEMSET: {
        const auto& fill = *reinterpret_cast<const CUpti_ActivityMemset4*>(record);
        if (no_time(fill.start, fill.end)) {
          ++records_.zero_timestamps;
          break;
        }
        records_.activities.push_back(
            {GpuKind::memset, name_row("memset"), ns(fill.start), ns(fill.end), fill.correlationId,
             static_cast<std::int32_t>(fill.streamId), static_cast<Bytes>(fill.bytes),
             MemoryKind::other, memory_kind(fill.memoryKind)});
        break;
      }
      case CUPTI_ACTIVITY_KIND_RUNTIME:
      case CUPTI_ACTIVITY_KIND_DRIVER: {
        const auto& call = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
        if (no_time(call.start, call.end)) {
          ++records_.zero_timestamps;
          break;
        }
        if (is_wait(call.kind, call.cbid)) {
          records_.syncs.push_back({ns(call.start), ns(call.end)});
        } else if (is_launch(call.kind, call.cbid)) {
          records_.launches.push_back(
              {ns(call.start), ns(call.end), call.correlationId, call.threadId});
        }
        break;
      }
      case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
        const auto& external = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
        if (external.externalKind != CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2) break;
        records_.externals.push_back(
            {external.correlationId, static_cast<std::int64_t>(external.externalId)});
        break;
      }
      case CUPTI_ACTIVITY_KIND_OVERHEAD: {
        const auto& overhead = *reinterpret_cast<const CUpti_ActivityOverhead3*>(record);
        if (overhead.end > overhead.start) {
          records_.overhead_ns += ns(overhead.end) - ns(overhead.start);
        }
        std::free(overhead.overheadData);
        break;
      }
      default:
        ++records_.other_records;
        break;
    }
  }
  return Unit{};
}

RawActivities ActivityDecoder::take() {
  rows_.clear();
  return std::exchange(records_, {});
}

}  // namespace stowage::profiler
