// SiteTracker: where in the step the program is, so that every saved tensor gets its stable name
// (site) and is known again: pass, micro-batch, layer call, ordinal. Counts a layer's calls and the
// packs inside each call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/step/step.h"

namespace stowage::executor {

// One saved tensor's place: pack number `ordinal` inside call number `call` of the innermost layer.
struct Site {
  std::string_view layer;  // valid until the tracker's next reset()
  std::int32_t call = 0;
  std::int32_t ordinal = 0;
  simulator::Pass pass = simulator::Pass::forward;  // or backward, recompute
  std::int32_t micro_batch = 0;                     // see SiteTracker::enter()
};

class SiteTracker {
 public:
  // Begins a step. Outside any layer the path is "step".
  void reset();
  // Allocates at a path's first call only. The first layer behind a backward begins the next
  // micro-batch; calls are counted through all of them.
  void enter(std::string_view path);
  // Leaves the innermost layer. A layer left by an exception is dropped by the next reset().
  void leave();
  // Around each call of the autograd engine; they may nest.
  void backward_begin() { ++backward_depth_; }
  void backward_end();
  // The site of the next pack; counts it.
  Site next_pack();
  // Of input number `input` of the innermost layer's call, which is a segment's.
  [[nodiscard]] Site input(std::int32_t input) const;

  // Calls of layers in order.
  struct Call {
    std::string_view path;  // valid until the next reset()
    std::int32_t call = 0;
  };
  using Calls = std::vector<Call>;
  // Which number the next call of a layer has.
  [[nodiscard]] std::int32_t next_call(std::string_view path) const;
  // Writes calls down from here on, until they are taken. May nest: the last ones are taken first.
  void note_calls() { noted_.emplace_back(); }
  [[nodiscard]] Calls take_noted_calls();
  // Layers that run again have the call numbers that they had; they may nest. `calls` outlives it.
  void begin_again(const Calls& calls);
  // Layers that are open since, the innermost first; valid until the next reset().
  [[nodiscard]] std::vector<std::string_view> open_again() const;
  // None of them is open any more.
  void end_again();
  [[nodiscard]] std::int32_t micro_batch() const { return micro_batch_; }
  [[nodiscard]] std::string_view innermost() const { return frames_.back().path; }
  // The number of that layer's call.
  [[nodiscard]] std::int32_t innermost_call() const { return frames_.back().call; }

 private:
  [[nodiscard]] simulator::Pass pass() const;
  struct Frame {
    std::string_view path;
    std::int32_t call = 0;
    std::int32_t packs = 0;
  };
  // Lets a view be looked up without a copy.
  struct PathHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // Keys own the paths of the frames.
  std::unordered_map<std::string, std::int32_t, PathHash, std::equal_to<>> calls_;
  std::vector<Frame> frames_;
  struct Again {
    const Calls* calls = nullptr;
    std::size_t next = 0;
    std::size_t frames = 0;  // open when it began
  };
  std::vector<Again> again_;
  std::vector<Calls> noted_;
  std::int32_t backward_depth_ = 0;
  std::int32_t micro_batch_ = 0;
  bool is_behind_backward_ = false;
};

}  // namespace stowage::executor
