// ChainCall: a chain of single ops in a running step (docs/executor.md, "Recompute"). In forward it
// notes the arguments of its ops, as handles; the first time that backward asks for something that
// it makes again, the ops run on them once more, below autograd.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "executor/forward_state.h"
#include "executor/kept_tensor.h"
#include "executor/run_again.h"
#include "executor/saved_view.h"
#include "simulator/step/recomputed_step.h"
#include "traces/trace.h"

namespace stowage::executor {

struct ChainSpec {
  static constexpr std::int32_t kOlder = -1;  // than the step
  static constexpr std::int32_t kMade = -2;   // by an op of the chain ahead
  struct Op {
    std::string name;
    std::int32_t ordinal = 0;  // among the primitive ops of that name in forward
    // Of each tensor of the device among its arguments, in order: which input of the chain it is,
    // or kOlder, kMade.
    std::vector<std::int32_t> arguments;
  };
  struct GivenUp {
    SavedId saved;      // its row in forward
    std::string layer;  // its site
    std::int32_t call = 0;
    std::int32_t ordinal = 0;
    std::size_t op = 0;  // of the chain, behind which it is what it was when it was saved
  };
  std::string path;  // layer of the trigger's site
  std::vector<Op> ops;
  std::vector<std::int32_t> inputs;  // their numbers in the layer calls that hold them
  std::vector<GivenUp> given_up;
  std::vector<std::int32_t> unpacks;  // by row of given_up: how often backward asks for it
};
// `segments` of the step with these tables.
[[nodiscard]] std::vector<ChainSpec> chain_specs(
    const Trace& trace, const std::vector<simulator::SegmentRows>& segments);

class ChainCall final : public RunAgain {
 public:
  ChainCall(const ChainSpec& spec, c10::Device device);

  // In forward, around op number `op` of the chain. Neither throws: what goes wrong there is thrown
  // where it would run again.
  void op_begin(std::size_t op, const at::RecordFunction& function, SegmentHost& host);
  void op_end(std::size_t op, const at::RecordFunction& function, SegmentHost& host);
  // In forward: row `number` of given_up was saved.
  void give_up(std::int32_t number, const at::Tensor& tensor, std::int64_t serial);

 private:
  struct Argument {
    enum class Kind : std::uint8_t { older, input, made };
    Kind kind = Kind::older;
    std::size_t place = 0;      // in the stack
    std::int32_t in_list = -1;  // there
    bool is_defined = false;
    KeptTensor tensor;         // of older, if defined
    std::size_t input = 0;     // of input
    std::int64_t serial = -1;  // of made
    SavedView view;            // likewise
  };
  struct Op {
    std::optional<ForwardState> state;
    std::optional<c10::OperatorHandle> handle;
    std::vector<c10::IValue> stack;  // without tensors
    std::vector<Argument> arguments;
  };
  struct Made {
    std::size_t op = 0;
    std::size_t output = 0;
    std::int64_t version = 0;  // when an op of the chain last returned it
  };
  struct Seen {  // a tensor as it was then
    std::int64_t serial = -1;
    std::int64_t version = 0;
    SavedView view;
  };
  struct Input {
    std::unique_ptr<torch::autograd::SavedVariableHooks> hooks;
    Seen first;  // what the first op that reads it was given
  };

  void note(std::size_t op, const at::RecordFunction& function, SegmentHost& host);
  [[nodiscard]] Argument note(const at::Tensor& tensor, std::size_t& next, std::size_t op,
                              SegmentHost& host);
  void run(SegmentHost& host) override;
  [[nodiscard]] std::string what() const override {
    return "a chain of ops of layer " + spec_.path;
  }
  void run_op(std::size_t op, SegmentHost& host);
  [[nodiscard]] std::vector<c10::IValue> stack_of(std::size_t op, SegmentHost& host) const;
  [[nodiscard]] at::Tensor made(std::int64_t serial, const SavedView& view) const;
  void let_go(std::size_t op);

  const ChainSpec& spec_;
  c10::Device device_;
  std::vector<Op> ops_;
  std::vector<Input> inputs_;
  std::unordered_map<std::int64_t, Made> made_;  // by serial in forward
  std::vector<Seen> given_up_;
  std::exception_ptr failure_;
  // Of the run.
  std::vector<at::Tensor> tensors_;               // by input
  std::vector<std::vector<at::Tensor>> outputs_;  // by op
};

}  // namespace stowage::executor
