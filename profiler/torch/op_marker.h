// OpMarker: is told on each thread which op runs there, so that what it launches can be told apart
// later.
#pragma once

#include <cstdint>

namespace stowage::profiler {

class OpMarker {
 public:
  virtual ~OpMarker() = default;
  // From now on this thread works for `id`: a row of the pass's ops, or kExecutorId
  // (profiler/assembly/raw_activity.h). Nests; any thread.
  virtual void push(std::int64_t id) = 0;
  virtual void pop() = 0;
};

}  // namespace stowage::profiler
