// StepCursor: where a running step is, and whether it still is the recorded one. Counts the step's
// events by kind, compares each with the recorded one of its number, and remembers the first that
// differs; from there on nothing is compared. Calls no device and allocates nothing while the step
// goes as recorded. Not thread-safe: PlannedStep::State has it under its lock.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/serial_numbers.h"
#include "executor/site_tracker.h"
#include "executor/step_program.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/step.h"

namespace stowage::executor {

class StepCursor {
 public:
  // Of one event: its number among those of its kind, whether the step goes as recorded up to and
  // with it, and whether it is the first that does not.
  struct Claim {
    std::size_t ordinal = 0;
    bool on_plan = false;
    bool left_plan = false;
  };

  // All outlive it.
  StepCursor(const simulator::Step& step, const simulator::Schedule& schedule,
             const StepProgram& program);

  // A step begins.
  void begin();
  [[nodiscard]] bool on_plan() const { return first_difference_.empty(); }
  // In words; empty while on plan.
  [[nodiscard]] const std::string& first_difference() const { return first_difference_; }

  // `serial` is one number for the tensor's storage, however often it was loaded; -1 = memory that
  // is not the device's.
  // `input` >= 0: of what a segment is given.
  Claim pack(const at::Tensor& tensor, std::int64_t serial, std::int32_t input = -1);
  // The same of what was made again for a site.
  Claim pack(const at::Tensor& tensor, std::int64_t serial, const Site& site);
  // A loaded buffer has the bytes of a saved tensor's storage from `begin` on, of that version:
  // whoever saves the buffer saves that storage.
  void loaded(SavedId saved, std::int64_t storage_serial, std::int64_t buffer_serial, Bytes begin);
  Claim unpack(SavedId saved);
  // Any kind that has no call of its own here; `path` of a layer's.
  Claim layer(simulator::AnchorKind kind, std::string_view path);
  // `difference`: in words, what is wrong with it if it is the recorded one by number; empty =
  // nothing.
  Claim parameter(simulator::AnchorKind kind, const std::string& difference);
  // The number of the next event of this kind.
  [[nodiscard]] std::size_t next(simulator::AnchorKind kind) const {
    return counters_[static_cast<std::size_t>(kind)];
  }
  // The step skips its update; from here on it is compared with that period, whose events up to
  // here are the same. Returns in words why it cannot, if so.
  [[nodiscard]] std::string skip_update(const StepProgram& skipped);
  // Where in the step the program is; segments that run again tell it.
  [[nodiscard]] SiteTracker& sites() { return sites_; }
  void backward_begin() { sites_.backward_begin(); }
  void backward_end() { sites_.backward_end(); }
  // The step is over: which of the recorded events of these kinds did not come is the difference
  // then.
  void end();

 private:
  // What of the next pack is not as recorded, if anything; and in words.
  enum class PackDifference : std::uint8_t {
    none,
    count,
    place,
    part,
    dtype,
    no_memory,
    shape,
    offset,
    storage,
    size,
    version
  };
  [[nodiscard]] PackDifference compare(const at::Tensor& tensor, std::int64_t serial,
                                       const Site& site);
  [[nodiscard]] std::string describe(PackDifference difference, const at::Tensor& tensor,
                                     const Site& site) const;
  [[nodiscard]] Claim count(simulator::AnchorKind kind);
  void leave_plan(Claim& claim, std::string difference);
  // By itself the event is the recorded one; it must also come among the others where it did.
  // Instructions of several kinds of anchors are proven in the recorded order alone.
  void check_order(simulator::AnchorKind kind, Claim& claim);

  // Of a saved tensor of the step.
  struct Part {
    simulator::Pass pass = simulator::Pass::forward;
    std::int32_t micro_batch = 0;
  };
  // A buffer that stands for a storage.
  struct Loaded {
    std::int64_t storage_serial = -1;
    std::int64_t version = 0;  // of the storage, where the buffer's is 0
    Bytes begin = 0;           // of its bytes in the storage
  };

  const simulator::Schedule& schedule_;
  const StepProgram* program_;  // of this step; the next one's is taken_
  const StepProgram* taken_;
  const Trace& trace_;              // the step's tables
  std::vector<Part> parts_;         // by saved tensor
  bool has_micro_batches_ = false;  // recordings of earlier versions do not number them
  std::array<std::size_t, simulator::kAnchorKinds> counters_{};
  std::size_t position_ = 0;  // in the program's order()
  SiteTracker sites_;
  SerialNumbers storage_index_;              // of the storages that the step saves
  std::vector<std::int64_t> first_version_;  // by storage index
  std::map<std::int64_t, Loaded> loaded_;    // by the buffer's serial
  std::string first_difference_;
};

}  // namespace stowage::executor
