// PlannedStep::State: the running interpreter behind PlannedStep, shared with the hooks of saved
// tensors. Private to executor/planned_*.cpp.
//
// Autograd has a thread for each device and runs CPU nodes on the caller's, so the hooks of a graph
// over both come on two threads at once. Each event is *claimed* under a lock, which compares it
// with the recorded one and takes its place in a line (executor/turn_line.h); what it then does on
// the device it does in that order, holding no lock: whatever runs inside (an allocator's callback,
// code of the user's) may come back here. The hook of a tensor that is not on the device waits for
// nobody. Whichever thread comes first, what it gets is right; an order of unpacks that is not the
// recorded one is off plan.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "executor/chain_runs.h"
#include "executor/gradient_hooks.h"
#include "executor/host_copy.h"
#include "executor/host_pool.h"
#include "executor/host_update_thread.h"
#include "executor/kept_tensor.h"
#include "executor/older_memory.h"
#include "executor/planned_gradients.h"
#include "executor/planned_optimizer_state.h"
#include "executor/planned_parameters.h"
#include "executor/planned_step.h"
#include "executor/saved_tenants.h"
#include "executor/saved_view.h"
#include "executor/segment_runs.h"
#include "executor/step_cursor.h"
#include "executor/step_peaks.h"
#include "executor/step_program.h"
#include "executor/turn_line.h"
#include "simulator/lowering/skipped_update.h"

namespace stowage::executor {

class PlannedStep::State final : public SegmentHost,
                                 public std::enable_shared_from_this<PlannedStep::State> {
 public:
  // `segments` and `chains` run again in `trace`.
  State(Device& device, std::shared_ptr<const Trace> trace, simulator::Schedule schedule,
        PlannedStepOptions options, HostArena arena, PlannedParameters parameters,
        PlannedOptimizerState optimizer_state, PlannedGradients gradients,
        Result<simulator::SkippedUpdate> skipped, std::vector<SegmentSpec> segments,
        std::vector<ChainSpec> chains);

  // Once, ahead of the first begin(): takes over what streams.
  void adopt();
  // Behind adopt(), once: takes from the device what the step needs, and moves in what is older.
  [[nodiscard]] Status take_memory(const simulator::StepIndex& index);
  // For good, between steps: everything goes back into the device's own allocator, for which the
  // pages that nothing lies in are given back first. Throws c10::OutOfMemoryError; what did not
  // come back is as it was, and may be asked for again.
  void leave();
  void begin();
  // When it throws (a saved tensor was written in place, a device failed) the step goes on until
  // abort().
  Result<StepReport> end();
  // Behind end() of a step that went as planned: reserve_for_later_steps().
  std::string look_ahead();
  [[nodiscard]] std::int64_t first_serial() const { return first_serial_; }
  // Ends a step that goes on; nothing otherwise.
  void abort();
  void layer_event(LayerEvent event, std::string_view path) override;
  std::vector<at::Tensor> run_layer(PlannedStep& step, std::string_view path, const LayerFn& fn,
                                    std::vector<at::Tensor> inputs);
  void backward_event(bool begins);
  void parameter_update(UpdateEvent event, const at::Tensor& parameter);
  void skip_update();
  [[nodiscard]] bool updates_elsewhere(const at::Tensor& parameter) const;
  void gradient_accumulated(const at::Tensor& parameter);
  void materialise();      // parameters
  void materialise_all();  // and optimizer state and gradients
  std::vector<NamedTensor> values();
  std::vector<NamedTensor> values(const std::vector<NamedTensor>& tensors);

  // What became of a saved tensor.
  struct Packed {
    enum class Treatment : std::uint8_t { keep, planned, host_copy, given_up };
    Treatment treatment = Treatment::keep;
    SavedId saved;
    std::uint64_t step = 0;       // the step it belongs to
    std::int32_t parameter = -1;  // the streamed parameter whose memory it is, -1 = none
    std::int64_t serial = -1;     // of its storage
    bool on_device = false;
    KeptTensor kept;                 // of keep
    SavedView view;                  // of planned
    std::optional<HostCopy> copy{};  // of host_copy
    SegmentRuns::Pack segment{};     // of given_up: who gives it up, or saves it again
  };
  // Run what stands around the event. Both throw c10::Error for a step that is off plan
  // (OffPlan::refuse) and for memory of a parameter that is not on the device. `input` >= 0: of
  // what a segment is given. Where it ends a segment's run pack() throws what that run expects.
  Packed pack(const at::Tensor& tensor, std::int32_t input);
  at::Tensor unpack(const Packed& packed);
  // SegmentHost; the hooks share this state.
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_input_hooks(
      std::int32_t input) override;
  void begin_again(SegmentCall& call) override;
  void begin_inner(std::string_view path, const std::vector<at::Tensor>& inputs) override;
  [[nodiscard]] std::vector<std::string_view> open_layers() override;
  void end_again(SegmentCall& call) override;
  void begin_chain(std::string_view) override {}
  SavedId pack_again(const at::Tensor& tensor, const Site& site) override;
  void end_chain(std::string_view) override {}
  [[nodiscard]] std::int64_t serial_of(const at::Tensor& tensor) const override {
    return parameters_.serial_of(tensor);
  }
  void check_present(const at::Tensor& tensor) override {
    if (is_plain(tensor)) parameters_.check_present(parameters_.index_of(tensor));
  }
  [[nodiscard]] ChainRuns& chains() { return chains_; }
  [[nodiscard]] StepMemory* memory() const { return memory_.get(); }
  [[nodiscard]] std::optional<StepMemoryReport> memory_report() const;
  [[nodiscard]] const Trace& trace() const { return *trace_; }

  [[nodiscard]] const HostArena& arena() const { return arena_; }
  [[nodiscard]] Bytes host_high_water() const {
    return std::max({saved_.arena_use().high_water(arena_.data()),
                     parameters_.arena_use().high_water(arena_.data()),
                     optimizer_state_.arena_use().high_water(arena_.data()),
                     gradients_.arena_use().high_water(arena_.data())});
  }

 private:
  using Claim = StepCursor::Claim;

  void leave_memory();
  // In the step's memory, as far as it has places for them.
  void take_workspaces(const std::vector<LibraryWorkspace>& workspaces);
  // Ends the step for the device, waits for every copy and drops what the step holds there; what
  // streams too, unless it is where the next step expects it. In a turn, as what follows.
  void finish(bool streamed_stays);
  void drop_all();
  void run(simulator::AnchorKind kind, std::size_t ordinal, simulator::Side side);
  // The step has come to that event, as its memory is told.
  void reach(simulator::AnchorKind kind, std::size_t ordinal);
  void execute(const simulator::Instruction& instruction);
  // The host updates the parameter of that gradient, beside what follows.
  void update_on_host(StayId gradient);
  void leave_plan();
  // The bytes of a `planned` saved tensor, on the device, as a view.
  at::Tensor load(const Packed& packed, const Claim& claim);
  // What the pack is for its segment, once its event is claimed.
  void keep_again(const Packed& packed, const at::Tensor& tensor);

  // Under the lock. A refused step stays refused, and a failed one failed, on whichever thread it
  // goes on.
  void check_not_refused() const;
  void check_not_failed() const;
  // Throws when the event was the first that differs and such steps are refused.
  void check(const Claim& claim) const;
  // Runs an event's work in its turn. When it throws, the step has failed: nothing of it runs on.
  template <class Work>
  void in_turn(TurnLine::Turn turn, Work&& work);
  // An anchor that is no saved tensor's: claims it with `next`, and runs what stands there.
  template <class Next>
  void pass_anchor(simulator::AnchorKind kind, Next&& next);
  Claim claim_parameter(simulator::AnchorKind kind, const at::Tensor& parameter);
  [[nodiscard]] TurnLine::Turn next_turn() {
    const std::lock_guard lock(mutex_);
    return line_.take();
  }
  [[nodiscard]] bool is_of_device(const at::Tensor& tensor) const {
    return tensor.defined() && tensor.device().type() == device_.torch_device().type();
  }

  Device& device_;
  HostPool host_pool_;  // has a lock of its own
  std::shared_ptr<const Trace> trace_;
  simulator::Schedule schedule_;
  PlannedStepOptions options_;
  HostArena arena_;
  std::unique_ptr<StepMemory> memory_;  // or null
  OlderMemory older_;
  Nanoseconds memory_setup_ = 0;
  StepProgram program_;
  Result<simulator::SkippedUpdate> skipped_;
  std::optional<StepProgram> skipping_program_;
  std::atomic<const StepProgram*> instructions_{
      &program_};  // of this step; ahead of the update both have the same

  SegmentRuns segments_;  // of the thread that runs the forward, or a segment again
  ChainRuns chains_;      // likewise

  std::mutex mutex_;  // guards the next four; no call of the device is made under it
  StepCursor cursor_;
  std::uint64_t step_ = 0;
  bool active_ = false;
  bool failed_ = false;  // an event's work threw: what it was to do is half done

  TurnLine line_;                 // whoever has its turn has what follows
  GradientHooks gradient_hooks_;  // where instructions stand behind accumulations
  PlannedParameters parameters_;
  PlannedOptimizerState optimizer_state_;
  PlannedGradients gradients_;
  SavedTenants saved_;
  // Of what the host updates: by tenant of a parameter the last one's number, 0 = done long ago.
  std::vector<std::uint64_t> update_of_;
  std::unordered_set<std::int32_t> updated_on_host_;  // rows of parameters
  HostUpdateThread host_updates_;                     // ends ahead of what its work refers to
  std::vector<TenantHolder*> holders_;                // by tenant
  StepReport report_;                                 // but for what the cursor knows
  StepPeaks peaks_{device_};
  // It has left the plan, if from inside of an event's work: the rest of that is not done.
  bool has_left_ = false;
  // The last step has not put away what streams: it goes on, or the device failed at its end.
  bool streamed_out_ = false;
  std::atomic<std::int64_t> first_serial_{0};  // allocations from here on were made in this step
  std::atomic<std::int64_t> off_plan_packs_{0};
};

}  // namespace stowage::executor
