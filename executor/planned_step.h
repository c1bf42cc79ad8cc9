// PlannedStep: the StepDriver that runs a Schedule. It follows the step by its anchors (packs,
// unpacks, layer boundaries), executes the instructions that stand there, and refuses a step that
// is not the one that the schedule was made for, before anything can go wrong.
//
// Safety of what it hands out:
// - a saved tensor is rebuilt from bytes that were copied while its version did not change;
// - a host slot is read only as long as no later store of the step has been given its bytes;
// - a step that differs from the recorded one (other pack, unpack or layer) throws c10::Error that
//   names the first difference; with OffPlan::offload_all the step goes on instead, every saved
//   tensor from there on leaving the device at once, and that is counted.
// After an exception, or when a graph is dropped, begin_step() starts clean.
//
// Where the schedule streams parameters or optimizer state, or has gradients on the host
// (executor/streamed_storages.h), those are not on the device between steps: a touch throws
// c10::Error that names it and how it comes back (materialise(), materialise_all()). Their graphs
// must be dropped ahead of the next begin_step(), and no view of them kept. What was written to a
// parameter is never lost, whatever ends the step: by an op that counts versions, or between the
// driver's parameter_update() events (so not through .data() elsewhere in the step).
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/host_arena.h"
#include "executor/model.h"
#include "executor/optimizer.h"
#include "executor/step_driver.h"
#include "simulator/placement/memory_layout.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

enum class OffPlan : std::uint8_t { refuse, offload_all };

struct PlannedStepOptions {
  // Of the step that the schedule is for: what of the recorded one runs again.
  simulator::Structure structure{};
  OffPlan off_plan = OffPlan::refuse;
  // What else of the program's lives on the device from step to step: inputs, buffers, state of the
  // optimizer. Where the schedule's memory is planned it moves into that, as parameters do. None is
  // held.
  std::vector<at::Tensor> older{};
  simulator::RanBefore ran_before = simulator::RanBefore::nothing;
  // Gives the optimizer's state, "PARAMETER.WHAT". Asked once, by create() of a schedule that moves
  // state, that of these parameters at least: all of theirs has to be in the answer, with memory or
  // without (executor/absent_storage.h), that of one parameter in the order in which it was made.
  // Empty: there is none.
  std::function<std::vector<NamedTensor>(const std::vector<NamedTensor>& parameters)>
      optimizer_state{};
  // Updates a parameter on the host with these, on a thread of the executor's, where the schedule
  // has the host do it (simulator::Action::update): the same arithmetic as the optimizer's, which
  // leaves such a parameter out (StepDriver::updates_elsewhere()).
  std::function<void(const at::Tensor& parameter, const HostTensors& tensors)> update_on_host{};
  // Fill host slots with 0xff bytes (NaN) when they are given up, so that a stale read shows.
  bool poison_host = false;
  // Fill the buffers of loads likewise before their copy, so that a read ahead of it shows.
  bool poison_device = false;
};

// What one step did.
struct StepReport {
  MemoryStats memory;  // the device's at its end, ahead of look_ahead(); peaks since its begin
  bool on_plan = true;
  std::string first_difference;     // empty when on_plan
  std::int64_t off_plan_packs = 0;  // saved tensors that left outside the plan
  Bytes offloaded_bytes = 0;
  Bytes reloaded_bytes = 0;
  // Of parameters, optimizer state and gradients: loads and stores of the schedule, and what had to
  // be stored beside it because somebody else wrote one, or because the step did not end as
  // planned.
  Bytes loaded_bytes = 0;
  Bytes stored_bytes = 0;
  Bytes unplanned_stored_bytes = 0;
  Nanoseconds host_update_ns = 0;  // in which the host was busy with updates
};

// Of planned memory, over all steps.
struct StepMemoryReport {
  Bytes bytes = 0;                     // taken from the system or the driver
  Bytes mapped = 0;                    // of addresses
  Bytes older = 0;                     // of what is older than the steps, moved into it
  Nanoseconds setup = 0;               // of mapping and moving, ahead of the first step
  std::int64_t served = 0;             // allocations that lay where the placement has them
  std::int64_t conflicts = 0;          // that did not: somebody still had some of their bytes
  std::int64_t unforeseen = 0;         // that the plan does not know
  std::vector<std::string> surprises;  // the first of both, for people
  std::int64_t lent = 0;               // how often pages were, between steps, as there was no room
};

class PlannedStep final : public StepDriver {
 public:
  // Checks the schedule for hazards (refused if any), makes the host arena, and takes from the
  // device's driver what only a later step than the first would (reserve_segments.h); end_step()
  // does that once more, behind the first step that went as planned. `device`
  // outlives the driver; the trace is shared because the schedule refers to its rows. `parameters`
  // are the model's, in the order in which they were recorded; those that stream leave the device
  // here, and are refused when they are not the recorded ones or somebody else holds their memory.
  // May be empty where nothing streams.
  [[nodiscard]] static Result<std::unique_ptr<PlannedStep>> create(
      Device& device, std::shared_ptr<const Trace> trace, simulator::Schedule schedule,
      std::vector<NamedTensor> parameters, PlannedStepOptions options = {});
  // Ends as abort_step() and materialise() do. Where there is no memory for all of it, a warning
  // says so, and what the rest needs (the host memory too) stays until materialise_left_behind():
  // no trained weight is lost. `device` must then live as long.
  ~PlannedStep() override;

  // Installs the driver for the calling thread (InstalledDriver) and expects a step from its
  // beginning. What an unfinished step left behind is waited for and dropped.
  void begin_step();
  // The step goes on on the calling thread, behind steps of other models that began meanwhile, or
  // when it began on another thread. A graph's backward knows its step without it, the forward and
  // the optimizer's updates do not. Nothing outside of a step.
  void resume() { installed_.resume(); }
  // Where the step would update its parameters: it does not, as behind an overflow. Ahead of the
  // first update; whatever else the step does behind it is as recorded. The period without the
  // update is part of what create() proves. Throws c10::Error where the recording has no update
  // that can be left out, or it has begun.
  // With updates on the host likewise: they begin as gradients arrive.
  void skip_update() override;
  [[nodiscard]] bool updates_elsewhere(const at::Tensor& parameter) override;
  // Ends the step and removes the driver. Error: the step ended before the schedule did (only
  // with OffPlan::refuse; nothing is lost, its results are right). What look_ahead()
  // takes for a moment counts in the device's peaks, not in the report's.
  Result<StepReport> end_step();
  // After an exception inside the step: waits for copies, drops what the step holds and removes
  // the driver, so that the next step is clean.
  void abort_step();
  // Brings all parameters back onto the device, into memory of their own, until the next
  // begin_step(): for whatever is no training step. Optimizer state stays where it is. Between
  // steps only. May throw c10::OutOfMemoryError: everything that has room is back by then, nothing
  // is lost, and materialise() or begin_step() may follow.
  void materialise();
  // And the optimizer's state and the gradients: to save or to load them.
  void materialise_all();
  // Brings back what drivers that are gone had no memory for. Throws as materialise() does; may
  // then be called again. Does nothing where nothing was left behind.
  static void materialise_left_behind();
  // Every parameter as it now is, without moving one: itself where it does not stream or was
  // brought back, else a CPU tensor over host memory, not to be written, valid until the next call
  // of this driver. Between steps.
  [[nodiscard]] std::vector<NamedTensor> values();
  // The same of these pieces of the optimizer's state, or gradients.
  [[nodiscard]] std::vector<NamedTensor> values(const std::vector<NamedTensor>& tensors);
  // The parameters, the optimizer's state and the gradients are not needed any more: the destructor
  // does not bring them back, and a touch of one stays an error.
  void leave_parameters() { leaves_parameters_ = true; }
  [[nodiscard]] Bytes host_bytes() const;  // of the arena
  // Measured: the end of the highest byte of the arena that a copy wrote or read since create(),
  // rounded up to the slots' alignment. host_bytes() once a step went as planned, if the plan is
  // right.
  [[nodiscard]] Bytes host_high_water() const;
  // What the look ahead behind the first step saw and took, for people; empty before, and on a
  // device without a caching allocator.
  [[nodiscard]] const std::string& look_ahead() const { return look_ahead_; }
  // Of a schedule with planned memory, else null; and what came of it since create().
  [[nodiscard]] StepMemory* memory() override;
  [[nodiscard]] std::optional<StepMemoryReport> memory_report() const;
  // For the same look at another time: numbers of the last step's own allocations begin here.
  [[nodiscard]] std::int64_t first_serial() const;

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override;
  std::vector<at::Tensor> run_layer(std::string_view path, const LayerFn& fn,
                                    std::vector<at::Tensor> inputs) override;
  std::optional<std::int32_t> parts(std::string_view segment) override;
  void layer_event(LayerEvent event, std::string_view path) override;
  void backward_begin() override;
  void backward_end() override;
  void parameter_update(UpdateEvent event, const at::Tensor& parameter) override;
  void primitive_op_begin(const at::RecordFunction& op) override;
  void primitive_op_end(const at::RecordFunction& op) override;

  class State;  // shared with the hooks, which may outlive the driver with their graph

 private:
  explicit PlannedStep(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
  InstalledDriver installed_;
  std::vector<simulator::Structure::Parts> micro_batches_;
  bool leaves_parameters_ = false;
  bool has_looked_ahead_ = false;
  std::string look_ahead_;
};

}  // namespace stowage::executor
