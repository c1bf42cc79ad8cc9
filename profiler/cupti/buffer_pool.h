// Buffers for CUPTI, handed out and taken back by its callbacks, on any thread; a decoded buffer is
// used again. The callbacks carry no context, so there is one pool a process.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "profiler/cupti/decode.h"

namespace stowage::profiler {

class BufferPool {
 public:
  static constexpr std::size_t kBytes = std::size_t{4} << 20;
  static constexpr std::size_t kAlignment = 64;

  // Null when there is no memory: CUPTI then counts dropped records.
  [[nodiscard]] std::uint8_t* take();
  // Decodes the `valid` bytes and keeps the buffer for take().
  void give_back(std::uint8_t* buffer, std::size_t valid);
  // What was decoded since the last call. Error: the first that decoding met.
  [[nodiscard]] Result<RawActivities> take_records();

 private:
  std::mutex mutex_;  // of everything below
  std::vector<std::uint8_t*> free_;
  ActivityDecoder decoder_;
  Status status_ = Unit{};
};

// Never destroyed: CUPTI's own thread may call back until the process is gone.
[[nodiscard]] BufferPool& buffer_pool();

}  // namespace stowage::profiler
