// SegmentCall: one call of a segment in a running step (docs/executor.md, "Recompute"). In forward
// its layers run and give up what they save; the first time that backward asks for some of it, they
// run again on the same inputs, and saved tensor number k of that run serves number k of the first.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/forward_state.h"
#include "executor/kept_tensor.h"
#include "executor/layer_fn.h"
#include "executor/site_tracker.h"
#include "executor/step_driver.h"
#include "simulator/step/recomputed_step.h"
#include "traces/trace.h"

namespace stowage::executor {

class SegmentCall;

// What a driver does for the segments of its step. It hears of their layers as of all others.
class SegmentHost {
 public:
  virtual ~SegmentHost() = default;
  // Hooks that hold what a segment is given, until it runs again.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make_input_hooks(
      std::int32_t input) = 0;
  // Around a run, in which layers have the numbers of SegmentCall::calls().
  virtual void begin_again(SegmentCall& call) = 0;
  virtual void layer_event(LayerEvent event, std::string_view path) = 0;
  [[nodiscard]] virtual std::vector<std::string_view> open_layers() = 0;  // innermost first
  virtual void end_again(SegmentCall& call) = 0;
};

// Which layer call begins a segment, and what of it runs again.
struct SegmentSpec {
  std::string path;
  std::int32_t call = 0;
  std::int32_t calls = 1;  // layers, one after the other
  // By saved tensor that runs again: how often backward asks for it. The run ends with the last.
  std::vector<std::int32_t> unpacks;
};
[[nodiscard]] std::vector<SegmentSpec> segment_specs(
    const Trace& trace, const std::vector<simulator::SegmentRows>& segments);

class SegmentCall : public std::enable_shared_from_this<SegmentCall> {
 public:
  SegmentCall(const SegmentSpec& spec, c10::Device device) : spec_(spec), state_(device) {}
  SegmentCall(const SegmentCall&) = delete;
  SegmentCall& operator=(const SegmentCall&) = delete;

  // In forward, in this order: what the first layer is given; for each layer its fn, which may run
  // again until the step ends, and the layers that it called; each saved tensor.
  void hold_inputs(SegmentHost& host, const std::vector<at::Tensor>& inputs);
  void add_layer(std::string_view path, const LayerFn& fn) {
    layers_.push_back({std::string(path), fn});
  }
  void set_calls(SiteTracker::Calls calls) { calls_ = std::move(calls); }
  [[nodiscard]] bool is_complete() const {
    return layers_.size() == static_cast<std::size_t>(spec_.calls);
  }
  std::int32_t next_pack() { return packs_++; }

  // In backward. Runs once, whichever thread asks first; the others wait. Holds no lock that
  // anything inside of the run would take.
  void run_again(SegmentHost& host);
  [[nodiscard]] const std::string& path() const { return spec_.path; }
  [[nodiscard]] const SiteTracker::Calls& calls() const { return calls_; }
  // Inside of the run: number of the next saved tensor; what it is, and its row in the step.
  std::int32_t next_again() { return again_++; }
  void keep(std::int32_t number, const at::Tensor& tensor, SavedId row);
  // Ends the run, by an exception of its own, if that was the last one that is needed.
  void stop_behind(std::int32_t number) const;
  // Behind the run: saved tensor `number`. Let go of when it was asked for as often as planned.
  // Throws c10::Error when the run did not save it.
  [[nodiscard]] at::Tensor take(std::int32_t number);
  [[nodiscard]] SavedId row(std::int32_t number) const;

 private:
  struct Slot {
    std::optional<KeptTensor> tensor;
    std::int32_t left = 0;
    SavedId row;
  };
  struct Input {
    std::unique_ptr<torch::autograd::SavedVariableHooks> hooks;  // null: an undefined tensor
    bool requires_grad = false;
  };
  struct Layer {
    std::string path;
    LayerFn fn;
  };
  void run(SegmentHost& host);
  [[nodiscard]] std::vector<at::Tensor> inputs_again();

  const SegmentSpec& spec_;
  const ForwardState state_;
  std::vector<Input> inputs_;
  std::vector<Layer> layers_;
  SiteTracker::Calls calls_;
  std::int32_t packs_ = 0;
  std::int32_t again_ = 0;
  std::vector<Slot> slots_;
  std::once_flag once_;
};

}  // namespace stowage::executor
