// The host side of a plan: one block of exactly the plan's size, taken from the system before step
// 0 and given back at the end. Slots are offsets into it. It is not device memory: it does not pass
// through PyTorch's allocator.
#pragma once

#include <cstddef>

#include "traces/result.h"
#include "traces/units.h"

namespace stowage::executor {

class HostArena {
 public:
  // An empty arena: data() null, bytes() 0.
  HostArena() = default;
  // Maps and touches `bytes` (all pages exist afterwards, so that no copy takes a page fault); the
  // content is zero. 0 gives an empty arena. Errors: usage for a negative size, environment when
  // the machine does not have that much free memory or the system refuses.
  [[nodiscard]] static Result<HostArena> create(Bytes bytes);

  ~HostArena();
  HostArena(HostArena&& other) noexcept;
  HostArena& operator=(HostArena&& other) noexcept;
  HostArena(const HostArena&) = delete;
  HostArena& operator=(const HostArena&) = delete;

  // Aligned to a page. No copy may be under way when the arena dies.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }
  // Registered with a GPU's driver, so that copies run at full speed beside compute.
  [[nodiscard]] bool pinned() const { return unpin_ != nullptr; }
  // Takes note that the block was registered; `unpin` gets data() before the memory goes.
  void set_pinned(void (*unpin)(void*)) { unpin_ = unpin; }

  // Fills it, so that reading a slot before its store shows (0xFF makes floats NaN).
  void poison(std::byte value);

 private:
  HostArena(std::byte* data, Bytes bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
  void (*unpin_)(void*) = nullptr;
};

}  // namespace stowage::executor
