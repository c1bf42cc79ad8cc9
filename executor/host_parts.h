// An update on the host goes part by part, each on one thread: what an optimizer's ops hand to each
// other, its temporaries too, stays in that core's caches. Memory is read and written once instead
// of once an op, and no temporary has a parameter's size.
//
// These optimizers are elementwise, so parts are the whole's arithmetic; all but the last end where
// vectors do, so they are bit by bit that of the whole on one thread, on however many they go. (The
// whole on several is another: PyTorch divides an op where vectors do not end, and what is left
// over is rounded once more.)
#pragma once

#include <cstdint>

#include "executor/optimizer.h"

namespace stowage::executor {

// Elements of a part: at::internal::GRAIN_SIZE, up to which PyTorch divides no op that rounds
// twice.
inline constexpr std::int64_t kHostPartElements = 32768;

class HostParts {
 public:
  // Of tensors that are dense and in one order; others are one part, which PyTorch's ops divide as
  // they do.
  explicit HostParts(const HostTensors& whole);

  [[nodiscard]] std::int64_t count() const { return count_; }
  // Views, with one dimension where there are several parts.
  [[nodiscard]] HostTensors part(std::int64_t number) const;
  // Of the elements of parts `begin` to `end`, likewise.
  [[nodiscard]] HostTensors parts(std::int64_t begin, std::int64_t end) const;

 private:
  HostTensors whole_;
  std::int64_t elements_ = 0;
  std::int64_t count_ = 1;
};

}  // namespace stowage::executor
