#include "executor/device/cuda/cuda_pages.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>

#include "executor/device/cuda/cuda_check.h"
#include "traces/size_text.h"

namespace stowage::executor {

struct CudaMemoryCalls {
  decltype(&cuMemAddressReserve) reserve = nullptr;
  decltype(&cuMemAddressFree) free_addresses = nullptr;
  decltype(&cuMemCreate) create = nullptr;
  decltype(&cuMemRelease) release = nullptr;
  decltype(&cuMemMap) map = nullptr;
  decltype(&cuMemUnmap) unmap = nullptr;
  decltype(&cuMemSetAccess) set_access = nullptr;
  decltype(&cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&cuGetErrorString) error_string = nullptr;
};

namespace {

constexpr unsigned kSince = 11000;  // CUDA's version that all of them are of

template <class Call>
bool find(const char* name, Call& call) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(name, &found, kSince, cudaEnableDefault, &result);
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  call = reinterpret_cast<Call>(found);
  return status == cudaSuccess && result == cudaDriverEntryPointSuccess && found != nullptr;
}

// Null where the driver does not have them all.
const CudaMemoryCalls* memory_calls() {
  static CudaMemoryCalls calls;
  static const bool all =
      find("cuMemAddressReserve", calls.reserve) &&
      find("cuMemAddressFree", calls.free_addresses) && find("cuMemCreate", calls.create) &&
      find("cuMemRelease", calls.release) && find("cuMemMap", calls.map) &&
      find("cuMemUnmap", calls.unmap) && find("cuMemSetAccess", calls.set_access) &&
      find("cuMemGetAllocationGranularity", calls.granularity) &&
      find("cuGetErrorString", calls.error_string);
  return all ? &calls : nullptr;
}

std::string words(const CudaMemoryCalls& calls, CUresult status) {
  const char* text = nullptr;
  if (calls.error_string(status, &text) != CUDA_SUCCESS || text == nullptr) {
    return "CUDA error " + std::to_string(static_cast<int>(status));
  }
  return text;
}

Error no_room(Bytes all, Bytes of_part) {
  return {ErrorCode::condition,
          "planned memory of " + format_bytes(all) + " does not fit: the GPU has no " +
              format_bytes(of_part) + " left for a part of it",
          "", "", "plan for less, or free the GPU's memory"};
}

Error refused(const std::string& what, const std::string& why) {
  return {ErrorCode::environment, "planned memory: " + what + ": " + why, "", "",
          "run the plan with --placement caching"};
}

CUmemAllocationProp properties_of(int device) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  return properties;
}

}  // namespace

Result<std::unique_ptr<PagedMemory>> CudaPages::create(int device,
                                                       const simulator::MemoryLayout& layout) {
  const Bytes page = layout.placement.page_bytes;
  const Bytes region_bytes = layout.region_bytes;
  const CudaMemoryCalls* const calls = memory_calls();
  if (calls == nullptr) return refused("the driver", "it has no virtual memory");
  const CUmemAllocationProp properties = properties_of(device);
  std::size_t granularity = 0;
  if (const CUresult status =
          calls->granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
      status != CUDA_SUCCESS) {
    return refused("the size of a page", words(*calls, status));
  }
  if (granularity == 0 || page % static_cast<Bytes>(granularity) != 0) {
    return refused("pages of " + format_bytes(page),
                   "this GPU's are of " + format_bytes(static_cast<Bytes>(granularity)));
  }
  std::unique_ptr<CudaPages> pages(new CudaPages(*calls, device, layout));
  if (region_bytes > 0) {
    CUdeviceptr begin = 0;
    if (const CUresult status =
            calls->reserve(&begin, static_cast<std::size_t>(region_bytes), 0, 0, 0);
        status != CUDA_SUCCESS) {
      return refused(format_bytes(region_bytes) + " of addresses", words(*calls, status));
    }
    // A device address; host code only compares it.
    pages->set_begin(reinterpret_cast<std::byte*>(begin));
  }
  return std::unique_ptr<PagedMemory>(std::move(pages));
}

CudaPages::CudaPages(const CudaMemoryCalls& calls, int device,
                     const simulator::MemoryLayout& layout)
    : PagedMemory(layout.placement.bytes(), layout.region_bytes),
      calls_(calls),
      device_(device),
      chunks_(layout.placement.chunks.size(), 0) {
  for (const std::int32_t first : layout.placement.chunks) {
    begins_.push_back(first * layout.placement.page_bytes);
  }
  begins_.push_back(layout.placement.bytes());
}

Status CudaPages::map_chunk(Bytes address, std::size_t chunk) {
  const Bytes bytes_of_chunk = begins_[chunk + 1] - begins_[chunk];
  const auto length = static_cast<std::size_t>(bytes_of_chunk);
  if (chunks_[chunk] == 0) {
    const CUmemAllocationProp properties = properties_of(device_);
    const CUresult status = calls_.create(&chunks_[chunk], length, &properties, 0);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return no_room(bytes(), bytes_of_chunk);
    if (status != CUDA_SUCCESS) return refused("memory", words(calls_, status));
  }
  const auto at = reinterpret_cast<CUdeviceptr>(begin() + address);
  const CUresult status = calls_.map(at, length, 0, chunks_[chunk], 0);
  if (status == CUDA_ERROR_OUT_OF_MEMORY) return no_room(bytes(), bytes_of_chunk);
  if (status != CUDA_SUCCESS) return refused("mapping it", words(calls_, status));
  if (!mapped_.empty() && mapped_.back().end == address) {
    mapped_.back().end += bytes_of_chunk;
  } else {
    mapped_.push_back({address, address + bytes_of_chunk});
  }
  return Unit{};
}

Status CudaPages::map(const std::vector<simulator::Mapping>& mappings) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = device_;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  const auto allow = [&](Bytes from, Bytes to) -> Status {
    const CUresult status = calls_.set_access(reinterpret_cast<CUdeviceptr>(begin() + from),
                                              static_cast<std::size_t>(to - from), &access, 1);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) return no_room(bytes(), to - from);
    if (status != CUDA_SUCCESS) return refused("access to pages", words(calls_, status));
    return Unit{};
  };
  for (auto at = mappings.begin(); at != mappings.end();) {
    const Bytes from = at->address;
    Bytes to = from;
    for (; at != mappings.end() && at->address == to; ++at) {
      auto chunk = static_cast<std::size_t>(
          std::lower_bound(begins_.begin(), begins_.end(), at->offset) - begins_.begin());
      for (const Bytes end = at->offset + at->bytes; begins_[chunk] < end; ++chunk) {
        if (Status status = map_chunk(to, chunk); !status) return status;
        to += begins_[chunk + 1] - begins_[chunk];
      }
      STOWAGE_ASSERT(to == at->address + at->bytes);
    }
    // One call for addresses that follow each other.
    if (Status status = allow(from, to); !status) return status;
  }
  return Unit{};
}

void CudaPages::unmap(Bytes from, Bytes to) {
  if (from >= to) return;
  static_cast<void>(calls_.unmap(reinterpret_cast<CUdeviceptr>(begin() + from),
                                 static_cast<std::size_t>(to - from)));
}

bool CudaPages::wait() const {
  int current = device_;
  cudaError_t status = cudaGetDevice(&current);
  if (status == cudaSuccess && current != device_) status = cudaSetDevice(device_);
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (current != device_) static_cast<void>(cudaSetDevice(current));
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
  return status == cudaSuccess;
}

bool CudaPages::keep_only(const std::vector<simulator::Mapping>& mappings) {
  if (!wait()) return false;
  std::vector<simulator::Mapping> kept = mappings;
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  std::sort(mapped_.begin(), mapped_.end(),
            [](const Run& a, const Run& b) { return a.begin < b.begin; });
  std::vector<Run> left;
  auto next = kept.begin();
  for (const Run& run : mapped_) {
    Bytes from = run.begin;
    for (; next != kept.end() && next->address < run.end; ++next) {
      unmap(from, next->address);
      from = next->address + next->bytes;
      left.push_back({next->address, from});
    }
    unmap(from, run.end);
  }
  mapped_ = std::move(left);
  std::vector<bool> is_kept(chunks_.size(), false);
  for (const simulator::Mapping& each : kept) {
    const auto first = std::lower_bound(begins_.begin(), begins_.end(), each.offset);
    for (auto at = first; *at < each.offset + each.bytes; ++at) {
      is_kept[static_cast<std::size_t>(at - begins_.begin())] = true;
    }
  }
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (is_kept[chunk] || chunks_[chunk] == 0) continue;
    static_cast<void>(calls_.release(chunks_[chunk]));
    chunks_[chunk] = 0;
  }
  return true;
}

CudaPages::~CudaPages() {
  // At the process's end the driver has gone already. Else what may still be worked on stays.
  if (begin() == nullptr || !wait()) return;
  for (const Run& run : mapped_) unmap(run.begin, run.end);
  for (const CUmemGenericAllocationHandle chunk : chunks_) {
    if (chunk != 0) static_cast<void>(calls_.release(chunk));
  }
  static_cast<void>(calls_.free_addresses(reinterpret_cast<CUdeviceptr>(begin()),
                                          static_cast<std::size_t>(region_bytes())));
}

}  // namespace stowage::executor
