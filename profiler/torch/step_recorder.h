// StepRecorder: writes down one step, as a StepDriver (layers, saved tensors, backward), as the
// device's AllocationListener and as an OpListener. Two modes, for the two observed passes of a
// recording: every saved tensor is kept, or every one that this step created leaves at once.
#pragma once

#include <array>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "executor/chain_runs.h"
#include "executor/device/device.h"
#include "executor/gradient_hooks.h"
#include "executor/host_pool.h"
#include "executor/model.h"
#include "executor/segment_runs.h"
#include "executor/site_tracker.h"
#include "executor/step_driver.h"
#include "profiler/assembly/raw_pass.h"
#include "profiler/torch/op_marker.h"
#include "profiler/torch/op_observer.h"
#include "profiler/torch/pending_writes.h"
#include "profiler/torch/recording_hooks.h"
#include "profiler/torch/state_pager.h"
#include "traces/result.h"

namespace stowage::profiler {

enum class RecordMode : std::uint8_t { keep, offload_all };

// What of a step runs without saving, and again in backward.
struct RunsAgain {
  std::vector<executor::SegmentSpec> segments{};
  std::vector<executor::ChainSpec> chains{};

  [[nodiscard]] bool empty() const { return segments.empty() && chains.empty(); }
};

struct RecordOptions {
  // Without uses and views, which cost the CPU time, and with times of CLOCK_REALTIME: for a step
  // whose times count and are joined with the GPU's. In mode keep also without hooks on saved
  // tensors (RawPass::hooked), where nothing runs again.
  bool light = false;
  OpMarker* marker = nullptr;  // is told which op runs; outlives the recorder
  // Where saved tensors leave to, so that steps can share it; none = memory of the recorder's own.
  std::optional<executor::HostPool> host_pool{};
  RunsAgain again{};
  // Has the model state of every step that is observed; outlives the recorder. Only with
  // RecordMode::offload_all.
  StatePager* pager = nullptr;
  // Of RecordMode::offload_all: a saved tensor leaves only where the device holds as much as that.
  Bytes kept_below = 0;
};

// Tensors whose class is known because somebody registered them. Gradients are found through the
// parameters.
struct RegisteredTensors {
  std::vector<executor::NamedTensor> parameters;
  std::vector<executor::NamedTensor> buffers;
  std::vector<executor::NamedTensor> inputs;
  std::vector<executor::NamedTensor> optimizer_state;  // "PARAMETER.WHAT": whose it is
};

class StepRecorder final : public executor::StepDriver,
                           public executor::SegmentHost,
                           public executor::AllocationListener,
                           public OpListener {
 public:
  // `device` outlives the recorder. Installs itself as driver and listener between begin_step()
  // and end_step().
  StepRecorder(executor::Device& device, RecordMode mode, const RecordOptions& options = {});
  StepRecorder(const StepRecorder&) = delete;
  StepRecorder& operator=(const StepRecorder&) = delete;
  // Ends a step that goes on; also after the device failed.
  ~StepRecorder() override;

  // `registered` is looked at now (what exists) and again at the end (new gradients).
  void begin_step(RegisteredTensors registered);
  // The finished pass; what comes later (a graph that outlives its step) is not recorded.
  // Autograd's threads are done by then (executor/saved_tensor_engine.h). Errors, since
  // RecordFunction would swallow an exception of an observer: one was thrown there, or ops of two
  // threads ran at once (a graph over the CPU and a GPU does that, and fused attention's backward
  // on a CPU with several intra-op threads), which have no program order.
  Result<RawPass> end_step();

  // executor::StepDriver
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override;
  std::vector<at::Tensor> run_layer(std::string_view path, const LayerFn& fn,
                                    std::vector<at::Tensor> inputs) override;
  void layer_event(executor::LayerEvent event, std::string_view path) override;
  void backward_begin() override;
  void backward_end() override;
  void parameter_update(executor::UpdateEvent event, const at::Tensor& parameter) override;
  // executor::SegmentHost
  std::unique_ptr<torch::autograd::SavedVariableHooks> make_input_hooks(
      std::int32_t input) override;
  void begin_again(executor::SegmentCall& call) override;
  void begin_inner(std::string_view path, const std::vector<at::Tensor>& inputs) override {
    segments_.begin_inner(*this, sites_, path, inputs);
  }
  [[nodiscard]] std::vector<std::string_view> open_layers() override;
  void end_again(executor::SegmentCall& call) override;
  void begin_chain(std::string_view path) override;
  SavedId pack_again(const at::Tensor& tensor, const executor::Site& site) override;
  void end_chain(std::string_view path) override;
  // Serial of the tensor's storage, -1 = not the device's memory.
  [[nodiscard]] std::int64_t serial_of(const at::Tensor& tensor) const override;
  void check_present(const at::Tensor&) override {}  // nothing streams
  // executor::StepDriver, for chains
  void primitive_op_begin(const at::RecordFunction& op) override;
  void primitive_op_end(const at::RecordFunction& op) override;
  // executor::AllocationListener
  void on_alloc(const executor::AllocationEvent& event) override;
  void on_free(const executor::AllocationEvent& event) override;
  // OpListener
  void op_begin(const at::RecordFunction& op, std::int64_t backward_sequence) override;
  void op_end() override;

  // Why the pager could not bring what an op needs, if so: observers swallow exceptions.
  [[nodiscard]] std::exception_ptr paging_failure() const { return paging_failure_; }

  // For RecordingHooks, through their link.
  [[nodiscard]] RecordMode mode() const { return mode_; }
  // The row of saved, and likewise. `input` >= 0: of a segment.
  std::int64_t record_pack(const at::Tensor& tensor, std::int32_t input);
  // The segment that is running now saves something: SegmentRuns::pack().
  [[nodiscard]] executor::SegmentRuns::Pack segment_pack(bool is_input) {
    return segments_.pack(is_input);
  }
  // Likewise a chain of ops, of a row of saved.
  [[nodiscard]] executor::SegmentRuns::Pack chain_pack(std::int64_t row, const at::Tensor& tensor) {
    return chains_.give_up(SavedId(static_cast<std::size_t>(row)), tensor, serial_of(tensor));
  }
  std::int64_t record_unpack(std::int64_t saved);
  void record_release(std::int64_t unpack);
  void record_hook_gone(std::int64_t saved);
  void record_reload(const at::Tensor& loaded, const SavedOrigin& origin);
  // Whether this saved tensor leaves at once, and where its bytes came from.
  [[nodiscard]] bool leaves(const at::Tensor& tensor) const;
  [[nodiscard]] SavedOrigin origin_of(const at::Tensor& tensor) const;
  // Where the bytes of a tensor that leaves lie already, because another saved tensor had them;
  // null: nowhere. note_copy() says that they lie there now.
  [[nodiscard]] std::shared_ptr<const executor::HostPool::Slot> copy_of(
      const at::Tensor& tensor) const;
  void note_copy(const at::Tensor& tensor,
                 const std::shared_ptr<const executor::HostPool::Slot>& slot);
  // What is in a pager's hands stays there until unpin(); -1 = it is in none's.
  [[nodiscard]] std::int32_t pin(const at::Tensor& tensor);
  void unpin(std::int32_t piece);
  // Around the recorder's own work on the device.
  [[nodiscard]] std::int64_t begin_hook_span();
  void end_hook_span(std::int64_t begin_ns);

 private:
  struct OpenOp {
    std::int32_t row;
    std::int32_t thread;
    bool is_primitive;
  };

  // What a range of bytes of the device is: its allocation, how often it was written, first byte
  // and end.
  using CopyKey = std::array<std::int64_t, 4>;
  [[nodiscard]] CopyKey copy_key(const at::Tensor& tensor) const;

  // Rows of parameters in the order in which they were registered, which an executor relies on.
  void order_parameters();
  void add_live_at_begin(const std::unordered_map<std::int64_t, RawStorage>& classes);
  // What the pager does is none of the step's.
  template <class Work>
  void page(Work&& work);
  // That its gradient is one, if the step made it; one that an update uses up is gone at the end.
  void note_gradient(const at::Tensor& parameter);
  // Of a state named "PARAMETER.WHAT": the parameter's.
  [[nodiscard]] std::int64_t parameter_of_state(const std::string& name) const;
  std::int64_t add_pack(const at::Tensor& tensor, const executor::Site& site);
  // Takes the recorder off whatever it was installed on.
  void stop();
  void fail(Error error);  // the first one stays; under the lock
  [[nodiscard]] std::int64_t now_ns() const;
  void add(RawKind kind, std::int64_t id);           // nothing outside of a step
  void add_unlocked(RawKind kind, std::int64_t id);  // under the lock, inside a step
  void add_thread();                                 // the calling one; under the lock
  std::int32_t path_row(std::string_view path);
  void add_passed(const std::vector<at::Tensor>& tensors);
  // Ops that were open when the innermost backward began, which runs inside of them.
  [[nodiscard]] std::size_t outer_ops() const { return backwards_.empty() ? 0 : backwards_.back(); }
  [[nodiscard]] bool runs_again() const { return !again_ops_.empty(); }
  // Ops around the segment that runs again, 0 without one.
  [[nodiscard]] std::size_t open_around() const { return runs_again() ? again_ops_.back() : 0; }
  [[nodiscard]] bool is_outermost() const { return open_ops_.size() == open_around(); }
  RawView view_of(const at::Tensor& tensor) const;
  void add_uses(const at::RecordFunction& op, RawOp& raw);

  executor::Device& device_;
  RecordMode mode_;
  RecordOptions options_;
  RawPass pass_;
  RegisteredTensors registered_;
  executor::SiteTracker sites_;
  std::unordered_map<std::string, std::int32_t> path_rows_;
  // On a CPU with several intra-op threads some ops call others on all of them.
  bool ops_may_spread_ = false;
  std::vector<OpenOp> open_ops_;        // of one thread, but for a backward inside an op
  std::vector<std::size_t> backwards_;  // that run: how many ops were open when each began
  std::vector<std::size_t> again_ops_;  // segments that run again: how many ops were open
  std::int64_t boundaries_ = 0;         // layers that began or ended in forward
  executor::SegmentRuns segments_;
  executor::ChainRuns chains_;
  PendingWrites pending_writes_;
  std::unordered_map<std::int64_t, SavedOrigin>
      reloaded_;  // by allocation serial of what came back
  std::map<CopyKey, std::weak_ptr<const executor::HostPool::Slot>> copies_;
  executor::GradientHooks gradient_hooks_;
  std::unordered_set<std::int64_t> noted_gradients_;  // serials
  std::exception_ptr paging_failure_;
  std::int64_t first_serial_ = 0;
  bool recording_ = false;
  std::optional<Error> failure_;
  executor::InstalledDriver installed_;
  std::unique_ptr<OpObserver> observer_;
  // On a GPU backward runs on autograd's own thread. Guards what a running step writes; recursive,
  // since observers call each other. Under it nothing calls the device but allocation_serial(): a
  // GPU's allocator calls on_alloc() and on_free() with its own lock held.
  mutable std::recursive_mutex mutex_;
  std::shared_ptr<RecorderLink> link_;  // of the running step
};

}  // namespace stowage::profiler
