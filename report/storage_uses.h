// Every time that a step uses a storage, and what the bytes that are alive at one moment are there
// for: in use, waiting for a use, or never used again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "report/alive.h"
#include "traces/size_text.h"
#include "traces/trace.h"

namespace stowage::report {

// From its first to its last event, both in use. Of an op its begin and end, of what makes it from
// its alloc on, of a pack the event alone; of an unpack up to where what it handed out died.
struct StorageUse {
  EventId first;
  EventId last;
};

// By storage. A value of its own: it does not refer to the trace. 8 bytes a use.
class StorageUses {
 public:
  // Cost: O(events + uses log uses of one storage).
  explicit StorageUses(const Trace& trace);

  // In order of begin; they may overlap.
  struct Range {
    const StorageUse* begin_ = nullptr;
    const StorageUse* end_ = nullptr;
    [[nodiscard]] const StorageUse* begin() const { return begin_; }
    [[nodiscard]] const StorageUse* end() const { return end_; }
    [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }
  };
  [[nodiscard]] Range operator[](StorageId storage) const;

 private:
  std::vector<std::uint32_t> first_;  // of each storage in `uses_`; one more at the end
  std::vector<StorageUse> uses_;
};

enum class ByteUse : std::uint8_t {
  needed,  // in use, or used again sooner than it could leave and return
  saved,   // idle, and a saved tensor that was made in the step: an offload can move it
  idle,    // its next use is later than it takes to leave and return
  dead,    // nothing in the step uses it any more, and the step frees it later
};
inline constexpr std::size_t kByteUses = 4;
[[nodiscard]] const char* name_of(ByteUse value);

struct AliveUse {
  ByteUse use = ByteUse::needed;
  EventId last_use;  // at or ahead of the moment; none: not in this step
  EventId next_use;  // behind it; none: not in this step, or there is no more
};

struct BytesByUse {
  Bytes bytes[kByteUses] = {};  // by ByteUse; together those that are alive
  std::vector<AliveUse> rows;   // of Alive::storages, in their order
  [[nodiscard]] Bytes of(ByteUse use) const { return bytes[static_cast<std::size_t>(use)]; }
};

// `time` of each event on the device, and the step's length; what outlives the step is used again
// in the next one as in this one. How long leaving takes is that of Trace::calibration, each copy
// alone on its link; without one nothing can leave. Cost: O(alive + their uses).
[[nodiscard]] BytesByUse bytes_by_use(const Trace& trace, const StorageUses& uses,
                                      const Alive& alive, const std::vector<Nanoseconds>& time,
                                      Nanoseconds step);

// "63.0 GB: 8.40 GB dead, 36.1 GB saved and idle, 18.5 GB needed"; what is 0 is left out.
[[nodiscard]] std::string use_headline(const BytesByUse& by_use,
                                       ByteUnits units = ByteUnits::decimal);

}  // namespace stowage::report
