#include "executor/segment_runs.h"

#include <algorithm>
#include <utility>

namespace stowage::executor {
namespace {

class Flag {
 public:
  explicit Flag(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flag() { flag_ = false; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;

 private:
  bool& flag_;
};

}  // namespace

SegmentRuns::SegmentRuns(std::vector<SegmentSpec> specs, c10::Device device)
    : specs_(std::move(specs)), device_(device) {
  for (std::size_t i = 0; i < specs_.size(); ++i) {
    by_call_[std::pair(specs_[i].path, specs_[i].call)].push_back(i);
  }
}

void SegmentRuns::begin() {
  ++step_;
  forward_.clear();
  again_.clear();
}

SegmentRuns::Pack SegmentRuns::pack(bool is_input) {
  if (is_input && !holds_inputs_) return {};
  if (!again_.empty()) return {again_.back(), again_.back()->next_again(), true};
  Pack pack;
  // What is saved within an inner segment is saved within the outer ones: all count it.
  for (const Open& open : forward_) pack = {open.call, open.call->next_pack(), false};
  return pack;
}

const SegmentRuns::Rows& SegmentRuns::beginning_at(std::string_view path, std::int32_t call) const {
  static const Rows none;
  if (specs_.empty()) return none;
  const auto found = by_call_.find(std::pair(std::string(path), call));
  return found == by_call_.end() ? none : found->second;
}

void SegmentRuns::hold_inputs(SegmentHost& host,
                              const std::vector<std::shared_ptr<SegmentCall>>& calls,
                              const std::vector<at::Tensor>& inputs) {
  const Flag holds(holds_inputs_);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i]->hold_inputs(host, inputs, i * inputs.size(),
                          forward_.empty() ? nullptr : forward_.back().call);
    forward_.push_back({calls[i]});
  }
}

void SegmentRuns::begin_inner(SegmentHost& host, const SiteTracker& sites, std::string_view path,
                              const std::vector<at::Tensor>& inputs) {
  if (again_.empty()) return;
  const Rows& rows = beginning_at(path, sites.innermost_call());
  const auto running = std::find_if(rows.begin(), rows.end(), [&](std::size_t row) {
    return &specs_[row] == &again_.back()->spec();
  });
  const Flag holds(holds_inputs_);
  for (auto row = running == rows.end() ? rows.begin() : std::next(running); row != rows.end();
       ++row) {
    const std::size_t first = static_cast<std::size_t>(row - rows.begin()) * inputs.size();
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!inputs[k].defined()) continue;
      host.make_input_hooks(static_cast<std::int32_t>(first + k))->call_pack_hook(inputs[k]);
    }
  }
}

std::vector<at::Tensor> SegmentRuns::run_layer(StepDriver& driver, SegmentHost& host,
                                               SiteTracker& sites, std::string_view path,
                                               const LayerFn& fn, std::vector<at::Tensor> inputs,
                                               const Passed& passed) {
  const std::shared_ptr<const DriverLink> link = driver_link();
  const bool is_forward = again_.empty();
  // Those that go on with this layer are the last ones, behind those that it lies in a layer of.
  std::size_t first = forward_.size();
  while (is_forward && first > 0 && !forward_[first - 1].is_in_layer) --first;
  std::vector<std::shared_ptr<SegmentCall>> begun;
  if (is_forward && !specs_.empty()) {
    for (const std::size_t row : beginning_at(path, sites.next_call(path))) {
      begun.push_back(std::make_shared<SegmentCall>(specs_[row], device_));
      sites.note_calls();
    }
  }
  driver.layer_event(LayerEvent::forward_begin, path);
  if (passed) passed(inputs);
  is_forward ? hold_inputs(host, begun, inputs) : begin_inner(host, sites, path, inputs);
  const bool is_of_segment = is_forward && first < forward_.size();
  std::vector<at::Tensor> outputs;
  if (is_of_segment) {
    for (std::size_t k = first; k < forward_.size(); ++k) forward_[k].call->add_layer(path, fn);
    outputs = run_of_segments(first, fn, inputs);
  } else {
    outputs = fn(inputs);
  }
  inputs.clear();
  // The layer may have ended the step.
  if (driver_of(link.get()) != &driver) return outputs;
  driver.layer_event(LayerEvent::forward_end, path);
  if (passed) passed(outputs);
  while (is_of_segment && forward_.size() > first && forward_.back().call->is_complete()) {
    forward_.back().call->set_calls(sites.take_noted_calls());
    forward_.pop_back();
  }
  return outputs;
}

std::vector<at::Tensor> SegmentRuns::run_of_segments(std::size_t first, const LayerFn& fn,
                                                     const std::vector<at::Tensor>& inputs) {
  const std::uint64_t step = step_;
  for (std::size_t k = first; k < forward_.size(); ++k) forward_[k].is_in_layer = true;
  const std::size_t end = forward_.size();
  try {
    std::vector<at::Tensor> outputs = fn(inputs);
    if (step_ != step) return outputs;
    forward_.resize(std::min(end, forward_.size()));
    for (std::size_t k = first; k < forward_.size(); ++k) forward_[k].is_in_layer = false;
    return outputs;
  } catch (...) {
    if (step_ == step) forward_.resize(std::min(first, forward_.size()));
    throw;
  }
}

}  // namespace stowage::executor
