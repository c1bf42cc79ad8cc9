// Ops of a recording: where each begins and ends, and which others it lies in.
#pragma once

#include <vector>

#include "traces/trace.h"

namespace stowage::simulator {

// Keeps nothing of the trace. Cost: O(trace).
class OpSpans {
 public:
  explicit OpSpans(const Trace& trace);

  [[nodiscard]] EventId begin(OpId op) const { return spans_[op.index()].begin; }
  // None: the recording does not say where it ends.
  [[nodiscard]] EventId end(OpId op) const { return spans_[op.index()].end; }
  // It says both, the begin ahead of the end.
  [[nodiscard]] bool is_known(OpId op) const { return begin(op).valid() && begin(op) < end(op); }
  // The op that it is or lies in, which lies in no other; none of none.
  [[nodiscard]] OpId outermost(OpId op) const {
    return op.valid() ? spans_[op.index()].outermost : op;
  }
  // The primitive op that it is or lies in; none: there is none.
  [[nodiscard]] OpId primitive(OpId op) const {
    return op.valid() ? spans_[op.index()].primitive : op;
  }

 private:
  struct Span {
    EventId begin{};
    EventId end{};
    OpId outermost{};
    OpId primitive{};
  };
  std::vector<Span> spans_;  // by op
};

}  // namespace stowage::simulator
