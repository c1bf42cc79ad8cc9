#include "executor/planned_state.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

#include "executor/device/needed_wait.h"

namespace stowage::executor {

using simulator::Action;
using simulator::AnchorKind;
using simulator::CopyMode;
using simulator::Side;

namespace {

constexpr std::byte kPoison{0xff};  // makes floats NaN

AnchorKind anchor_kind(LayerEvent event) {
  switch (event) {
    case LayerEvent::forward_begin:
      return AnchorKind::layer_forward_begin;
    case LayerEvent::forward_end:
      return AnchorKind::layer_forward_end;
    case LayerEvent::backward_begin:
      return AnchorKind::layer_backward_begin;
    case LayerEvent::backward_end:
      return AnchorKind::layer_backward_end;
  }
  STOWAGE_ASSERT(false && "unknown layer event");
}

// In-place writes are seen through the version counter, which a detached handle shares.
void check_not_written(const at::Tensor& source, std::int64_t version) {
  const std::int64_t now = KeptTensor::version_of(source);
  if (now != version) throw_modified_in_place(source, version, now);
}

}  // namespace

PlannedStep::State::State(Device& device, std::shared_ptr<const Trace> trace,
                          simulator::Schedule schedule, PlannedStepOptions options, HostArena arena,
                          PlannedParameters parameters)
    : device_(device),
      host_pool_(device),
      trace_(std::move(trace)),
      schedule_(std::move(schedule)),
      options_(options),
      arena_(std::move(arena)),
      parameters_(std::move(parameters)),
      program_(*trace_, schedule_),
      offloads_(schedule_.offloads.size()),
      reloads_(schedule_.reloads.size()),
      reloads_of_(schedule_.offloads.size(), 0) {
  for (const simulator::Reload& reload : schedule_.reloads) {
    ++reloads_of_[reload.offload.index()];
  }
}

void PlannedStep::State::drop_all() {
  if (needed(Wait::drop_all)) device_.synchronize();
  for (OffloadState& offload : offloads_) offload = {};
  for (ReloadState& reload : reloads_) reload = {};
}

void PlannedStep::State::begin() {
  const std::lock_guard lock(mutex_);
  drop_all();
  if (active_) device_.end_step();
  active_ = false;
  if (parameters_out_) parameters_.abort();
  device_.begin_step();
  ++step_;
  active_ = parameters_out_ = true;
  parameters_.begin();
  first_serial_ = device_.next_serial();
  counters_.fill(0);
  sites_.reset();
  storage_index_.clear();
  first_version_.clear();
  report_ = {};
  for (std::size_t i = 0; i < offloads_.size(); ++i) offloads_[i].reloads_left = reloads_of_[i];
  run(AnchorKind::step_begin, 0, Side::before);
  run(AnchorKind::step_begin, 0, Side::after);
}

Result<StepReport> PlannedStep::State::end() {
  const std::lock_guard lock(mutex_);
  STOWAGE_ASSERT(active_);
  std::string missing;
  for (std::size_t kind = 0; kind < simulator::kAnchorKinds && report_.on_plan; ++kind) {
    const auto anchor = static_cast<AnchorKind>(kind);
    if (anchor == AnchorKind::step_begin || anchor == AnchorKind::step_end) continue;
    if (counters_[kind] == program_.count(anchor)) continue;
    missing = "the step ended after " + std::to_string(counters_[kind]) + " of " +
              std::to_string(program_.count(anchor)) + " " + simulator::name_of(anchor) + " events";
    report_.on_plan = false;
    report_.first_difference = missing;
  }
  if (report_.on_plan) {
    run(AnchorKind::step_end, 0, Side::before);
    run(AnchorKind::step_end, 0, Side::after);
  }
  report_.memory = device_.memory();
  finish(/*parameters_stay=*/report_.on_plan);
  if (!missing.empty() && options_.off_plan == OffPlan::refuse) {
    return Error{ErrorCode::bad_input, "the step is not the one the plan was made for: " + missing,
                 "", "", "record the model again and make a new plan"};
  }
  return report_;
}

void PlannedStep::State::abort() {
  const std::lock_guard lock(mutex_);
  // The device may be in another plan's step, whose stream it watches.
  if (active_) finish(/*parameters_stay=*/false);
}

void PlannedStep::State::finish(bool parameters_stay) {
  active_ = false;
  device_.end_step();
  device_.end_setup();  // a run from a trace that was saved records nothing
  drop_all();
  report_.unplanned_stored_bytes += parameters_stay ? parameters_.end() : parameters_.abort();
  parameters_out_ = false;
}

void PlannedStep::State::layer_event(LayerEvent event, std::string_view path) {
  const std::lock_guard lock(mutex_);
  if (event == LayerEvent::forward_begin) sites_.enter(path);
  const AnchorKind kind = anchor_kind(event);
  const std::size_t ordinal = counter(kind)++;
  if (report_.on_plan) {
    if (ordinal >= program_.count(kind)) {
      diverge(std::string(simulator::name_of(kind)) + " number " + std::to_string(ordinal) +
              " of layer " + std::string(path) + " was not recorded");
    } else {
      const LayerId expected = program_.layer(kind, ordinal);
      const std::string& name = trace_->string(trace_->layers.name[expected.index()]);
      if (name != path) {
        diverge(std::string(simulator::name_of(kind)) + " number " + std::to_string(ordinal) +
                " is of layer " + std::string(path) + ", recorded was " + name);
      }
    }
  }
  run(kind, ordinal, Side::before);
  run(kind, ordinal, Side::after);
  if (event == LayerEvent::forward_end) sites_.leave();
}

PlannedStep::State::Packed PlannedStep::State::begin_pack(const at::Tensor& tensor) {
  device_.check_stream();
  check_not_refused();
  const Site site = sites_.next_pack();
  Packed packed;
  packed.step = step_;
  packed.parameter = is_plain(tensor) ? parameters_.index_of(tensor) : -1;
  if (report_.on_plan) {
    if (const PackDifference difference = compare_pack(tensor, site);
        difference != PackDifference::none) {
      diverge(describe(difference, tensor, site));
    }
  }
  const std::size_t row = counter(AnchorKind::pack)++;
  if (!report_.on_plan) {
    // Outside the plan: what this step made leaves at once, so that the step does not grow.
    const bool can_leave = packed.parameter < 0 && is_plain(tensor) &&
                           device_.allocation_serial(tensor.storage().data()) >= first_serial_;
    packed.treatment = can_leave ? Treatment::host_copy : Treatment::keep;
    ++report_.off_plan_packs;
    return packed;
  }
  packed.saved = SavedId(row);
  run(AnchorKind::pack, row, Side::before);
  const OffloadId offload = schedule_.offload_of[row];
  if (offload.valid()) {
    packed.treatment = Treatment::planned;
    const simulator::Offload& plan = schedule_.offloads[offload.index()];
    if (plan.saved.front() == packed.saved) {
      OffloadState& state = offloads_[offload.index()];
      state.source = tensor.tensor_data();
      state.version = KeptTensor::version_of(tensor);
    }
  }
  return packed;
}

void PlannedStep::State::finish_pack(const Packed& packed) {
  if (packed.saved.valid()) run(AnchorKind::pack, packed.saved.index(), Side::after);
}

bool PlannedStep::State::begin_unpack(const Packed& packed) {
  if (!active_ || packed.step != step_) return false;
  device_.check_stream();
  check_not_refused();
  const std::size_t row = counter(AnchorKind::unpack)++;
  if (report_.on_plan) {
    if (row >= trace_->unpacks.size()) {
      diverge("unpack number " + std::to_string(row) +
              " was not recorded: a saved tensor is used once more than in the recorded step");
    } else if (trace_->unpacks.saved[row] != packed.saved) {
      const SavedId expected = trace_->unpacks.saved[row];
      diverge("unpack number " + std::to_string(row) + " is of " +
              trace_->string(trace_->saved.site[packed.saved.index()]) + ", recorded was " +
              trace_->string(trace_->saved.site[expected.index()]));
    }
  }
  run(AnchorKind::unpack, row, Side::before);
  return report_.on_plan;
}

void PlannedStep::State::finish_unpack(bool on_plan) {
  if (on_plan) run(AnchorKind::unpack, counter(AnchorKind::unpack) - 1, Side::after);
}

at::Tensor PlannedStep::State::load(const Packed& packed, const SavedView& view, bool on_plan) {
  TORCH_CHECK(packed.step == step_ && active_,
              "stowage: a saved tensor was asked for after its step; its host slot was given up");
  const OffloadId offload = schedule_.offload_of[packed.saved.index()];
  if (!on_plan) return load_off_plan(offload, view);
  const std::size_t row = counter(AnchorKind::unpack) - 1;
  const ReloadId reload = schedule_.reload_of[row];
  STOWAGE_ASSERT(reload.valid() && reloads_[reload.index()].buffer.defined());
  const at::Tensor& buffer = reloads_[reload.index()].buffer;
  // All views of the buffer count versions together, so that a backward that writes into what it
  // was handed is seen at the next use of the same bytes.
  check_not_written(buffer, 0);
  at::Tensor tensor = view.over(buffer.storage(), schedule_.offloads[offload.index()].begin);
  tensor.unsafeGetTensorImpl()->set_version_counter(
      buffer.unsafeGetTensorImpl()->version_counter());
  return tensor;
}

at::Tensor PlannedStep::State::load_off_plan(OffloadId id, const SavedView& view) {
  const simulator::Offload& plan = schedule_.offloads[id.index()];
  OffloadState& state = offloads_[id.index()];
  TORCH_CHECK(state.slot_valid,
              "stowage: a saved tensor is used outside the plan and its host slot was already "
              "given to another one; record the step as it now is and plan again");
  const at::Tensor buffer = device_.allocate_buffer(plan.bytes, kOffPlanTag);
  if (plan.bytes > 0) {
    const CopyTicket ticket =
        device_.copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), slot(id), plan.bytes);
    if (needed(Wait::load_off_plan)) device_.wait_blocking(ticket);
  }
  report_.reloaded_bytes += plan.bytes;
  return view.over(buffer.storage(), plan.begin);
}

void PlannedStep::State::check_not_refused() const {
  TORCH_CHECK(report_.on_plan || options_.off_plan != OffPlan::refuse,
              "stowage: the step is not the one the plan was made for: ", report_.first_difference);
}

void PlannedStep::State::diverge(const std::string& difference) {
  report_.on_plan = false;
  report_.first_difference = difference;
  check_not_refused();
  // What is under way ends here; what was offloaded is read back on demand.
  for (OffloadState& offload : offloads_) {
    if (!offload.source.defined()) continue;
    if (needed(Wait::leave_plan_offloads)) device_.wait(offload.ticket);
    check_not_written(offload.source, offload.version);
    offload.source.reset();
  }
  for (ReloadState& reload : reloads_) {
    if (needed(Wait::leave_plan_reloads)) device_.wait(reload.ticket);
    reload.buffer.reset();
  }
  parameters_.materialise();
}

void PlannedStep::State::run(AnchorKind kind, std::size_t ordinal, Side side) {
  if (!report_.on_plan) return;
  for (const simulator::Instruction& instruction : program_.at(kind, ordinal, side)) {
    execute(instruction);
  }
}

void PlannedStep::State::execute(const simulator::Instruction& instruction) {
  switch (instruction.action) {
    case Action::start_offload:
      return start_offload(instruction.offload);
    case Action::release:
      return release(instruction.offload);
    case Action::start_reload:
      return start_reload(instruction.reload);
    case Action::await:
      if (needed(Wait::await)) device_.wait(reloads_[instruction.reload.index()].ticket);
      return;
    case Action::drop:
      return drop(instruction.reload);
    case Action::start_load:
    case Action::await_load:
    case Action::start_store:
    case Action::evict:
      return parameters_.run(instruction, report_);
  }
}

std::byte* PlannedStep::State::slot(OffloadId id) const {
  return arena_.data() + schedule_.offloads[id.index()].host_offset;
}

void PlannedStep::State::start_offload(OffloadId id) {
  const simulator::Offload& plan = schedule_.offloads[id.index()];
  OffloadState& state = offloads_[id.index()];
  STOWAGE_ASSERT(state.source.defined());
  for (const OffloadId other : program_.overlapping(id))
    offloads_[other.index()].slot_valid = false;
  state.slot_valid = true;
  report_.offloaded_bytes += plan.bytes;
  if (plan.bytes == 0) return;
  TORCH_CHECK(plan.begin + plan.bytes <= static_cast<Bytes>(state.source.storage().nbytes()),
              "stowage: the storage of the tensor saved at ",
              trace_->string(trace_->saved.site[plan.saved.front().index()]),
              " was made smaller behind its saving: it has ", state.source.storage().nbytes(),
              " bytes, and ", plan.begin, " to ", plan.begin + plan.bytes, " are to be copied");
  const auto* const source = static_cast<const std::byte*>(state.source.storage().data());
  if (plan.copy_out == CopyMode::compute) {
    device_.copy_on_compute(slot(id), source + plan.begin, plan.bytes);
    return;
  }
  state.ticket = device_.copy_async(CopyLane::d2h, slot(id), source + plan.begin, plan.bytes);
  if (plan.copy_out == CopyMode::blocking && needed(Wait::blocking_offload)) {
    device_.wait_blocking(state.ticket);
  }
}

void PlannedStep::State::release(OffloadId id) {
  OffloadState& state = offloads_[id.index()];
  if (needed(Wait::release)) device_.wait(state.ticket);
  // Only a version that never changed proves that the copy read what was saved.
  check_not_written(state.source, state.version);
  state.source.reset();
}

void PlannedStep::State::start_reload(ReloadId id) {
  const simulator::Reload& plan = schedule_.reloads[id.index()];
  const simulator::Offload& offload = schedule_.offloads[plan.offload.index()];
  ReloadState& state = reloads_[id.index()];
  state.buffer = device_.allocate_buffer(offload.bytes, id.value);
  report_.reloaded_bytes += offload.bytes;
  if (offload.bytes == 0) return;
  void* const destination = state.buffer.mutable_data_ptr();
  if (options_.poison_device) device_.fill_on_compute(destination, kPoison, offload.bytes);
  if (plan.copy_in == CopyMode::compute) {
    device_.copy_on_compute(destination, slot(plan.offload), offload.bytes);
    return;
  }
  state.ticket = device_.copy_async(CopyLane::h2d, destination, slot(plan.offload), offload.bytes);
  if (plan.copy_in == CopyMode::blocking && needed(Wait::blocking_reload)) {
    device_.wait_blocking(state.ticket);
  }
}

void PlannedStep::State::drop(ReloadId id) {
  reloads_[id.index()].buffer.reset();
  const OffloadId offload = schedule_.reloads[id.index()].offload;
  OffloadState& state = offloads_[offload.index()];
  if (--state.reloads_left > 0) return;
  if (!options_.poison_host) return;
  // Compute has awaited its last reload, so nothing reads the slot after what compute does next.
  device_.fill_on_compute(slot(offload), kPoison, schedule_.offloads[offload.index()].bytes);
  state.slot_valid = false;
}

}  // namespace stowage::executor
