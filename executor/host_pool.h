// HostPool: host memory for saved tensors of sizes that nobody knows beforehand (host_copy.h), in
// chunks of the device's host arena, so that copies run at full speed: a chunk is pinned once,
// about 0.1 s a GB, and used again when everything in it has gone.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "executor/device/device.h"

namespace stowage::executor {

struct HostPoolChunks;

// A handle: copies share the chunks, which go with the last handle or slot. `device` outlives them.
// Any thread may call.
class HostPool {
 public:
  explicit HostPool(Device& device);

  // Bytes of a chunk, given back when it dies. Empty: data() is null.
  class Slot {
   public:
    Slot() = default;
    ~Slot() { give_back(); }
    Slot(Slot&& other) noexcept
        : chunks_(std::move(other.chunks_)),
          chunk_(other.chunk_),
          data_(std::exchange(other.data_, nullptr)) {}
    Slot& operator=(Slot&& other) noexcept {
      std::swap(chunks_, other.chunks_);
      std::swap(chunk_, other.chunk_);
      std::swap(data_, other.data_);
      return *this;
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

    [[nodiscard]] std::byte* data() const { return data_; }

   private:
    friend class HostPool;
    void give_back() noexcept;

    std::shared_ptr<HostPoolChunks> chunks_;
    std::size_t chunk_ = 0;
    std::byte* data_ = nullptr;
  };

  // `bytes` > 0, aligned to 512. Chunks grow from 4 MiB to 1 GiB, a larger slot has one of its own;
  // after the first that the driver does not pin no other one is asked for. Throws std::bad_alloc
  // when the machine has no memory left. Cost: O(chunks), and that of a new chunk.
  [[nodiscard]] Slot take(Bytes bytes);
  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] Bytes bytes() const;  // of all chunks

 private:
  Device* device_;
  std::shared_ptr<HostPoolChunks> chunks_;
};

}  // namespace stowage::executor
