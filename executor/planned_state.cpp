#include "executor/planned_state.h"

#include <c10/util/Exception.h>

#include <cstddef>
#include <utility>

#include "executor/device/needed_wait.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::executor {

using simulator::Action;
using simulator::AnchorKind;
using simulator::Side;

namespace {

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
      saved_(device_, *trace_, schedule_, arena_.data(), options_) {
  for (const simulator::Tenant& tenant : schedule_.tenants) {
    TenantHolder* holder = nullptr;
    if (tenant.kind == &simulator::kSavedTensor) holder = &saved_;
    if (tenant.kind == &simulator::kParameter) holder = &parameters_;
    STOWAGE_ASSERT(holder != nullptr);  // PlannedStep::create() has looked
    holders_.push_back(holder);
  }
}

void PlannedStep::State::drop_all() {
  if (needed(Wait::drop_all)) device_.synchronize();
  saved_.drop_all();
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
  saved_.begin();
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
  const TenantId tenant = schedule_.tenant_of[row];
  if (tenant.valid()) {
    packed.treatment = Treatment::planned;
    if (schedule_.tenants[tenant.index()].saved.front() == packed.saved) {
      saved_.keep(tenant, tensor);
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
  if (!on_plan) {
    return saved_.load_off_plan(schedule_.tenant_of[packed.saved.index()], view, report_);
  }
  const StayId stay = schedule_.stay_of[counter(AnchorKind::unpack) - 1];
  STOWAGE_ASSERT(stay.valid());
  return saved_.view(stay, view);
}

void PlannedStep::State::check_not_refused() const {
  TORCH_CHECK(report_.on_plan || options_.off_plan != OffPlan::refuse,
              "stowage: the step is not the one the plan was made for: ", report_.first_difference);
}

void PlannedStep::State::diverge(const std::string& difference) {
  report_.on_plan = false;
  report_.first_difference = difference;
  check_not_refused();
  // What is under way ends here; what left is read back on demand.
  saved_.leave_plan();
  parameters_.leave_plan();
}

void PlannedStep::State::run(AnchorKind kind, std::size_t ordinal, Side side) {
  if (!report_.on_plan) return;
  for (const simulator::Instruction& instruction : program_.at(kind, ordinal, side)) {
    execute(instruction);
  }
}

void PlannedStep::State::execute(const simulator::Instruction& instruction) {
  const StayId stay = instruction.stay;
  TenantHolder& holder = *holders_[schedule_.stays[stay.index()].tenant.index()];
  switch (instruction.action) {
    case Action::load:
      return holder.load(stay, report_);
    case Action::await:
      return holder.await(stay);
    case Action::store:
      return holder.store(stay, report_);
    case Action::evict:
      return holder.evict(stay, report_);
  }
}

}  // namespace stowage::executor
