#include "profiler/torch/recording_hooks.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include "executor/saved_view.h"
#include "profiler/torch/alias_with_release.h"
#include "profiler/torch/step_recorder.h"

namespace stowage::profiler {

namespace {

// Our own work inside a step: what it launches and how long it takes is not the step's.
class HookSpan {
 public:
  explicit HookSpan(RecorderLink& link) : link_(link) {
    link_.with([this](StepRecorder& recorder) { begin_ns_ = recorder.begin_hook_span(); });
  }
  ~HookSpan() {
    link_.with([this](StepRecorder& recorder) { recorder.end_hook_span(begin_ns_); });
  }
  HookSpan(const HookSpan&) = delete;
  HookSpan& operator=(const HookSpan&) = delete;

 private:
  RecorderLink& link_;
  std::int64_t begin_ns_ = 0;
};

}  // namespace

RecordingHooks::~RecordingHooks() {
  link_->with([this](StepRecorder& recorder) { recorder.record_hook_gone(saved_); });
}

void RecordingHooks::call_pack_hook(const at::Tensor& tensor) {
  const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
  bool leaves = false;
  executor::SegmentRuns::Pack pack;
  link_->with([&](StepRecorder& recorder) {
    pack = recorder.segment_pack(/*is_input=*/input_ >= 0);
    saved_ = recorder.record_pack(tensor, input_);
    if (input_ < 0 && pack.call == nullptr) pack = recorder.chain_pack(saved_, tensor);
    leaves = pack.call == nullptr && recorder.leaves(tensor);
    if (leaves) origin_ = recorder.origin_of(tensor);
  });
  if (pack.call != nullptr) {
    if (!pack.is_again) {
      pack.call->note_given_up(pack.number, tensor);
      given_up_ = std::move(pack);
      return;
    }
    pack.call->keep(pack.number, tensor, SavedId(static_cast<std::size_t>(saved_)));
    pack.call->kept(pack.number);
    return;
  }
  if (!leaves) {
    kept_ = executor::KeptTensor(tensor);
    return;
  }
  const HookSpan span(*link_);
  std::shared_ptr<const executor::HostPool::Slot> slot;
  link_->with([&](StepRecorder& recorder) { slot = recorder.copy_of(tensor); });
  if (slot != nullptr) {
    copy_.emplace(pool_.device(), std::move(slot), tensor);
  } else {
    copy_.emplace(pool_, tensor);
    link_->with([&](StepRecorder& recorder) { recorder.note_copy(tensor, copy_->slot()); });
  }
  origin_.begin += executor::SavedView::of(tensor).range.begin;
}

at::Tensor RecordingHooks::call_unpack_hook() {
  if (given_up_.call != nullptr) {
    StepRecorder* host = nullptr;  // lives as long as its step, which goes on
    link_->with([&](StepRecorder& recorder) { host = &recorder; });
    TORCH_CHECK(host != nullptr, "stowage: something would run again after its step");
    given_up_.call->run_again(*host);
    saved_ = given_up_.call->row(given_up_.number).value;
  }
  const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
  std::int64_t unpack = -1;
  bool observe = false;
  link_->with([&](StepRecorder& recorder) {
    unpack = recorder.record_unpack(saved_);
    observe = recorder.mode() == RecordMode::offload_all;
  });
  if (copy_) {
    const HookSpan span(*link_);
    at::Tensor loaded = copy_->load(unpack);
    link_->with([&](StepRecorder& recorder) { recorder.record_reload(loaded, origin_); });
    return loaded;
  }
  return handed_out(
      given_up_.call != nullptr ? given_up_.call->take(given_up_.number) : kept_.get(), unpack,
      observe);
}

at::Tensor RecordingHooks::handed_out(const at::Tensor& kept, std::int64_t unpack, bool observe) {
  if (!observe || !executor::is_plain(kept)) return kept;
  std::int32_t piece = -1;
  link_->with([&](StepRecorder& recorder) { piece = recorder.pin(kept); });
  return alias_with_release(kept, [link = link_, unpack, piece] {
    link->with([unpack, piece](StepRecorder& recorder) {
      recorder.unpin(piece);
      recorder.record_release(unpack);
    });
  });
}

}  // namespace stowage::profiler
