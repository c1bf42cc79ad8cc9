// The hooks of one saved tensor while a step is recorded, and their way to the recorder. Hooks die
// with the graph that they belong to, on any thread and at any time; the recorder hears of them as
// long as its step lasts.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/device/device.h"
#include "executor/host_copy.h"
#include "executor/kept_tensor.h"
#include "executor/segment_runs.h"
#include "traces/units.h"

namespace stowage::profiler {

class StepRecorder;

// One step's connection to its recorder, shared by everybody who may outlive that step. Its lock is
// taken before the recorder's own and never under it, nor under the allocator's.
class RecorderLink {
 public:
  explicit RecorderLink(StepRecorder& recorder) : recorder_(&recorder) {}
  RecorderLink(const RecorderLink&) = delete;
  RecorderLink& operator=(const RecorderLink&) = delete;

  // Returns when no call of with() is under way; later ones do nothing.
  void cut() {
    const std::lock_guard lock(mutex_);
    recorder_ = nullptr;
  }
  // Calls call(recorder) unless the link is cut. `call` must not come back to the link.
  template <class Call>
  void with(Call&& call) {
    const std::lock_guard lock(mutex_);
    if (recorder_ != nullptr) std::forward<Call>(call)(*recorder_);
  }

 private:
  std::mutex mutex_;
  StepRecorder* recorder_;
};

// Where bytes of this step's saved tensors came from: a tensor that came back from the host is the
// one that left, to whoever saves or uses it (backward of backward does).
struct SavedOrigin {
  std::int64_t serial = -1;
  Bytes begin = 0;  // of that storage
};

// Keeps the tensor, or copies it out into the pool when the recorder says so. When the step is over
// they still give it back. The pool's device outlives them.
class RecordingHooks final : public torch::autograd::SavedVariableHooks {
 public:
  // `input` >= 0: of what a segment is given.
  RecordingHooks(executor::HostPool pool, std::shared_ptr<RecorderLink> link,
                 std::int32_t input = -1)
      : pool_(std::move(pool)), link_(std::move(link)), input_(input) {}
  ~RecordingHooks() override;
  RecordingHooks(const RecordingHooks&) = delete;
  RecordingHooks& operator=(const RecordingHooks&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override;
  at::Tensor call_unpack_hook() override;

 private:
  [[nodiscard]] at::Tensor handed_out(const at::Tensor& tensor, std::int64_t unpack, bool observe);

  executor::HostPool pool_;
  std::shared_ptr<RecorderLink> link_;
  std::int32_t input_;
  executor::SegmentRuns::Pack given_up_;  // by what runs again
  std::int64_t saved_ = -1;
  executor::KeptTensor kept_;
  std::optional<executor::HostCopy> copy_;
  SavedOrigin origin_;  // of the copy's first byte
};

}  // namespace stowage::profiler
