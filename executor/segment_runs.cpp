#include "executor/segment_runs.h"

#include <utility>

namespace stowage::executor {

SegmentRuns::SegmentRuns(std::vector<SegmentSpec> specs, c10::Device device)
    : specs_(std::move(specs)), device_(device) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    by_call_.emplace(std::pair(specs_[i].path, specs_[i].call), i);
  }
}

void SegmentRuns::begin() {
  is_in_layer_ = false;
  forward_.reset();
  again_.clear();
}

SegmentRuns::Pack SegmentRuns::pack() {
  if (!again_.empty()) return {again_.back(), again_.back()->next_again(), true};
  if (forward_ != nullptr) return {forward_, forward_->next_pack(), false};
  return {};
}

std::vector<at::Tensor> SegmentRuns::run_layer(StepDriver& driver, SegmentHost& host,
                                               SiteTracker& sites, std::string_view path,
                                               const LayerFn& fn, std::vector<at::Tensor> inputs,
                                               const Passed& passed) {
  const std::shared_ptr<const DriverLink> link = driver_link();
  const bool goes_on = forward_ != nullptr && !is_in_layer_;
  const bool may_begin = again_.empty() && forward_ == nullptr && !specs_.empty();
  const auto found = may_begin ? by_call_.find(std::pair(std::string(path), sites.next_call(path)))
                               : by_call_.end();
  const bool begins = found != by_call_.end();
  if (begins) {
    forward_ = std::make_shared<SegmentCall>(specs_[found->second], device_);
    sites.note_calls();
  }
  driver.layer_event(LayerEvent::forward_begin, path);
  if (passed) passed(inputs);
  if (begins) forward_->hold_inputs(host, inputs);
  std::vector<at::Tensor> outputs;
  if (begins || goes_on) {
    forward_->add_layer(path, fn);
    outputs = run_of_segment(fn, inputs);
  } else {
    outputs = fn(inputs);
  }
  inputs.clear();
  // The layer may have ended the step.
  if (driver_of(link.get()) != &driver) return outputs;
  driver.layer_event(LayerEvent::forward_end, path);
  if (passed) passed(outputs);
  if ((begins || goes_on) && forward_ != nullptr && forward_->is_complete()) {
    forward_->set_calls(sites.take_noted_calls());
    forward_.reset();
  }
  return outputs;
}

std::vector<at::Tensor> SegmentRuns::run_of_segment(const LayerFn& fn,
                                                    const std::vector<at::Tensor>& inputs) {
  is_in_layer_ = true;
  try {
    std::vector<at::Tensor> outputs = fn(inputs);
    is_in_layer_ = false;
    return outputs;
  } catch (...) {
    is_in_layer_ = false;
    forward_.reset();
    throw;
  }
}

}  // namespace stowage::executor
