// PlannedStep::State: the running interpreter behind PlannedStep, shared with the hooks of saved
// tensors. Private to executor/planned_*.cpp.
//
// Autograd has a thread for each device and runs CPU nodes on the caller's, so the hooks of a graph
// over both come on two threads at once. A hook holds lock() from its begin_ to its finish_ call;
// everything else locks by itself. Whichever thread comes first, what it gets is right; an order of
// unpacks that is not the recorded one is off plan.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executor/host_pool.h"
#include "executor/kept_tensor.h"
#include "executor/planned_parameters.h"
#include "executor/planned_step.h"
#include "executor/saved_tenants.h"
#include "executor/saved_view.h"
#include "executor/serial_numbers.h"
#include "executor/step_program.h"

namespace stowage::executor {

class PlannedStep::State {
 public:
  State(Device& device, std::shared_ptr<const Trace> trace, simulator::Schedule schedule,
        PlannedStepOptions options, HostArena arena, PlannedParameters parameters);

  // Once, ahead of the first begin(): takes over the parameters that stream.
  void adopt();
  void begin();
  // When it throws (a saved tensor was written in place, a device failed) the step goes on until
  // abort().
  Result<StepReport> end();
  // Behind end() of a step that went as planned: reserve_for_later_steps().
  std::string look_ahead();
  [[nodiscard]] std::int64_t first_serial() const { return first_serial_; }
  // Ends a step that goes on; nothing otherwise.
  void abort();
  void layer_event(LayerEvent event, std::string_view path);
  void parameter_update(UpdateEvent event, const at::Tensor& parameter);
  void materialise();
  std::vector<NamedTensor> values();

  // What a pack decided for the saved tensor.
  enum class Treatment : std::uint8_t { keep, planned, host_copy };
  struct Packed {
    Treatment treatment = Treatment::keep;
    SavedId saved;
    std::uint64_t step = 0;       // the step it belongs to
    std::int32_t parameter = -1;  // the streamed parameter whose memory it is, -1 = none
  };
  [[nodiscard]] std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }
  // The rest is called under lock(). begin_pack() decides; the caller then makes its KeptTensor or
  // HostCopy; finish_pack() runs what stands behind the pack. Throws c10::Error for a step that is
  // off plan (OffPlan::refuse).
  Packed begin_pack(const at::Tensor& tensor);
  void finish_pack(const Packed& packed);
  // Runs what stands before the unpack; true when the unpack is the one the schedule expects.
  bool begin_unpack(const Packed& packed);
  void finish_unpack(bool on_plan);
  // Throws c10::Error when it is memory of a parameter that is not on the device.
  void check_present(const Packed& packed) const { parameters_.check_present(packed.parameter); }
  // The bytes of a `planned` saved tensor, on the device, as a view. Between begin and finish.
  at::Tensor load(const Packed& packed, const SavedView& view, bool on_plan);

  // For saved tensors that leave outside the plan.
  [[nodiscard]] HostPool& host_pool() { return host_pool_; }
  [[nodiscard]] const HostArena& arena() const { return arena_; }
  [[nodiscard]] Bytes host_high_water() const {
    return std::max(saved_.arena_use().high_water(arena_.data()),
                    parameters_.arena_use().high_water(arena_.data()));
  }

 private:
  // Ends the step for the device, waits for every copy and drops what the step holds there; of
  // parameters too, unless they are where the next step expects them.
  void finish(bool parameters_stay);
  void drop_all();
  void run(simulator::AnchorKind kind, std::size_t ordinal, simulator::Side side);
  void execute(const simulator::Instruction& instruction);
  // A refused step stays refused, on whichever thread it goes on.
  void check_not_refused() const;
  // Throws, or leaves the plan for the rest of the step.
  void diverge(const std::string& difference);
  // What of the next pack is not as recorded, if anything; and in words.
  enum class PackDifference : std::uint8_t {
    none,
    count,
    place,
    dtype,
    no_memory,
    shape,
    offset,
    storage,
    size,
    version
  };
  [[nodiscard]] PackDifference compare_pack(const at::Tensor& tensor, const Site& site);
  [[nodiscard]] std::string describe(PackDifference difference, const at::Tensor& tensor,
                                     const Site& site) const;
  std::size_t& counter(simulator::AnchorKind kind) {
    return counters_[static_cast<std::size_t>(kind)];
  }

  std::mutex mutex_;  // guards everything below that changes
  Device& device_;
  HostPool host_pool_;  // has a lock of its own
  std::shared_ptr<const Trace> trace_;
  simulator::Schedule schedule_;
  PlannedStepOptions options_;
  HostArena arena_;
  PlannedParameters parameters_;
  StepProgram program_;
  SavedTenants saved_;
  std::vector<TenantHolder*> holders_;  // by tenant
  SiteTracker sites_;
  std::array<std::size_t, simulator::kAnchorKinds> counters_{};
  SerialNumbers storage_index_;              // of the storages that the step saves
  std::vector<std::int64_t> first_version_;  // by storage index
  StepReport report_;
  std::int64_t first_serial_ = 0;  // allocations from here on were made in this step
  std::uint64_t step_ = 0;
  bool active_ = false;
  // The last step has not put its parameters away: it goes on, or the device failed at its end.
  bool parameters_out_ = false;
};

}  // namespace stowage::executor
