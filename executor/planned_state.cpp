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
                          PlannedParameters parameters, PlannedOptimizerState optimizer_state,
                          PlannedGradients gradients, Result<simulator::SkippedUpdate> skipped,
                          std::vector<SegmentSpec> segments, std::vector<ChainSpec> chains)
    : device_(device),
      host_pool_(device),
      trace_(std::move(trace)),
      schedule_(std::move(schedule)),
      options_(std::move(options)),
      arena_(std::move(arena)),
      older_(device),
      program_(*trace_, schedule_),
      skipped_(std::move(skipped)),
      segments_(std::move(segments), device.torch_device()),
      chains_(std::move(chains), device.torch_device()),
      cursor_(simulator::Step(*trace_), schedule_, program_),
      parameters_(std::move(parameters)),
      optimizer_state_(std::move(optimizer_state)),
      gradients_(std::move(gradients)),
      saved_(device_, *trace_, schedule_, arena_.data(), options_),
      update_of_(schedule_.tenants.size()),
      host_updates_(device) {
  for (const simulator::Tenant& tenant : schedule_.tenants) {
    if (tenant.kind != &simulator::kParameter || !tenant.is_updated_at_home) continue;
    updated_on_host_.insert(tenant.storage.value);
  }
  if (skipped_) skipping_program_.emplace(skipped_->step.trace(), skipped_->schedule);
  for (const simulator::Tenant& tenant : schedule_.tenants) {
    TenantHolder* holder = nullptr;
    if (tenant.kind == &simulator::kSavedTensor) holder = &saved_;
    if (tenant.kind == &simulator::kParameter) holder = &parameters_;
    if (tenant.kind == &simulator::kOptimizerState) holder = &optimizer_state_;
    if (tenant.kind == &simulator::kGradient) holder = &gradients_;
    STOWAGE_ASSERT(holder != nullptr);  // PlannedStep::create() has looked
    holders_.push_back(holder);
  }
}

void PlannedStep::State::drop_all() {
  if (needed(Wait::drop_all)) device_.synchronize();
  saved_.drop_all();
}

void PlannedStep::State::begin() {
  const TurnLine::Place place(line_, next_turn(), TurnLine::Failures::dropped);
  peaks_.begin();
  host_updates_.drop();
  static_cast<void>(host_updates_.take_busy_ns());
  drop_all();
  bool was_active = false;
  {
    const std::lock_guard lock(mutex_);
    was_active = std::exchange(active_, false);
  }
  gradient_hooks_.remove();
  if (was_active) device_.end_step();
  if (streamed_out_) {
    parameters_.abort();
    optimizer_state_.abort();
    gradients_.abort();
  }
  device_.begin_step();
  streamed_out_ = true;
  {
    const std::lock_guard lock(mutex_);
    ++step_;
    active_ = true;
    failed_ = false;
    cursor_.begin();
    segments_.begin();
    instructions_ = &program_;
  }
  has_left_ = false;
  parameters_.put_away();
  optimizer_state_.put_away();
  gradients_.put_away();
  // The step's driver is not installed yet.
  const StepMemoryGuard guard(memory_.get());
  if (memory_ != nullptr) {
    const Result<bool> came_back = memory_->begin_period();  // behind what goes away: its room
    if (!came_back) {
      const bool no_room = came_back.error().code == ErrorCode::condition;
      TORCH_CHECK_WITH(OutOfMemoryError, !no_room, "stowage: ", came_back.error().text());
      TORCH_CHECK(false, "stowage: ", came_back.error().text());
    }
    // What was made of the pages meanwhile is none of the step's.
    if (*came_back) peaks_.begin();
  }
  parameters_.begin();
  optimizer_state_.begin();
  gradients_.begin();
  first_serial_ = device_.next_serial();
  off_plan_packs_ = 0;
  report_ = {};
  saved_.begin();
  if (program_.hears_gradients()) {
    gradient_hooks_.install(parameters_.tensors(), [this](const at::Tensor& parameter) {
      gradient_accumulated(parameter);
    });
  }
  run(AnchorKind::step_begin, 0, Side::before);
  run(AnchorKind::step_begin, 0, Side::after);
  chains_.begin();
}

Result<StepReport> PlannedStep::State::end() {
  const TurnLine::Place place(line_, next_turn());
  bool was_on_plan = false;
  bool is_first = false;
  {
    const std::lock_guard lock(mutex_);
    STOWAGE_ASSERT(active_);
    is_first = step_ == 1;
    check_not_failed();
    was_on_plan = cursor_.on_plan();
    cursor_.end();
    report_.on_plan = cursor_.on_plan();
    report_.first_difference = cursor_.first_difference();
  }
  report_.off_plan_packs = off_plan_packs_;
  if (report_.on_plan) {
    const StepMemoryGuard guard(memory_.get());  // the driver is gone already
    reach(AnchorKind::step_end, 0);
    run(AnchorKind::step_end, 0, Side::before);
    run(AnchorKind::step_end, 0, Side::after);
  }
  host_updates_.wait_for_all();
  report_.host_update_ns = host_updates_.take_busy_ns();
  report_.memory = peaks_.memory();
  finish(/*streamed_stays=*/report_.on_plan);
  // What was freed behind take_memory(), of a recording or by a program that let go late, is
  // nobody's segments.
  if (is_first && memory_ != nullptr) device_.release_cache();
  if (was_on_plan && !report_.on_plan && options_.off_plan == OffPlan::refuse) {
    return Error{ErrorCode::bad_input,
                 "the step is not the one the plan was made for: " + report_.first_difference, "",
                 "", "record the model again and make a new plan"};
  }
  return report_;
}

void PlannedStep::State::abort() {
  const TurnLine::Place place(line_, next_turn(), TurnLine::Failures::dropped);
  bool is_active = false;
  {
    const std::lock_guard lock(mutex_);
    is_active = active_;
  }
  // The device may be in another plan's step, whose stream it watches.
  if (is_active) finish(/*streamed_stays=*/false);
}

void PlannedStep::State::finish(bool streamed_stays) {
  {
    const std::lock_guard lock(mutex_);
    active_ = false;
  }
  peaks_.end();
  if (memory_ != nullptr) memory_->end_period();
  gradient_hooks_.remove();
  chains_.end();
  device_.end_step();
  device_.end_setup();  // a run from a trace that was saved records nothing
  host_updates_.drop();
  drop_all();
  const auto end_or_abort = [&](StorageHolder& holder) {
    report_.unplanned_stored_bytes += streamed_stays ? holder.end() : holder.abort();
  };
  end_or_abort(parameters_);
  end_or_abort(optimizer_state_);
  end_or_abort(gradients_);
  streamed_out_ = false;
}

void PlannedStep::State::check_not_failed() const {
  TORCH_CHECK(!failed_, "stowage: the step has failed and can only be aborted");
}

void PlannedStep::State::check_not_refused() const {
  check_not_failed();
  TORCH_CHECK(
      cursor_.on_plan() || options_.off_plan != OffPlan::refuse,
      "stowage: the step is not the one the plan was made for: ", cursor_.first_difference());
}

void PlannedStep::State::check(const Claim& claim) const {
  if (claim.left_plan) check_not_refused();
}

// What is under way ends here; what left is read back on demand.
void PlannedStep::State::leave_plan() {
  has_left_ = true;
  if (memory_ != nullptr) memory_->end_period();
  saved_.leave_plan();
  parameters_.leave_plan();
  optimizer_state_.leave_plan();
  gradients_.leave_plan();
}

template <class Work>
void PlannedStep::State::in_turn(TurnLine::Turn turn, Work&& work) {
  try {
    const TurnLine::Place place(line_, turn);
    work();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    throw;
  }
}

template <class Next>
void PlannedStep::State::pass_anchor(AnchorKind kind, Next&& next) {
  Claim claim;
  TurnLine::Turn turn = 0;
  {
    const std::lock_guard lock(mutex_);
    check_not_failed();
    claim = next();
    check(claim);
    if (!claim.on_plan && !claim.left_plan) return;
    turn = line_.take();
  }
  in_turn(turn, [&] {
    if (claim.left_plan) return leave_plan();
    reach(kind, claim.ordinal);
    run(kind, claim.ordinal, Side::before);
    run(kind, claim.ordinal, Side::after);
  });
}

void PlannedStep::State::layer_event(LayerEvent event, std::string_view path) {
  const AnchorKind kind = anchor_kind(event);
  pass_anchor(kind, [&] { return cursor_.layer(kind, path); });
}

void PlannedStep::State::backward_event(bool begins) {
  begins ? chains_.backward_begin() : chains_.backward_end();
  const std::lock_guard lock(mutex_);
  begins ? cursor_.backward_begin() : cursor_.backward_end();
}

void PlannedStep::State::parameter_update(UpdateEvent event, const at::Tensor& parameter) {
  const AnchorKind kind = event == UpdateEvent::begin ? AnchorKind::parameter_update_begin
                                                      : AnchorKind::parameter_update_end;
  // Not the device's: no recording has its update.
  if (!is_plain(parameter) || parameters_.serial_of(parameter) < 0) return;
  {
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(!cursor_.on_plan() || instructions_ == &program_,
                "stowage: a parameter is updated in a step that skips its update");
  }
  if (event == UpdateEvent::begin) {
    const TurnLine::Place place(line_, next_turn());
    parameters_.note_update(parameter);
    optimizer_state_.note_update(parameter);
  }
  if (program_.count(kind) == 0) return;  // an optimizer that does not report its updates
  device_.check_stream();
  pass_anchor(kind, [&] { return claim_parameter(kind, parameter); });
}

void PlannedStep::State::skip_update() {
  const std::lock_guard lock(mutex_);
  TORCH_CHECK(active_, "stowage: an update can be skipped in a step only");
  check_not_refused();
  if (!cursor_.on_plan()) return;
  TORCH_CHECK(skipped_.ok(),
              "stowage: this step cannot skip its update: ", skipped_.error().text());
  const std::string why_not = cursor_.skip_update(*skipping_program_);
  TORCH_CHECK(why_not.empty(), "stowage: the update cannot be skipped: ", why_not);
  instructions_ = &*skipping_program_;
}

void PlannedStep::State::gradient_accumulated(const at::Tensor& parameter) {
  device_.check_stream();
  constexpr AnchorKind kKind = AnchorKind::gradient_accumulated;
  pass_anchor(kKind, [&] { return claim_parameter(kKind, parameter); });
}

PlannedStep::State::Claim PlannedStep::State::claim_parameter(AnchorKind kind,
                                                              const at::Tensor& parameter) {
  check_not_refused();
  const std::size_t ordinal = cursor_.next(kind);
  return cursor_.parameter(
      kind, ordinal < program_.count(kind)
                ? parameters_.update_difference(program_.parameter(kind, ordinal), parameter)
                : std::string());
}

PlannedStep::State::Packed PlannedStep::State::pack(const at::Tensor& tensor, std::int32_t input) {
  device_.check_stream();
  Packed packed;
  packed.on_device = is_of_device(tensor);
  std::int64_t serial = -1;
  bool can_leave = false;
  if (is_plain(tensor)) {
    packed.parameter = parameters_.index_of(tensor);
    serial = parameters_.serial_of(tensor);
    // Outside the plan what this step made leaves at once, so that the step does not grow.
    can_leave = packed.parameter < 0 && serial >= first_serial_;
    packed.serial = serial;
  }
  Claim claim;
  TurnLine::Turn turn = 0;
  {
    const std::lock_guard lock(mutex_);
    check_not_refused();
    packed.step = step_;
    packed.segment = segments_.pack(/*is_input=*/input >= 0);
    claim = cursor_.pack(tensor, serial, input);
    check(claim);
    turn = line_.take();
  }
  if (claim.on_plan && input < 0 && packed.segment.call == nullptr) {
    packed.segment = chains_.give_up(SavedId(claim.ordinal), tensor, serial);
  }
  if (claim.on_plan) packed.saved = SavedId(claim.ordinal);
  const TenantId tenant = claim.on_plan ? schedule_.tenant_of[claim.ordinal] : TenantId();
  if (tenant.valid()) packed.treatment = Packed::Treatment::planned;
  if (!claim.on_plan) {
    ++off_plan_packs_;
    if (can_leave) packed.treatment = Packed::Treatment::host_copy;
  }
  if (packed.segment.call != nullptr) packed.treatment = Packed::Treatment::given_up;
  if (packed.segment.call != nullptr && !packed.segment.is_again) {
    packed.segment.call->note_given_up(packed.segment.number, tensor);
  }
  if (!packed.on_device && claim.on_plan) {
    line_.post(turn, [this, row = claim.ordinal] {
      run(AnchorKind::pack, row, Side::before);
      run(AnchorKind::pack, row, Side::after);
    });
    if (packed.treatment != Packed::Treatment::given_up) packed.kept = KeptTensor(tensor);
    keep_again(packed, tensor);
    return packed;
  }
  in_turn(turn, [&] {
    if (claim.left_plan) leave_plan();
    parameters_.check_present(packed.parameter);
    if (claim.on_plan) reach(AnchorKind::pack, claim.ordinal);
    if (claim.on_plan) run(AnchorKind::pack, claim.ordinal, Side::before);
    // Left from inside of that: nobody would copy it out any more.
    if (claim.on_plan && has_left_ && packed.segment.call == nullptr) {
      packed.treatment = Packed::Treatment::keep;
    }
    switch (packed.treatment) {
      case Packed::Treatment::keep:
        packed.kept = KeptTensor(tensor);
        break;
      case Packed::Treatment::planned:
        packed.view = SavedView::of(tensor);
        if (schedule_.tenants[tenant.index()].saved.front() == packed.saved) {
          saved_.keep(tenant, tensor);
        }
        break;
      case Packed::Treatment::host_copy:
        packed.copy.emplace(host_pool_, tensor);
        break;
      case Packed::Treatment::given_up:
        break;
    }
    if (claim.on_plan) run(AnchorKind::pack, claim.ordinal, Side::after);
  });
  keep_again(packed, tensor);
  return packed;
}

void PlannedStep::State::keep_again(const Packed& packed, const at::Tensor& tensor) {
  const SegmentRuns::Pack& pack = packed.segment;
  if (pack.call == nullptr || !pack.is_again) return;
  pack.call->keep(pack.number, tensor, packed.saved);
  pack.call->kept(pack.number);
}

SavedId PlannedStep::State::pack_again(const at::Tensor& tensor, const Site& at) {
  Site site = at;
  const std::int64_t serial = parameters_.serial_of(tensor);
  Claim claim;
  TurnLine::Turn turn = 0;
  {
    const std::lock_guard lock(mutex_);
    check_not_refused();
    site.micro_batch = cursor_.sites().micro_batch();
    claim = cursor_.pack(tensor, serial, site);
    check(claim);
    if (!claim.on_plan && !claim.left_plan) return SavedId();
    turn = line_.take();
  }
  in_turn(turn, [&] {
    if (claim.left_plan) return leave_plan();
    reach(AnchorKind::pack, claim.ordinal);
    run(AnchorKind::pack, claim.ordinal, Side::before);
    run(AnchorKind::pack, claim.ordinal, Side::after);
  });
  return claim.on_plan ? SavedId(claim.ordinal) : SavedId();
}

at::Tensor PlannedStep::State::unpack(const Packed& packed) {
  const auto is_current = [&] { return active_ && packed.step == step_; };
  const bool is_given_up = packed.treatment == Packed::Treatment::given_up;
  bool current = false;
  {
    const std::lock_guard lock(mutex_);
    current = is_current();
  }
  // Of a graph that outlived its step, only what stayed is there.
  TORCH_CHECK(current || packed.treatment != Packed::Treatment::planned,
              "stowage: a saved tensor was asked for after its step; its host slot was given up");
  TORCH_CHECK(current || !is_given_up,
              "stowage: a saved tensor was asked for after its step, and what made it would have "
              "to run again for it");
  SavedId saved = packed.saved;
  if (is_given_up) {
    packed.segment.call->run_again(*this);
    saved = packed.segment.call->row(packed.segment.number);
  }
  if (current) device_.check_stream();
  Claim claim;
  TurnLine::Turn turn = 0;
  {
    const std::lock_guard lock(mutex_);
    if (current && is_current()) {
      check_not_refused();
      claim = cursor_.unpack(saved);
      check(claim);
    }
    turn = line_.take();
  }
  if (!packed.on_device && claim.on_plan) {
    line_.post(turn, [this, row = claim.ordinal] {
      run(AnchorKind::unpack, row, Side::before);
      run(AnchorKind::unpack, row, Side::after);
    });
    return is_given_up ? packed.segment.call->take(packed.segment.number) : packed.kept.get();
  }
  at::Tensor tensor;
  const auto work = [&] {
    if (claim.left_plan) leave_plan();
    if (claim.on_plan) reach(AnchorKind::unpack, claim.ordinal);
    if (claim.on_plan) run(AnchorKind::unpack, claim.ordinal, Side::before);
    switch (packed.treatment) {
      case Packed::Treatment::keep:
        parameters_.check_present(packed.parameter);
        tensor = packed.kept.get();
        break;
      case Packed::Treatment::planned:
        tensor = load(packed, claim);
        break;
      case Packed::Treatment::host_copy:
        tensor = packed.copy->load(kOffPlanTag);
        break;
      case Packed::Treatment::given_up:
        parameters_.check_present(packed.parameter);
        tensor = packed.segment.call->take(packed.segment.number);
        break;
    }
    if (claim.on_plan) run(AnchorKind::unpack, claim.ordinal, Side::after);
  };
  if (current) {
    in_turn(turn, work);
  } else {  // of another step: this one has not failed when that does
    const TurnLine::Place place(line_, turn);
    work();
  }
  return tensor;
}

std::vector<at::Tensor> PlannedStep::State::run_layer(PlannedStep& step, std::string_view path,
                                                      const LayerFn& fn,
                                                      std::vector<at::Tensor> inputs) {
  bool is_plain_layer = segments_.empty();
  {
    const std::lock_guard lock(mutex_);
    is_plain_layer = is_plain_layer || !cursor_.on_plan();
  }
  if (is_plain_layer) return step.StepDriver::run_layer(path, fn, std::move(inputs));
  return segments_.run_layer(step, *this, cursor_.sites(), path, fn, std::move(inputs));
}

void PlannedStep::State::begin_again(SegmentCall& call) {
  const std::lock_guard lock(mutex_);
  segments_.begin_again(call);
  cursor_.sites().begin_again(call.calls());
}

void PlannedStep::State::begin_inner(std::string_view path, const std::vector<at::Tensor>& inputs) {
  segments_.begin_inner(*this, cursor_.sites(), path, inputs);
}

std::vector<std::string_view> PlannedStep::State::open_layers() {
  const std::lock_guard lock(mutex_);
  return cursor_.sites().open_again();
}

void PlannedStep::State::end_again(SegmentCall&) {
  const std::lock_guard lock(mutex_);
  cursor_.sites().end_again();
  segments_.end_again();
}

at::Tensor PlannedStep::State::load(const Packed& packed, const Claim& claim) {
  if (!claim.on_plan || has_left_) {
    return saved_.load_off_plan(schedule_.tenant_of[packed.saved.index()], packed.view, report_);
  }
  const StayId stay = schedule_.stay_of[claim.ordinal];
  STOWAGE_ASSERT(stay.valid());
  at::Tensor tensor = saved_.view(stay, packed.view);
  if (!segments_.empty() || !chains_.empty()) {  // what a segment is given it may save
    const std::int64_t buffer = parameters_.serial_of(tensor);
    const std::lock_guard lock(mutex_);
    const TenantId tenant = schedule_.tenant_of[packed.saved.index()];
    cursor_.loaded(packed.saved, packed.serial, buffer, schedule_.tenants[tenant.index()].begin);
  }
  return tensor;
}

void PlannedStep::State::run(AnchorKind kind, std::size_t ordinal, Side side) {
  const StepProgram& program = *instructions_.load();
  for (const simulator::Instruction& instruction : program.at(kind, ordinal, side)) {
    if (has_left_) return;
    execute(instruction);
  }
}

void PlannedStep::State::reach(AnchorKind kind, std::size_t ordinal) {
  // A step that skips its update is another period behind that, of which its memory knows nothing.
  if (memory_ == nullptr || instructions_ != &program_) return;
  memory_->reach(program_.event(kind, ordinal));
}

bool PlannedStep::State::updates_elsewhere(const at::Tensor& parameter) const {
  if (updated_on_host_.empty()) return false;
  return updated_on_host_.contains(parameters_.row_of(parameter).value);
}

void PlannedStep::State::update_on_host(StayId gradient) {
  const PlannedGradients::AtHome home = gradients_.at_home(gradient);
  HostTensors tensors{parameters_.update_at_home(home.parameter), home.gradient,
                      optimizer_state_.at_home(home.parameter)};
  const std::uint64_t number = host_updates_.submit(
      home.store, [this, parameter = home.parameter, tensors = std::move(tensors)] {
        options_.update_on_host(parameter, tensors);
      });
  const StorageId row = parameters_.row_of(home.parameter);
  for (std::size_t t = 0; t < schedule_.tenants.size(); ++t) {
    const simulator::Tenant& tenant = schedule_.tenants[t];
    if (tenant.kind == &simulator::kParameter && tenant.storage == row) update_of_[t] = number;
  }
}

void PlannedStep::State::execute(const simulator::Instruction& instruction) {
  const StayId stay = instruction.stay;
  const TenantId tenant = schedule_.stays[stay.index()].tenant;
  TenantHolder& holder = *holders_[tenant.index()];
  switch (instruction.action) {
    case Action::update:
      return update_on_host(stay);
    case Action::load:
      host_updates_.wait(update_of_[tenant.index()]);
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
