#include "executor/planned_step.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/backward_thread.h"
#include "executor/chain_call.h"
#include "executor/device/first_line.h"
#include "executor/division.h"
#include "executor/planned_state.h"
#include "executor/reserve_segments.h"
#include "executor/saved_tensor_engine.h"
#include "executor/segment_call.h"
#include "executor/user_code.h"
#include "simulator/allocator/allocator_outlook.h"
#include "simulator/allocator/allocator_replay.h"
#include "simulator/hazards/hazards.h"
#include "simulator/hazards/skipped_update_check.h"
#include "simulator/schedule/tenant_kind.h"
#include "simulator/step/unroll.h"

namespace stowage::executor {

namespace {

class PlannedHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit PlannedHooks(std::shared_ptr<PlannedStep::State> state, std::int32_t input = -1)
      : state_(std::move(state)), input_(input) {}

  void call_pack_hook(const at::Tensor& tensor) override { packed_ = state_->pack(tensor, input_); }
  at::Tensor call_unpack_hook() override { return state_->unpack(packed_); }

 private:
  std::shared_ptr<PlannedStep::State> state_;
  std::int32_t input_;  // of a segment; -1 = it is a saved tensor
  PlannedStep::State::Packed packed_;
};

// States of drivers that are gone, whose parameters are not all on the device. Never destroyed: a
// process that ends has no use for them, and their device may be gone by then.
struct LeftBehind {
  std::mutex mutex;
  std::vector<std::shared_ptr<PlannedStep::State>> states;
};

// A trace of an earlier schema names few dtypes, and for the others it does not know how many bytes
// a saved tensor has.
Status check_dtypes(const Trace& trace, const simulator::Schedule& schedule) {
  for (const simulator::Tenant& tenant : schedule.tenants) {
    for (const SavedId saved : tenant.saved) {
      const std::size_t tensor = trace.saved.tensor[saved.index()].index();
      if (trace.tensors.dtype[tensor] != DType::other) continue;
      return Error{ErrorCode::bad_input,
                   "the trace does not say which dtype is saved at " +
                       trace.string(trace.saved.site[saved.index()]) +
                       ", nor how wide its elements are, so it cannot be moved",
                   "", "", "record the model again, or keep what is saved there"};
    }
  }
  return Unit{};
}

// `rrelu` saves its noise ahead of the kernel that fills it, and counts no version. A recording
// knows that (the noise has no storage there), one of an earlier version does not; nor does a step
// that leaves its plan, of whatever else is saved behind that.
Status check_filled(const Trace& trace, const simulator::Schedule& schedule, OffPlan off_plan) {
  constexpr std::string_view kFillsWhatItSaved = "aten::rrelu_with_noise";
  std::unordered_map<std::int32_t, bool> knows;  // by op
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const OpId op = trace.saved.op[s];
    if (!op.valid() || !trace.string(trace.ops.name[op.index()]).starts_with(kFillsWhatItSaved)) {
      continue;
    }
    if (off_plan == OffPlan::offload_all) {
      return Error{
          ErrorCode::bad_input,
          "the step draws random slopes (rrelu), which off the plan would leave the device "
          "ahead of the kernel that fills them",
          "", "", "run it without going on off the plan"};
    }
    knows[op.value] = knows[op.value] || !trace.saved.storage[s].valid();
  }
  for (const simulator::Tenant& tenant : schedule.tenants) {
    for (const SavedId saved : tenant.saved) {
      const auto found = knows.find(trace.saved.op[saved.index()].value);
      if (found == knows.end() || found->second) continue;
      return Error{ErrorCode::bad_input,
                   "the recording takes what rrelu saves ahead of filling it for filled, at " +
                       trace.string(trace.saved.site[saved.index()]),
                   "", "", "record the model again, or keep what is saved there"};
    }
  }
  return Unit{};
}

// Where something stands behind an accumulation, somebody must tell of it.
Status check_parameters(const simulator::Schedule& schedule,
                        const std::vector<NamedTensor>& parameters) {
  const bool needed = std::any_of(
      schedule.instructions.begin(), schedule.instructions.end(), [](const auto& instruction) {
        return instruction.anchor.kind == simulator::AnchorKind::gradient_accumulated;
      });
  if (!needed || !parameters.empty()) return Unit{};
  return Error{ErrorCode::bad_input, "the schedule acts where gradients are accumulated", "", "",
               "pass the model's parameters in the order in which they were recorded"};
}

// Proven as the other one is.
Result<simulator::SkippedUpdate> skipped_period(const simulator::StepIndex& index,
                                                const simulator::Schedule& schedule) {
  Result<simulator::SkippedUpdate> skipped = simulator::skip_update(index, schedule);
  if (!skipped) return skipped;
  const auto hazards = simulator::check_skipped_update(
      index, schedule, simulator::StepIndex(skipped->step), skipped->schedule);
  if (hazards.empty()) return skipped;
  return Error{ErrorCode::bad_input,
               "under this plan a step without it would not be safe: " + hazards.front().text, "",
               "", "let the parameters stay that are used behind the update"};
}

// The tables of the step that runs, and what of it runs again.
struct UnrolledTrace {
  simulator::Step step;
  std::shared_ptr<const Trace> tables;
};

Result<UnrolledTrace> unrolled_trace(std::shared_ptr<const Trace> recording,
                                     const simulator::Structure& structure) {
  if (structure.empty()) return UnrolledTrace{simulator::Step(*recording), recording};
  Result<simulator::Step> step = simulator::unroll(*recording, structure);
  if (!step) return step.error();
  const auto owner =
      std::make_shared<const std::pair<std::shared_ptr<const Trace>, simulator::Step>>(recording,
                                                                                       *step);
  return UnrolledTrace{std::move(step).value(),
                       std::shared_ptr<const Trace>(owner, &owner->second.trace())};
}

// What the host updates needs somebody who does it, one parameter a piece of memory.
Status check_host_updates(const Device& device, const Trace& trace,
                          const simulator::Schedule& schedule,
                          const std::vector<NamedTensor>& parameters,
                          const PlannedStepOptions& options) {
  const auto refuse = [](const std::string& why, const char* hint) {
    return Error{ErrorCode::bad_input, "the host cannot update parameters: " + why, "", "", hint};
  };
  const std::vector<StorageId> rows = parameter_rows(trace);
  std::vector<StateStorage> storages;
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.kind != &simulator::kParameter || !tenant.is_updated_at_home) continue;
    if (!options.update_on_host) {
      return refuse(
          "nobody says how as gradients arrive; an optimizer behind clipping or a gradient "
          "scaler needs all of them first",
          "let the optimizer stay on the device, or pass "
          "PlannedStepOptions::update_on_host");
    }
    if (options.off_plan == OffPlan::offload_all) {
      return refuse("a step that goes on off the plan has its gradients elsewhere",
                    "run it without going on off the plan");
    }
    if (storages.empty()) storages = state_storages(device, parameters);
    const auto row = std::find(rows.begin(), rows.end(), tenant.storage);
    if (rows.size() != storages.size() || row == rows.end()) return Unit{};  // said elsewhere
    const auto& tensors = storages[static_cast<std::size_t>(row - rows.begin())].tensors;
    if (tensors.size() == 1) continue;
    return refuse(tensors[0].name + " and " + tensors[1].name + " lie in the same memory",
                  "let the optimizer of their layer stay on the device");
  }
  return Unit{};
}

LeftBehind& left_behind() {
  static auto* const all = new LeftBehind;
  return *all;
}

}  // namespace

std::string PlannedStep::State::look_ahead() {
  const TurnLine::Place place(line_, next_turn());
  if (memory_ != nullptr) {
    device_.release_cache();  // of what only the first step needed
    return "";
  }
  if (device_.memory().driver_allocations < 0) return "";
  const simulator::StepIndex index(*trace_);
  const simulator::AllocatorOutlook outlook(index, schedule_);
  return reserve_for_later_steps(device_, outlook, first_serial_);
}

Result<std::unique_ptr<PlannedStep>> PlannedStep::create(Device& device,
                                                         std::shared_ptr<const Trace> trace,
                                                         simulator::Schedule schedule,
                                                         std::vector<NamedTensor> parameters,
                                                         PlannedStepOptions options) {
  install_saved_tensor_engine();  // a process that only runs plans has recorded nothing
  if (trace->schema.minor >= kBackwardWorkspaceSince)
    take_backward_workspace(device.torch_device());
  Result<UnrolledTrace> unrolled = unrolled_trace(std::move(trace), options.structure);
  if (!unrolled) return unrolled.error();
  trace = unrolled->tables;
  const simulator::StepIndex index(unrolled->step);
  const auto hazards = simulator::find_hazards(index, schedule);
  if (!hazards.empty()) {
    return Error{ErrorCode::bad_input, "the schedule is not safe to run: " + hazards.front().text,
                 "", "", "plan again; a schedule from a plan is always ordered"};
  }
  for (const simulator::Tenant& tenant : schedule.tenants) {
    const bool is_known =
        tenant.kind == &simulator::kSavedTensor || tenant.kind == &simulator::kParameter ||
        tenant.kind == &simulator::kOptimizerState || tenant.kind == &simulator::kGradient;
    if (is_known) continue;
    return Error{
        ErrorCode::bad_input,
        std::string("the schedule moves a ") + tenant.kind->name + ", which no executor can", "",
        "", "plan with this version of Stowage"};
  }
  if (Status status = check_parameters(schedule, parameters); !status) return status.error();
  if (Status status = check_dtypes(*trace, schedule); !status) return status.error();
  if (Status status = check_filled(*trace, schedule, options.off_plan); !status) {
    return status.error();
  }
  if (Status status = check_host_updates(device, *trace, schedule, parameters, options); !status) {
    return status.error();
  }
  Result<HostArena> arena = device.host_arena(schedule.host_bytes);
  if (!arena) return arena.error();
  Result<PlannedOptimizerState> state =
      PlannedOptimizerState::create(device, *trace, schedule, parameters, options.optimizer_state,
                                    arena->data(), options.poison_device);
  if (!state) return state.error();
  Result<PlannedGradients> gradients = PlannedGradients::create(
      device, *trace, schedule, parameters, arena->data(), options.poison_device);
  if (!gradients) return gradients.error();
  Result<PlannedParameters> planned = PlannedParameters::create(
      device, *trace, schedule, std::move(parameters), arena->data(), options.poison_device);
  if (!planned) return planned.error();
  const bool is_placed = schedule.placement == simulator::PlacementMode::planned;
  std::vector<Bytes> ahead;
  if (trace->setup.size() > 0 && !is_placed && device.other_allocator().empty()) {
    ahead = simulator::replay_allocator(index, schedule).buffers_ahead;
  }
  Result<simulator::SkippedUpdate> skipped = skipped_period(index, schedule);
  std::vector<simulator::Structure::Parts> micro_batches =
      simulator::recorded_parts(unrolled->step.recording());
  std::unique_ptr<PlannedStep> step(new PlannedStep(std::make_shared<State>(
      device, std::move(trace), std::move(schedule), std::move(options), std::move(arena).value(),
      std::move(planned).value(), std::move(state).value(), std::move(gradients).value(),
      std::move(skipped), segment_specs(unrolled->step.trace(), unrolled->step.segments()),
      chain_specs(unrolled->step.trace(), unrolled->step.segments()))));
  step->micro_batches_ = std::move(micro_batches);
  step->state_->adopt();
  if (is_placed) {
    set_current_memory([]() -> StepMemory* {
      StepDriver* const current = driver();
      return current == nullptr ? nullptr : current->memory();
    });
    if (Status status = step->state_->take_memory(index); !status) return status.error();
  }
  reserve_segments(device, ahead);
  return step;
}

PlannedStep::~PlannedStep() {
  try {
    abort_step();
  } catch (const std::exception&) {
    // A device that failed for good has nothing left to wait for; the step's error was reported.
  }
  if (leaves_parameters_) return;
  try {
    state_->leave();
  } catch (const std::exception& error) {
    LeftBehind& left = left_behind();
    const std::lock_guard lock(left.mutex);
    left.states.push_back(state_);
    TORCH_WARN(
        "stowage: what streamed under a plan could not be brought back; they are kept "
        "in host memory, call PlannedStep::materialise_left_behind() when there is room: ",
        first_line(error.what()));
  }
}

void PlannedStep::materialise_left_behind() {
  LeftBehind& left = left_behind();
  const std::lock_guard lock(left.mutex);
  std::exception_ptr first;
  std::erase_if(left.states, [&](const std::shared_ptr<State>& state) {
    try {
      state->leave();
      return true;
    } catch (...) {
      if (!first) first = std::current_exception();
      return false;
    }
  });
  if (first) std::rethrow_exception(first);
}

void PlannedStep::begin_step() {
  try {
    state_->begin();
  } catch (...) {
    abort_step();
    throw;
  }
  installed_ = InstalledDriver(*this);
}

Result<StepReport> PlannedStep::end_step() {
  installed_.remove();
  try {
    Result<StepReport> report = state_->end();
    if (report && report->on_plan && !has_looked_ahead_) {
      has_looked_ahead_ = true;
      try {
        look_ahead_ = state_->look_ahead();
      } catch (...) {  // the step itself went well
        look_ahead_ = "not known: " + thrown_text();
      }
    }
    return report;
  } catch (...) {
    state_->abort();
    throw;
  }
}

void PlannedStep::primitive_op_begin(const at::RecordFunction& op) {
  state_->chains().op_begin(op, *state_);
}

void PlannedStep::primitive_op_end(const at::RecordFunction& op) {
  state_->chains().op_end(op, *state_);
}

void PlannedStep::skip_update() {
  state_->skip_update();
}

bool PlannedStep::updates_elsewhere(const at::Tensor& parameter) {
  return state_->updates_elsewhere(parameter);
}

void PlannedStep::abort_step() {
  installed_.remove();
  state_->abort();
}

void PlannedStep::materialise() {
  state_->materialise();
}

void PlannedStep::materialise_all() {
  state_->materialise_all();
}

std::vector<NamedTensor> PlannedStep::values() {
  return state_->values();
}

std::vector<NamedTensor> PlannedStep::values(const std::vector<NamedTensor>& tensors) {
  return state_->values(tensors);
}

std::int64_t PlannedStep::first_serial() const {
  return state_->first_serial();
}

Bytes PlannedStep::host_bytes() const {
  return state_->arena().bytes();
}

Bytes PlannedStep::host_high_water() const {
  constexpr Bytes kSlot = simulator::kHostSlotAlignment;
  return (state_->host_high_water() + kSlot - 1) / kSlot * kSlot;
}

StepMemory* PlannedStep::memory() {
  return state_->memory();
}

std::optional<StepMemoryReport> PlannedStep::memory_report() const {
  return state_->memory_report();
}

std::unique_ptr<torch::autograd::SavedVariableHooks> PlannedStep::make_hooks() {
  return std::make_unique<PlannedHooks>(state_);
}

std::unique_ptr<torch::autograd::SavedVariableHooks> PlannedStep::State::make_input_hooks(
    std::int32_t input) {
  return std::make_unique<PlannedHooks>(shared_from_this(), input);
}

std::vector<at::Tensor> PlannedStep::run_layer(std::string_view path, const LayerFn& fn,
                                               std::vector<at::Tensor> inputs) {
  return state_->run_layer(*this, path, fn, std::move(inputs));
}

void PlannedStep::layer_event(LayerEvent event, std::string_view path) {
  state_->layer_event(event, path);
}

std::optional<std::int32_t> PlannedStep::parts(std::string_view segment) {
  return parts_among(micro_batches_, segment);
}

void PlannedStep::backward_begin() {
  state_->backward_event(/*begins=*/true);
}

void PlannedStep::backward_end() {
  state_->backward_event(/*begins=*/false);
}

void PlannedStep::parameter_update(UpdateEvent event, const at::Tensor& parameter) {
  state_->parameter_update(event, parameter);
}

}  // namespace stowage::executor
