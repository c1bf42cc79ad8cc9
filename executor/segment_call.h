// SegmentCall: one call of a segment in a running step (docs/executor.md, "Recompute"). In forward
// its layers run and give up what they save; the first time that backward asks for some of it, they
// run again on the same inputs, and saved tensor number k of that run serves number k of the first.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "executor/forward_state.h"
#include "executor/layer_fn.h"
#include "executor/run_again.h"
#include "executor/site_tracker.h"
#include "simulator/step/recomputed_step.h"
#include "traces/trace.h"

namespace stowage::executor {

// Which layer call begins a segment, and which saved tensors its run makes again.
struct SegmentSpec {
  std::string path;
  std::int32_t call = 0;
  std::int32_t calls = 1;  // layers, one after the other
  // By saved tensor that runs again: how often backward asks for it. The run ends with the last.
  std::vector<std::int32_t> unpacks;
};
[[nodiscard]] std::vector<SegmentSpec> segment_specs(
    const Trace& trace, const std::vector<simulator::SegmentRows>& segments);

class SegmentCall final : public RunAgain, public std::enable_shared_from_this<SegmentCall> {
 public:
  SegmentCall(const SegmentSpec& spec, c10::Device device)
      : RunAgain(spec.unpacks), spec_(spec), device_(device) {}

  // In forward, in this order: what the first layer is given, numbered from `first` on; for each
  // layer its fn, which may run again until the step ends, and the layers that it called; each
  // saved tensor. `outer`: the segment that it lies in, which gives the inputs up; it runs again
  // ahead of this one.
  void hold_inputs(SegmentHost& host, const std::vector<at::Tensor>& inputs, std::size_t first,
                   std::shared_ptr<SegmentCall> outer);
  void add_layer(std::string_view path, const LayerFn& fn) {
    layers_.push_back({std::string(path), fn, ForwardState(device_)});
  }
  void set_calls(SiteTracker::Calls calls) { calls_ = std::move(calls); }
  [[nodiscard]] bool is_complete() const {
    return layers_.size() == static_cast<std::size_t>(spec_.calls);
  }
  std::int32_t next_pack() { return packs_++; }

  [[nodiscard]] const SegmentSpec& spec() const { return spec_; }
  [[nodiscard]] const std::string& path() const { return spec_.path; }
  [[nodiscard]] const SiteTracker::Calls& calls() const { return calls_; }
  // Inside of the run: number of the next saved tensor.
  std::int32_t next_again() { return again_++; }
  // Ends the run if that was the last one that is needed.
  void kept(std::int32_t number) const override;

 private:
  struct Input {
    std::unique_ptr<torch::autograd::SavedVariableHooks> hooks;  // null: an undefined tensor
    bool requires_grad = false;
  };
  struct Layer {
    std::string path;
    LayerFn fn;
    ForwardState state;
  };
  void run(SegmentHost& host) override;
  [[nodiscard]] std::string what() const override { return "layer " + spec_.path; }
  [[nodiscard]] std::vector<at::Tensor> inputs_again();

  const SegmentSpec& spec_;
  c10::Device device_;
  std::shared_ptr<SegmentCall> outer_;  // null: nothing of it is given up
  std::vector<Input> inputs_;
  std::vector<Layer> layers_;
  SiteTracker::Calls calls_;
  std::int32_t packs_ = 0;
  std::int32_t again_ = 0;
};

}  // namespace stowage::executor
