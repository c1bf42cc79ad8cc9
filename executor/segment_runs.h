// SegmentRuns: the segments of a running step. Its driver hands it every layer call; it knows which
// of them begin or go on with a segment, and which segment saves something.
#pragma once

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
  // Of the next one; counts it.
  [[nodiscard]] Pack pack();

  // What a driver's run_layer() does. `passed`, which may be empty, sees what the layer is given
  // and what it returns, behind its events.
  using Passed = std::function<void(const std::vector<at::Tensor>&)>;
  std::vector<at::Tensor> run_layer(StepDriver& driver, SegmentHost& host, SiteTracker& sites,
                                    std::string_view path, const LayerFn& fn,
                                    std::vector<at::Tensor> inputs, const Passed& passed = {});
  // Around a run of a segment, by its host.
  void begin_again(SegmentCall& call) { again_.push_back(call.shared_from_this()); }
  void end_again() { again_.pop_back(); }

 private:
  std::vector<at::Tensor> run_of_segment(const LayerFn& fn, const std::vector<at::Tensor>& inputs);

  const std::vector<SegmentSpec> specs_;
  c10::Device device_;
  std::map<std::pair<std::string, std::int32_t>, std::size_t, std::less<>> by_call_;
  std::shared_ptr<SegmentCall> forward_;             // whose forward goes on
  bool is_in_layer_ = false;                         // of it
  std::vector<std::shared_ptr<SegmentCall>> again_;  // which run again, the innermost last
};

}  // namespace stowage::executor
