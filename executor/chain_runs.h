// ChainRuns: the chains of ops of a running step. Its driver hands it every primitive op of the
// forward; it knows which of them are of a chain, and which chain makes a saved tensor again.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "executor/chain_call.h"
#include "executor/op_watch.h"
#include "executor/segment_runs.h"

namespace stowage::executor {

class ChainRuns {
 public:
  ChainRuns(std::vector<ChainSpec> specs, c10::Device device);
  ChainRuns(const ChainRuns&) = delete;
  ChainRuns& operator=(const ChainRuns&) = delete;

  [[nodiscard]] bool empty() const { return specs_.empty(); }
  // A step begins, on the thread that will run its forward; nothing is left of the one before.
  void begin();
  // Around each backward; they may nest. Behind one forward may go on (micro-batches).
  void backward_begin() {
    if (backward_depth_++ == 0) watch_.reset();
  }
  void backward_end();
  // What the step's chains hold is let go of.
  void end();

  // Of primitive ops, on any thread.
  void op_begin(const at::RecordFunction& function, SegmentHost& host);
  void op_end(const at::RecordFunction& function, SegmentHost& host);

  // Who makes the saved tensor `row` of the step again; the tensor as it is in forward.
  [[nodiscard]] SegmentRuns::Pack give_up(SavedId row, const at::Tensor& tensor,
                                          std::int64_t serial);

 private:
  using OfChain = std::pair<std::size_t, std::size_t>;  // chain, its op; or its saved tensor
  struct Name {
    std::int32_t next = 0;
    std::map<std::int32_t, std::vector<OfChain>> ops;  // by ordinal
  };
  [[nodiscard]] bool hears() const {
    return std::this_thread::get_id() == forward_thread_ && watch_;
  }

  const std::vector<ChainSpec> specs_;
  c10::Device device_;
  std::map<std::string, Name, std::less<>> names_;
  std::map<SavedId, OfChain> given_up_;
  int backward_depth_ = 0;
  std::size_t op_count_ = 0;                       // of all chains
  std::size_t seen_ = 0;                           // of them, in this step
  std::vector<std::shared_ptr<ChainCall>> calls_;  // by chain
  std::vector<OfChain> open_;                      // what the running op is
  std::thread::id forward_thread_;
  std::optional<OpWatch> watch_;
};

}  // namespace stowage::executor
