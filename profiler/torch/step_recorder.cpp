#include "profiler/torch/step_recorder.h"

#include <ATen/Parallel.h>
#include <ATen/core/function_schema.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "executor/dispatched_op.h"
#include "executor/kept_tensor.h"
#include "executor/optimizer.h"
#include "executor/saved_view.h"
#include "executor/unmade_state.h"

namespace stowage::profiler {

namespace {

template <class Clock>
std::int64_t time_of() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

// As the kernel and CUPTI number threads.
std::int64_t this_thread() {
  thread_local const auto number = static_cast<std::int64_t>(::syscall(SYS_gettid));
  return number;
}

UseMode use_mode(const std::optional<c10::FunctionSchema>& schema, std::size_t argument) {
  if (!schema || argument >= schema->arguments().size()) return UseMode::read;
  const c10::Argument& declared = schema->arguments()[argument];
  if (declared.alias_info() == nullptr) return UseMode::read;
  if (!declared.alias_info()->isWrite()) return UseMode::alias;
  return declared.is_out() ? UseMode::write : UseMode::in_place;
}

}  // namespace

StepRecorder::StepRecorder(executor::Device& device, RecordMode mode, const RecordOptions& options)
    : device_(device),
      mode_(mode),
      options_(options),
      segments_(options.again.segments, device.torch_device()),
      chains_(options.again.chains, device.torch_device()) {
  if (!options_.host_pool) options_.host_pool.emplace(device);
}

StepRecorder::~StepRecorder() {
  if (!recording_) return;
  try {
    device_.synchronize();
  } catch (const std::exception&) {
    // A device that failed for good has nothing left to wait for; the step's error was reported.
  }
  stop();
  static_cast<void>(device_.memory());  // waits for a listener's call that is under way
}

void StepRecorder::begin_step(RegisteredTensors registered) {
  STOWAGE_ASSERT(!recording_);
  pass_ = RawPass{};
  pass_.light = options_.light;
  pass_.hooked = !options_.light || mode_ == RecordMode::offload_all || !options_.again.empty();
  path_rows_.clear();
  open_ops_.clear();
  pending_writes_.clear();
  backwards_.clear();
  again_ops_.clear();
  boundaries_ = 0;
  segments_.begin();
  reloaded_.clear();
  noted_gradients_.clear();
  copies_.clear();
  paging_failure_ = nullptr;
  failure_.reset();
  registered_ = std::move(registered);
  sites_.reset();
  device_.synchronize();

  std::unordered_map<std::int64_t, RawStorage> classes;
  const auto add_class = [&](const at::Tensor& tensor, StorageClass storage_class,
                             std::int64_t parameter = -1) {
    const std::int64_t serial = serial_of(tensor);
    if (serial >= 0) classes.try_emplace(serial, RawStorage{serial, 0, storage_class, parameter});
  };
  for (const auto& parameter : registered_.parameters) {
    add_class(parameter.tensor, StorageClass::parameter);
    add_class(parameter.tensor.grad(), StorageClass::gradient, serial_of(parameter.tensor));
  }
  for (const auto& buffer : registered_.buffers) add_class(buffer.tensor, StorageClass::buffer);
  for (const auto& input : registered_.inputs) add_class(input.tensor, StorageClass::input);
  for (const auto& state : registered_.optimizer_state) {
    if (options_.pager == nullptr && executor::is_unmade(state.tensor)) continue;
    add_class(state.tensor, StorageClass::optimizer_state, parameter_of_state(state.name));
  }
  if (options_.pager != nullptr) options_.pager->rest();
  add_live_at_begin(classes);
  order_parameters();
  std::vector<at::Tensor> parameters;
  for (const auto& parameter : registered_.parameters) {
    if (serial_of(parameter.tensor) >= 0) parameters.push_back(parameter.tensor);
  }
  gradient_hooks_.install(parameters, [this](const at::Tensor& parameter) {
    const std::lock_guard lock(mutex_);
    add(RawKind::gradient_accumulated, serial_of(parameter));
    note_gradient(parameter);
  });

  ops_may_spread_ = device_.torch_device().is_cpu() && at::get_num_threads() > 1;
  first_serial_ = device_.next_serial();
  pass_.requested_at_begin = device_.memory().requested;
  // So that no op of the step pays for moving them.
  pass_.events.reserve(1 << 16);
  pass_.ops.reserve(1 << 14);
  device_.reset_peak();
  recording_ = true;
  link_ = std::make_shared<RecorderLink>(*this);
  device_.set_listener(this);
  installed_ = executor::InstalledDriver(*this);
  observer_ = std::make_unique<OpObserver>(*this, pass_.hooked);
  chains_.begin();  // behind it: it hears of an op first
  add(RawKind::step_begin, -1);
}

Result<RawPass> StepRecorder::end_step() {
  STOWAGE_ASSERT(recording_);
  device_.synchronize();
  stop();
  // Asking the allocator also waits for a listener's call that is under way there.
  pass_.peak_requested = device_.memory().peak_requested;
  pass_.step_ns = pass_.events.back().time_ns - pass_.events.front().time_ns;
  for (const auto& parameter : registered_.parameters) note_gradient(parameter.tensor);
  registered_ = {};
  if (failure_) return *failure_;
  return std::move(pass_);
}

void StepRecorder::note_gradient(const at::Tensor& parameter) {
  const std::int64_t serial = serial_of(parameter.grad());
  if (serial < first_serial_ || !noted_gradients_.insert(serial).second) return;
  pass_.gradients.push_back({serial, serial_of(parameter)});
}

void StepRecorder::add_live_at_begin(const std::unordered_map<std::int64_t, RawStorage>& classes) {
  std::vector<RawStorage>& live = pass_.live_at_begin;
  const StatePager* const pager = options_.pager;
  for (const auto& each : device_.live_allocations()) {
    if (pager == nullptr || !pager->is_buffer(each.serial)) {
      live.push_back({each.serial, each.bytes});
    }
  }
  if (pager != nullptr) {
    for (const RawStorage& piece : pager->pieces()) {
      if (piece.serial >= 0) live.push_back(piece);  // else its first update is to come
    }
    std::sort(live.begin(), live.end(),
              [](const RawStorage& a, const RawStorage& b) { return a.serial < b.serial; });
  }
  const std::vector<std::int64_t> workspaces = device_.workspace_serials();
  for (RawStorage& storage : live) {
    if (std::find(workspaces.begin(), workspaces.end(), storage.serial) != workspaces.end()) {
      storage.storage_class = StorageClass::workspace;
    }
    const auto known = classes.find(storage.serial);
    if (known == classes.end()) continue;
    storage.storage_class = known->second.storage_class;
    storage.parameter = known->second.parameter;
  }
}

std::int64_t StepRecorder::serial_of(const at::Tensor& tensor) const {
  if (!executor::is_plain(tensor)) return -1;
  if (options_.pager != nullptr) {
    if (const auto serial = options_.pager->serial_of(tensor)) return *serial;
  }
  return device_.allocation_serial(tensor.storage().data());
}

template <class Work>
void StepRecorder::page(Work&& work) {
  const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
  const std::int64_t begin = begin_hook_span();
  try {
    work(*options_.pager);
  } catch (...) {
    if (!paging_failure_) paging_failure_ = std::current_exception();
  }
  end_hook_span(begin);
}

std::int32_t StepRecorder::pin(const at::Tensor& tensor) {
  if (options_.pager == nullptr) return -1;
  std::int32_t piece = -1;
  page([&](StatePager& pager) { piece = pager.pin(tensor); });
  return piece;
}

void StepRecorder::unpin(std::int32_t piece) {
  if (piece >= 0) options_.pager->unpin(piece);
}

std::int64_t StepRecorder::parameter_of_state(const std::string& name) const {
  const executor::NamedTensor* const owner = executor::owner_of_state(name, registered_.parameters);
  return owner != nullptr ? serial_of(owner->tensor) : -1;
}

void StepRecorder::order_parameters() {
  std::unordered_map<std::int64_t, RawStorage> parameters;
  for (const RawStorage& each : pass_.live_at_begin) {
    if (each.storage_class == StorageClass::parameter) parameters.emplace(each.serial, each);
  }
  std::vector<RawStorage> order;  // as registered
  for (const auto& each : registered_.parameters) {
    const auto found = parameters.find(serial_of(each.tensor));
    if (found == parameters.end()) continue;
    order.push_back(found->second);
    parameters.erase(found);
  }
  STOWAGE_ASSERT(parameters.empty());
  std::size_t next = 0;
  for (RawStorage& each : pass_.live_at_begin) {
    if (each.storage_class == StorageClass::parameter) each = order[next++];
  }
}

void StepRecorder::stop() {
  link_->cut();
  {
    const std::lock_guard lock(mutex_);
    add(RawKind::step_end, -1);
    recording_ = false;
  }
  chains_.end();
  observer_.reset();
  installed_.remove();
  device_.set_listener(nullptr);
  gradient_hooks_.remove();
}

std::unique_ptr<torch::autograd::SavedVariableHooks> StepRecorder::make_hooks() {
  if (!pass_.hooked) return nullptr;
  return std::make_unique<RecordingHooks>(*options_.host_pool, link_);
}

std::vector<at::Tensor> StepRecorder::run_layer(std::string_view path, const LayerFn& fn,
                                                std::vector<at::Tensor> inputs) {
  return segments_.run_layer(*this, *this, sites_, path, fn, std::move(inputs),
                             [this](const std::vector<at::Tensor>& passed) { add_passed(passed); });
}

std::unique_ptr<torch::autograd::SavedVariableHooks> StepRecorder::make_input_hooks(
    std::int32_t input) {
  return std::make_unique<RecordingHooks>(*options_.host_pool, link_, input);
}

void StepRecorder::begin_again(executor::SegmentCall& call) {
  const std::lock_guard lock(mutex_);
  add(RawKind::recompute_begin, path_row(call.path()));
  segments_.begin_again(call);
  sites_.begin_again(call.calls());
  again_ops_.push_back(open_ops_.size());
}

std::vector<std::string_view> StepRecorder::open_layers() {
  const std::lock_guard lock(mutex_);
  return sites_.open_again();
}

void StepRecorder::end_again(executor::SegmentCall& call) {
  const std::lock_guard lock(mutex_);
  again_ops_.pop_back();
  sites_.end_again();
  segments_.end_again();
  add(RawKind::recompute_end, path_row(call.path()));
}

void StepRecorder::begin_chain(std::string_view path) {
  const std::lock_guard lock(mutex_);
  add(RawKind::recompute_begin, path_row(path));
  again_ops_.push_back(open_ops_.size());
}

SavedId StepRecorder::pack_again(const at::Tensor& tensor, const executor::Site& site) {
  const std::lock_guard lock(mutex_);
  return SavedId(static_cast<std::size_t>(add_pack(tensor, site)));
}

void StepRecorder::end_chain(std::string_view path) {
  const std::lock_guard lock(mutex_);
  again_ops_.pop_back();
  add(RawKind::recompute_end, path_row(path));
}

void StepRecorder::primitive_op_begin(const at::RecordFunction& op) {
  chains_.op_begin(op, *this);
}

void StepRecorder::primitive_op_end(const at::RecordFunction& op) {
  chains_.op_end(op, *this);
}

// At the boundary that was the last event.
void StepRecorder::add_passed(const std::vector<at::Tensor>& tensors) {
  const std::lock_guard lock(mutex_);
  if (!recording_ || options_.light || runs_again()) return;
  for (const at::Tensor& tensor : tensors) {
    RawPassed passed;
    passed.boundary = boundaries_ - 1;
    passed.is_defined = tensor.defined();
    if (passed.is_defined) {
      passed.view = view_of(tensor);
      passed.requires_grad = tensor.requires_grad();
    }
    pass_.passed.push_back(std::move(passed));
  }
}

void StepRecorder::layer_event(executor::LayerEvent event, std::string_view path) {
  const std::lock_guard lock(mutex_);
  const std::int32_t row = path_row(path);
  switch (event) {
    case executor::LayerEvent::forward_begin:
      ++boundaries_;
      sites_.enter(path);
      return add(RawKind::layer_forward_begin, row);
    case executor::LayerEvent::forward_end:
      ++boundaries_;
      add(RawKind::layer_forward_end, row);
      return sites_.leave();
    case executor::LayerEvent::backward_begin:
      return add(RawKind::layer_backward_begin, row);
    case executor::LayerEvent::backward_end:
      return add(RawKind::layer_backward_end, row);
  }
}

void StepRecorder::backward_begin() {
  chains_.backward_begin();
  const std::lock_guard lock(mutex_);
  sites_.backward_begin();
  backwards_.push_back(open_ops_.size());
  add(RawKind::backward_begin, -1);
}

void StepRecorder::backward_end() {
  chains_.backward_end();
  const std::lock_guard lock(mutex_);
  sites_.backward_end();
  if (!backwards_.empty()) backwards_.pop_back();
  add(RawKind::backward_end, -1);
}

void StepRecorder::parameter_update(executor::UpdateEvent event, const at::Tensor& parameter) {
  const std::int64_t serial = serial_of(parameter);
  if (serial < 0) return;  // not the device's
  const bool begins = event == executor::UpdateEvent::begin;
  if (options_.pager != nullptr) {
    page([&](StatePager& pager) { begins ? pager.begin_update(parameter) : pager.end_update(); });
  }
  add(event == executor::UpdateEvent::begin ? RawKind::parameter_update_begin
                                            : RawKind::parameter_update_end,
      serial);
}

void StepRecorder::on_alloc(const executor::AllocationEvent& event) {
  if (event.tag != executor::kStepAllocation) return;
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  pass_.events.push_back({RawKind::alloc, event.serial, now_ns(), event.requested, event.bytes});
}

void StepRecorder::on_free(const executor::AllocationEvent& event) {
  if (event.tag != executor::kStepAllocation) return record_release(event.tag);
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  pass_.events.push_back({RawKind::free, event.serial, now_ns(), event.requested, event.bytes});
}

void StepRecorder::op_begin(const at::RecordFunction& op, std::int64_t backward_sequence) {
  RawOp raw;
  raw.name = op.name();
  const auto thread = static_cast<std::int32_t>(op.threadId());
  raw.thread = thread;
  raw.sequence = op.seqNr();
  raw.backward_sequence = backward_sequence;
  if (options_.pager != nullptr && options_.pager->needs(op.inputs())) {
    page([&](StatePager& pager) { pager.use(op.inputs()); });
  }
  // RecordFunction swallows exceptions of a callback, so they are kept for end_step().
  const std::lock_guard lock(mutex_);
  if (!recording_) return;
  try {
    if (pass_.hooked) pending_writes_.op_begin(op);
    const bool is_in_primitive =
        std::any_of(open_ops_.begin() + static_cast<std::ptrdiff_t>(open_around()), open_ops_.end(),
                    [](const OpenOp& open) { return open.is_primitive; });
    raw.is_primitive = !is_in_primitive && !executor::is_composite(op);
    if ((is_outermost() || raw.is_primitive) && !options_.light) add_uses(op, raw);
  } catch (const std::exception& error) {
    fail({ErrorCode::internal, std::string("the recorder failed: ") + error.what(), "", "", ""});
  }
  // An op that calls backward waits for it; ops of other threads then lie within it.
  const bool beside_another = open_ops_.size() > outer_ops() && open_ops_.back().thread != thread;
  if (beside_another) {
    fail({ErrorCode::bad_input,
          std::string("two threads ran ops at once (") + op.name() + " began within " +
              pass_.ops[static_cast<std::size_t>(open_ops_.back().row)].name +
              " of another thread); such a step has no order that could be recorded",
          "", "",
          ops_may_spread_
              ? "an op that allocates on several threads at once has no bytes that could be "
                "predicted: run with --threads 1"
              : "keep the step's tensors on one device, and run forward and backward on one thread "
                "each"});
  }
  raw.parent = is_outermost() ? -1 : open_ops_.back().row;
  const auto row = static_cast<std::int32_t>(pass_.ops.size());
  open_ops_.push_back({row, thread, raw.is_primitive});
  pass_.ops.push_back(std::move(raw));
  add_thread();
  add_unlocked(RawKind::op_begin, row);
  if (options_.marker != nullptr) options_.marker->push(row);
}

void StepRecorder::op_end() {
  {
    const std::lock_guard lock(mutex_);
    if (open_ops_.empty()) return;  // an op that began before the recording
    if (options_.marker != nullptr) options_.marker->pop();
    const OpenOp op = open_ops_.back();
    open_ops_.pop_back();
    if (pass_.hooked) pending_writes_.op_end();
    if (recording_ && (is_outermost() || op.is_primitive)) add_unlocked(RawKind::op_end, op.row);
    if (options_.pager == nullptr || !open_ops_.empty()) return;
  }
  if (options_.pager->has_too_many()) page([](StatePager& pager) { pager.end_op(); });
}

std::int64_t StepRecorder::record_pack(const at::Tensor& tensor, std::int32_t input) {
  const std::lock_guard lock(mutex_);
  return add_pack(tensor, input < 0 ? sites_.next_pack() : sites_.input(input));
}

// Under the lock.
std::int64_t StepRecorder::add_pack(const at::Tensor& tensor, const executor::Site& site) {
  RawSaved saved;
  saved.layer = site.layer == "step" ? -1 : path_row(site.layer);
  saved.call = site.call;
  saved.ordinal = site.ordinal;
  saved.view = view_of(tensor);
  if (pending_writes_.may_write(tensor)) saved.view.serial = -1;
  saved.version = executor::KeptTensor::version_of(tensor);
  pass_.saved.push_back(std::move(saved));
  const auto row = static_cast<std::int64_t>(pass_.saved.size()) - 1;
  add(RawKind::pack, row);
  return row;
}

std::int64_t StepRecorder::record_unpack(std::int64_t saved) {
  const std::lock_guard lock(mutex_);
  if (!recording_) return -1;
  pass_.unpacks.push_back({static_cast<std::int32_t>(saved)});
  const auto row = static_cast<std::int64_t>(pass_.unpacks.size()) - 1;
  add(RawKind::unpack, row);
  return row;
}

void StepRecorder::record_release(std::int64_t unpack) {
  if (unpack >= 0) add(RawKind::released, unpack);
}

void StepRecorder::record_hook_gone(std::int64_t saved) {
  if (saved >= 0 && mode_ == RecordMode::offload_all) add(RawKind::hook_gone, saved);
}

void StepRecorder::record_reload(const at::Tensor& loaded, const SavedOrigin& origin) {
  const std::int64_t serial = device_.allocation_serial(loaded.storage().data());
  const std::lock_guard lock(mutex_);
  if (recording_ && serial >= 0) reloaded_[serial] = origin;
}

SavedOrigin StepRecorder::origin_of(const at::Tensor& tensor) const {
  const std::int64_t serial = serial_of(tensor);
  const std::lock_guard lock(mutex_);
  const auto found = reloaded_.find(serial);
  return found == reloaded_.end() ? SavedOrigin{serial, 0} : found->second;
}

bool StepRecorder::leaves(const at::Tensor& tensor) const {
  if (mode_ != RecordMode::offload_all || !executor::is_plain(tensor)) return false;
  if (serial_of(tensor) < first_serial_) return false;
  if (options_.kept_below > 0 && device_.memory().active < options_.kept_below) return false;
  const std::lock_guard lock(mutex_);
  return !pending_writes_.may_write(tensor);
}

StepRecorder::CopyKey StepRecorder::copy_key(const at::Tensor& tensor) const {
  const ByteRange range = executor::SavedView::of(tensor).range;
  return {device_.allocation_serial(tensor.storage().data()),
          executor::KeptTensor::version_of(tensor), range.begin, range.end};
}

std::shared_ptr<const executor::HostPool::Slot> StepRecorder::copy_of(
    const at::Tensor& tensor) const {
  const CopyKey key = copy_key(tensor);
  const std::lock_guard lock(mutex_);
  const auto found = copies_.find(key);
  return found == copies_.end() ? nullptr : found->second.lock();
}

void StepRecorder::note_copy(const at::Tensor& tensor,
                             const std::shared_ptr<const executor::HostPool::Slot>& slot) {
  const CopyKey key = copy_key(tensor);
  const std::lock_guard lock(mutex_);
  copies_[key] = slot;
}

std::int64_t StepRecorder::begin_hook_span() {
  if (options_.marker != nullptr) options_.marker->push(kExecutorId);
  return now_ns();
}

void StepRecorder::end_hook_span(std::int64_t begin_ns) {
  if (options_.marker != nullptr) options_.marker->pop();
  const std::lock_guard lock(mutex_);
  pass_.hook_spans.push_back({begin_ns, now_ns()});
}

std::int64_t StepRecorder::now_ns() const {
  return options_.light ? time_of<std::chrono::system_clock>()
                        : time_of<std::chrono::steady_clock>();
}

void StepRecorder::fail(Error error) {
  if (!failure_) failure_ = std::move(error);
}

void StepRecorder::add_thread() {
  const std::int64_t thread = this_thread();
  auto& threads = pass_.threads;
  if (std::find(threads.begin(), threads.end(), thread) == threads.end()) threads.push_back(thread);
}

void StepRecorder::add(RawKind kind, std::int64_t id) {
  const std::lock_guard lock(mutex_);
  if (recording_) add_unlocked(kind, id);
}

void StepRecorder::add_unlocked(RawKind kind, std::int64_t id) {
  pass_.events.push_back({kind, id, now_ns(), 0, 0});
}

std::int32_t StepRecorder::path_row(std::string_view path) {
  const auto [entry, is_new] = path_rows_.try_emplace(
      std::string(path), static_cast<std::int32_t>(pass_.layer_paths.size()));
  if (is_new) pass_.layer_paths.emplace_back(path);
  return entry->second;
}

RawView StepRecorder::view_of(const at::Tensor& tensor) const {
  RawView view;
  if (options_.light) return view;
  if (tensor.defined()) {
    view.dtype = executor::dtype_of(tensor.scalar_type());
    view.item_bytes = static_cast<Bytes>(tensor.itemsize());
  }
  if (!executor::is_plain(tensor)) return view;
  const SavedOrigin origin = origin_of(tensor);
  view.serial = origin.serial;
  view.shape = tensor.sizes().vec();
  view.strides = tensor.strides().vec();
  view.offset = tensor.storage_offset() + origin.begin / tensor.itemsize();
  return view;
}

void StepRecorder::add_uses(const at::RecordFunction& op, RawOp& raw) {
  const std::optional<c10::FunctionSchema> schema = op.operator_schema();
  const c10::ArrayRef<const c10::IValue> inputs = op.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const UseMode mode = use_mode(schema, i);
    const auto add_use = [&](const at::Tensor& tensor, std::int32_t) {
      if (!executor::is_plain(tensor)) return;
      RawView view = view_of(tensor);
      if (view.serial >= 0) raw.uses.push_back({std::move(view), mode});
    };
    executor::visit_tensors(inputs[i], add_use);
  }
}

}  // namespace stowage::profiler
