// SegmentRuns: the segments of a running step. Its driver hands it every layer call; it knows which
// of them begin or go on with a segment, and which segment saves something. Segments may lie within
// each other; what a layer saves is the innermost one's, and what that is given is of the one
// around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/segment_call.h"
#include "executor/site_tracker.h"
#include "executor/step_driver.h"

namespace stowage::executor {

class SegmentRuns {
 public:
  // Those that begin with the same layer call: outer ones ahead of inner ones.
  SegmentRuns(std::vector<SegmentSpec> specs, c10::Device device);
  SegmentRuns(const SegmentRuns&) = delete;
  SegmentRuns& operator=(const SegmentRuns&) = delete;

  [[nodiscard]] bool empty() const { return specs_.empty(); }
  // A step begins; nothing is left of the one before.
  void begin();

  // A saved tensor of a segment: number `number` of its forward, or of the run that is going on.
  struct Pack {
    std::shared_ptr<RunAgain> call;  // null: of no segment
    std::int32_t number = 0;
    bool is_again = false;
  };
  // Of the next one; counts it. `is_input`: it is what a segment or a chain of ops is given; what
  // chains are given is of no segment.
  [[nodiscard]] Pack pack(bool is_input);

  // What a driver's run_layer() does. `passed`, which may be empty, sees what the layer is given
  // and what it returns, behind its events.
  using Passed = std::function<void(const std::vector<at::Tensor>&)>;
  std::vector<at::Tensor> run_layer(StepDriver& driver, SegmentHost& host, SiteTracker& sites,
                                    std::string_view path, const LayerFn& fn,
                                    std::vector<at::Tensor> inputs, const Passed& passed = {});
  // Around a run of a segment, by its host.
  void begin_again(SegmentCall& call) { again_.push_back(call.shared_from_this()); }
  void end_again() { again_.pop_back(); }
  // Inside of the run, behind the layer's begin: segments that begin with it in forward are given
  // `inputs`.
  void begin_inner(SegmentHost& host, const SiteTracker& sites, std::string_view path,
                   const std::vector<at::Tensor>& inputs);

 private:
  // In forward.
  struct Open {
    std::shared_ptr<SegmentCall> call;
    bool is_in_layer = false;  // of it
  };
  using Rows = std::vector<std::size_t>;  // of specs_
  [[nodiscard]] const Rows& beginning_at(std::string_view path, std::int32_t call) const;
  void hold_inputs(SegmentHost& host, const std::vector<std::shared_ptr<SegmentCall>>& calls,
                   const std::vector<at::Tensor>& inputs);
  // Those of forward_ from `first` on.
  std::vector<at::Tensor> run_of_segments(std::size_t first, const LayerFn& fn,
                                          const std::vector<at::Tensor>& inputs);

  const std::vector<SegmentSpec> specs_;
  c10::Device device_;
  // By layer call: rows of specs_ that begin with it, outer ones first.
  std::map<std::pair<std::string, std::int32_t>, Rows, std::less<>> by_call_;
  std::vector<Open> forward_;  // the innermost last
  bool holds_inputs_ = false;  // what is packed now is given to a segment
  std::uint64_t step_ = 0;
  std::vector<std::shared_ptr<SegmentCall>> again_;  // which run again, the innermost last
};

}  // namespace stowage::executor
