// How long a step takes at least of which the host updates some parameters and the device the
// others, whichever they are.
#pragma once

#include <functional>
#include <vector>

#include "simulator/step/step_index.h"
#include "traces/ids.h"
#include "traces/trace.h"
#include "traces/units.h"

namespace stowage::planner {

// In a step of length T the host updates no more bytes than it can from the first gradient's
// arrival on. Outside of its update a parameter, its gradient and its state hold no more on the
// device than the update reads and writes. So no more than U(T) are away there for that, for
// nothing here. With the time that the device would take for those updates, W(T), put back where
// they were, it is a step with all updates on the device, and keeps a budget that is larger by
// U(T), but in updates: T + W(T) is at least the bound of that. U and W grow with T, and that bound
// falls. So for any T the step is at least the lesser of T and the bound less W(T); where both meet
// is found by halving. W is the longer of compute and launch of each event in an update, and of one
// event both: a chain of what waits for what goes from launches to compute there, and not back.
// Where the CPU waits for the device in one of these updates it may go back: then compute alone
// bounds the step.
class MixedBound {
 public:
  // `index`: of the step that the bounds of all updates on the device are of; `may`: parameters of
  // the recording that the host might update. Cost: O(trace).
  MixedBound(const simulator::StepIndex& index, const std::vector<StorageId>& may);

  // Rules may have the host do a part of them: they lie in two layers, which have a name each.
  [[nodiscard]] bool is_of_several() const { return is_of_several_; }
  // By position of that step: in an update that the host might do.
  [[nodiscard]] const std::vector<bool>& updates() const { return updates_; }

  // `on_device`: what no plan within so many bytes is shorter than that has all updates on the
  // device, looked at outside of updates() alone. `most`: where it may end. Cost: kHalvings of it.
  using Bound = std::function<Nanoseconds(Bytes budget)>;
  [[nodiscard]] Nanoseconds shortest_step(const Bound& on_device, Bytes budget,
                                          Nanoseconds most) const;

  static constexpr int kHalvings = 7;

 private:
  [[nodiscard]] Bytes away_in(Nanoseconds step) const;  // U
  [[nodiscard]] Nanoseconds work_of(Bytes away) const;  // W

  Calibration link_;
  std::vector<bool> updates_;
  bool has_syncs_ = false;         // some of these updates
  Nanoseconds least_compute_ = 0;  // with none of them on the device
  Nanoseconds first_arrival_ = 0;
  bool is_of_several_ = false;
  Bytes rests_ = 0;  // that blocks are larger by than what lies in them
  struct Update {
    Bytes bytes = 0;
    Nanoseconds work = 0;  // of the device
  };
  std::vector<Update> by_work_;  // the most for its bytes first
};

}  // namespace stowage::planner
