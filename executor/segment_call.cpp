#include "executor/segment_call.h"

#include <ATen/ops/alias.h>
#include <ATen/record_function.h>

#include <utility>

namespace stowage::executor {

std::vector<SegmentSpec> segment_specs(const Trace& trace,
                                       const std::vector<simulator::SegmentRows>& segments) {
  std::vector<std::int32_t> unpacks(trace.saved.size(), 0);
  for (const SavedId saved : trace.unpacks.saved) ++unpacks[saved.index()];
  std::vector<SegmentSpec> specs;
  for (const simulator::SegmentRows& rows : segments) {
    if (rows.is_chain()) continue;
    SegmentSpec& spec = specs.emplace_back();
    spec.path = trace.string(trace.layers.name[rows.layer.index()]);
    spec.call = rows.call;
    spec.calls = rows.calls;
    for (const SavedId again : rows.again) spec.unpacks.push_back(unpacks[again.index()]);
  }
  return specs;
}

void SegmentCall::hold_inputs(SegmentHost& host, const std::vector<at::Tensor>& inputs,
                              std::size_t first, std::shared_ptr<SegmentCall> outer) {
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    Input& input = inputs_.emplace_back();
    if (!inputs[k].defined()) continue;
    input.requires_grad = inputs[k].requires_grad();
    input.hooks = host.make_input_hooks(static_cast<std::int32_t>(first + k));
    input.hooks->call_pack_hook(inputs[k]);
    outer_ = outer;
  }
}

std::vector<at::Tensor> SegmentCall::inputs_again() {
  std::vector<at::Tensor> inputs;
  for (Input& input : inputs_) {
    at::Tensor& tensor = inputs.emplace_back();
    if (input.hooks == nullptr) continue;
    tensor = input.hooks->call_unpack_hook();
    const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
    tensor = tensor.detach();
    if (!input.requires_grad) continue;
    // As in forward (stowage::layer): not a leaf, whose casts autocast would cache.
    tensor = at::alias(tensor.set_requires_grad(true));
  }
  return inputs;
}

void SegmentCall::run(SegmentHost& host) {
  if (outer_ != nullptr) outer_->run_again(host);
  outer_.reset();
  ForwardState::Restored as_in_forward(layers_.front().state);
  again_ = 0;
  host.begin_again(*this);
  std::vector<at::Tensor> given;  // held until the run is over
  try {
    std::vector<at::Tensor> tensors;
    for (const Layer& layer : layers_) {
      if (&layer != &layers_.front()) as_in_forward.go_on(layer.state);
      host.layer_event(LayerEvent::forward_begin, layer.path);
      if (&layer == &layers_.front()) tensors = given = inputs_again();
      host.begin_inner(layer.path, tensors);
      tensors = layer.fn(tensors);
      host.layer_event(LayerEvent::forward_end, layer.path);
    }
  } catch (const RunEnded&) {
  }
  as_in_forward.drop_casts();
  for (const std::string_view path : host.open_layers()) {
    host.layer_event(LayerEvent::forward_end, path);
  }
  given.clear();
  inputs_.clear();
  layers_.clear();
  host.end_again(*this);
}

void SegmentCall::kept(std::int32_t number) const {
  if (static_cast<std::size_t>(number) + 1 == count()) end_run();
}

}  // namespace stowage::executor
