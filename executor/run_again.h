// RunAgain: something in a running step that computes saved tensors again when backward first asks
// for one of them (docs/executor.md, "Recompute"): layers (executor/segment_call.h) or ops
// (executor/chain_call.h).
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

#include "executor/kept_tensor.h"
#include "executor/run_ended.h"
#include "executor/site_tracker.h"
#include "executor/step_driver.h"
#include "traces/trace.h"

namespace stowage::executor {

class SegmentCall;

// What a driver does for what runs again in its step. It hears of layers as of all others.
class SegmentHost {
 public:
  virtual ~SegmentHost() = default;
  // Hooks that hold what a segment is given, until it runs again: input number `input` of the
  // innermost layer's call.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> make_input_hooks(
      std::int32_t input) = 0;
  // Around a run of layers, which have the numbers of SegmentCall::calls().
  virtual void begin_again(SegmentCall& call) = 0;
  virtual void layer_event(LayerEvent event, std::string_view path) = 0;
  // Behind the begin of each layer that the run itself calls: SegmentRuns::begin_inner().
  virtual void begin_inner(std::string_view path, const std::vector<at::Tensor>& inputs) = 0;
  [[nodiscard]] virtual std::vector<std::string_view> open_layers() = 0;  // innermost first
  virtual void end_again(SegmentCall& call) = 0;
  // Around a run of ops, whose trigger was saved in the layer `path`. Between them: what it made
  // again for `site`; the tensor's row in the step.
  virtual void begin_chain(std::string_view path) = 0;
  virtual SavedId pack_again(const at::Tensor& tensor, const Site& site) = 0;
  virtual void end_chain(std::string_view path) = 0;
  // One number for the tensor's storage, as the step's events count it; -1 = not the device's.
  [[nodiscard]] virtual std::int64_t serial_of(const at::Tensor& tensor) const = 0;
  // Throws c10::Error for memory of a parameter that is not on the device.
  virtual void check_present(const at::Tensor& tensor) = 0;
};

class RunAgain {
 public:
  virtual ~RunAgain() = default;
  RunAgain(const RunAgain&) = delete;
  RunAgain& operator=(const RunAgain&) = delete;

  // In backward. Runs once, whichever thread asks first; the others wait. Holds no lock that
  // anything inside of the run would take.
  void run_again(SegmentHost& host);
  // In forward: saved tensor `number`, which is given up.
  void note_given_up(std::int32_t number, const at::Tensor& tensor);
  // Inside of the run: what saved tensor `number` is, and its row in the step. Throws c10::Error
  // where it has another shape, strides or dtype than the one that was given up.
  void keep(std::int32_t number, const at::Tensor& tensor, SavedId row);
  // Behind keep(); may end the run by RunEnded.
  virtual void kept(std::int32_t /*number*/) const {}
  // Behind the run: saved tensor `number`. Let go of when it was asked for as often as planned.
  // Throws c10::Error when the run did not save it.
  [[nodiscard]] at::Tensor take(std::int32_t number);
  [[nodiscard]] SavedId row(std::int32_t number) const;

 protected:
  [[noreturn]] static void end_run();
  // `unpacks`, by saved tensor: how often backward asks for it.
  explicit RunAgain(const std::vector<std::int32_t>& unpacks);
  virtual void run(SegmentHost& host) = 0;
  // What runs again, for people: "layer blocks.3".
  [[nodiscard]] virtual std::string what() const = 0;
  [[nodiscard]] std::size_t count() const { return slots_.size(); }

 private:
  struct Form {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    at::ScalarType dtype;
    bool operator==(const Form&) const = default;
  };
  // None for tensors without strides.
  [[nodiscard]] static std::optional<Form> form_of(const at::Tensor& tensor);

  struct Slot {
    std::optional<Form> form;  // given up
    std::optional<KeptTensor> tensor;
    std::int32_t left = 0;
    SavedId row;
  };
  std::vector<Slot> slots_;
  std::once_flag once_;
};

}  // namespace stowage::executor
