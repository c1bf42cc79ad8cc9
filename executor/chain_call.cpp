#include "executor/chain_call.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "executor/dispatched_op.h"
#include "simulator/step/grouped_rows.h"

namespace stowage::executor {
namespace {

// Normalisation by the batch's own mean and variance; it also moves the running ones, which it is
// given, and which its result does not depend on.
bool has_statistics(std::string_view op) {
  return op == "aten::native_batch_norm" || op == "aten::cudnn_batch_norm";
}
bool moves_statistics(std::string_view op, c10::ArrayRef<const c10::IValue> arguments) {
  constexpr std::size_t kTraining = 5;  // of both
  return has_statistics(op) && arguments.size() > kTraining && arguments[kTraining].isBool() &&
         arguments[kTraining].toBool();
}
bool is_statistic(std::size_t argument) {
  return argument == 3 || argument == 4;
}

// The same elements of the same bytes, read alike.
bool is_same(const SavedView& a, const SavedView& b) {
  const auto reads = [](const SavedView& view, c10::DispatchKey key) { return view.keys.has(key); };
  return a.shape == b.shape && a.strides == b.strides && a.offset == b.offset &&
         a.dtype == b.dtype &&
         reads(a, c10::DispatchKey::Conjugate) == reads(b, c10::DispatchKey::Conjugate) &&
         reads(a, c10::DispatchKey::Negative) == reads(b, c10::DispatchKey::Negative);
}

// By op: its number among the primitive ops of its name that no backward runs; -1 = none of them.
std::vector<std::int32_t> forward_ordinals(const Trace& trace) {
  std::vector<std::int32_t> ordinals(trace.ops.size(), -1);
  std::map<StringId, std::int32_t> counts;
  int backwards = 0;
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const EventKind kind = trace.events.kind[e];
    if (kind == EventKind::backward_begin) ++backwards;
    if (kind == EventKind::backward_end) --backwards;
    if (kind != EventKind::op_begin || backwards > 0) continue;
    const auto op = static_cast<std::size_t>(trace.events.ref[e]);
    if (trace.ops.primitive[op] != 0) ordinals[op] = counts[trace.ops.name[op]]++;
  }
  return ordinals;
}

}  // namespace

std::vector<ChainSpec> chain_specs(const Trace& trace,
                                   const std::vector<simulator::SegmentRows>& segments) {
  std::vector<std::int32_t> unpacks(trace.saved.size(), 0);
  for (const SavedId saved : trace.unpacks.saved) ++unpacks[saved.index()];
  const std::vector<std::int32_t> ordinals = forward_ordinals(trace);
  const simulator::Grouped<std::uint32_t> uses_of = simulator::uses_by_op(trace);
  std::vector<ChainSpec> specs;
  for (const simulator::SegmentRows& rows : segments) {
    if (!rows.is_chain()) continue;
    ChainSpec& spec = specs.emplace_back();
    spec.path = trace.string(trace.layers.name[rows.layer.index()]);
    std::map<TensorId, std::int32_t> inputs;
    for (const SavedId input : rows.inputs) {
      inputs.emplace(trace.saved.tensor[input.index()], static_cast<std::int32_t>(inputs.size()));
      spec.inputs.push_back(boundary_ordinal(trace.saved.ordinal[input.index()]));
    }
    for (const OpId op : rows.ops) {
      ChainSpec::Op& to = spec.ops.emplace_back();
      to.name = trace.string(trace.ops.name[op.index()]);
      to.ordinal = ordinals[op.index()];
      for (const std::uint32_t use : uses_of[op.index()]) {
        const TensorId tensor = trace.uses.tensor[use];
        const auto input = inputs.find(tensor);
        const StorageId of = trace.tensors.storage[tensor.index()];
        const bool is_older = !of.valid() || !trace.storages.alloc_event[of.index()].valid();
        to.arguments.push_back(input != inputs.end() ? input->second
                               : is_older            ? ChainSpec::kOlder
                                                     : ChainSpec::kMade);
      }
    }
    for (std::size_t k = 0; k < rows.saved.size(); ++k) {
      const std::size_t saved = rows.saved[k].index();
      const auto op = std::find(rows.ops.begin(), rows.ops.end(), rows.made_by[k]);
      spec.given_up.push_back({rows.saved[k],
                               trace.string(trace.layers.name[trace.saved.layer[saved].index()]),
                               trace.saved.call[saved], trace.saved.ordinal[saved],
                               static_cast<std::size_t>(op - rows.ops.begin())});
      const auto again = std::find_if(rows.again.begin(), rows.again.end(), [&](SavedId each) {
        return trace.saved.site[each.index()] == trace.saved.site[saved];
      });
      spec.unpacks.push_back(again == rows.again.end() ? 0 : unpacks[again->index()]);
    }
  }
  return specs;
}

ChainCall::ChainCall(const ChainSpec& spec, c10::Device device)
    : RunAgain(spec.unpacks),
      spec_(spec),
      device_(device),
      ops_(spec.ops.size()),
      inputs_(spec.inputs.size()),
      given_up_(spec.given_up.size()) {}

void ChainCall::op_begin(std::size_t op, const at::RecordFunction& function, SegmentHost& host) {
  if (failure_) return;
  try {
    note(op, function, host);
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void ChainCall::note(std::size_t op, const at::RecordFunction& function, SegmentHost& host) {
  const std::optional<c10::OperatorName> name = function.operator_name();
  TORCH_CHECK(name, "stowage: ", function.name(), " is no op that could run again");
  Op& to = ops_[op];
  to.state.emplace(device_);
  to.handle.emplace(c10::Dispatcher::singleton().findSchemaOrThrow(name->name.c_str(),
                                                                   name->overload_name.c_str()));
  const c10::ArrayRef<const c10::IValue> inputs = function.inputs();
  const bool moves = moves_statistics(function.name(), inputs);
  // Otherwise its result depends on what another call moves without a word.
  TORCH_CHECK(moves || !has_statistics(function.name()), "stowage: ", function.name(),
              " by running statistics does not run again");
  std::size_t next = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    visit_tensors(inputs[i], [&](const at::Tensor& tensor, std::int32_t in_list) {
      Argument argument = note(tensor, next, op, host);
      if (moves && is_statistic(i)) argument = {};  // once is enough
      argument.place = i;
      argument.in_list = in_list;
      to.arguments.push_back(std::move(argument));
    });
    const bool has_tensors = inputs[i].isTensor() || inputs[i].isTensorList();
    to.stack.push_back(has_tensors ? c10::IValue() : inputs[i]);
  }
  TORCH_CHECK(next == spec_.ops[op].arguments.size(), "stowage: ", function.name(),
              " has other arguments than recorded");
}

ChainCall::Argument ChainCall::note(const at::Tensor& tensor, std::size_t& next, std::size_t op,
                                    SegmentHost& host) {
  Argument argument;
  argument.is_defined = tensor.defined();
  const std::int64_t serial = is_plain(tensor) ? host.serial_of(tensor) : -1;
  if (serial < 0) {  // not the device's, or undefined
    if (tensor.defined()) argument.tensor = KeptTensor(tensor);
    return argument;
  }
  const std::vector<std::int32_t>& expected = spec_.ops[op].arguments;
  TORCH_CHECK(next < expected.size(), "stowage: ", spec_.ops[op].name,
              " has other arguments than recorded");
  const std::int32_t which = expected[next++];
  if (which == ChainSpec::kOlder) {
    argument.tensor = KeptTensor(tensor);
  } else if (which == ChainSpec::kMade) {
    const auto made = made_.find(serial);
    TORCH_CHECK(made != made_.end() && made->second.version == KeptTensor::version_of(tensor),
                "stowage: an argument of ", spec_.ops[op].name,
                " is not what the ops that were recorded made");
    argument.kind = Argument::Kind::made;
    argument.serial = serial;
    argument.view = SavedView::of(tensor);
  } else {
    argument.kind = Argument::Kind::input;
    argument.input = static_cast<std::size_t>(which);
    Input& input = inputs_[argument.input];
    if (input.hooks == nullptr) {
      input.hooks = host.make_input_hooks(spec_.inputs[argument.input]);
      input.hooks->call_pack_hook(tensor);
      input.first = {serial, KeptTensor::version_of(tensor), SavedView::of(tensor)};
    }
    TORCH_CHECK(input.first.serial == serial &&
                    input.first.version == KeptTensor::version_of(tensor) &&
                    is_same(input.first.view, SavedView::of(tensor)),
                "stowage: ", spec_.ops[op].name,
                " is not given what another of the ops that were recorded was given");
  }
  return argument;
}

void ChainCall::op_end(std::size_t op, const at::RecordFunction& function, SegmentHost& host) {
  if (failure_) return;
  try {
    std::size_t output = 0;
    for (const c10::IValue& value : function.outputs()) {
      visit_tensors(value, [&](const at::Tensor& tensor, std::int32_t) {
        const std::int64_t serial = is_plain(tensor) ? host.serial_of(tensor) : -1;
        if (serial >= 0) {
          made_.try_emplace(serial, Made{op, output}).first->second.version =
              KeptTensor::version_of(tensor);
        }
        ++output;
      });
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void ChainCall::give_up(std::int32_t number, const at::Tensor& tensor, std::int64_t serial) {
  Seen& given_up = given_up_[static_cast<std::size_t>(number)];
  given_up.serial = serial;
  given_up.version = KeptTensor::version_of(tensor);
  given_up.view = SavedView::of(tensor);
}

// A view of what the chain has made again in the place of that storage.
at::Tensor ChainCall::made(std::int64_t serial, const SavedView& view) const {
  const auto found = made_.find(serial);
  TORCH_CHECK(found != made_.end(), "stowage: no op of a chain made what backward asks for");
  const Made& at = found->second;
  TORCH_CHECK(at.output < outputs_[at.op].size() && outputs_[at.op][at.output].defined(),
              "stowage: ops that ran again returned something else than in forward");
  const at::Tensor& output = outputs_[at.op][at.output];
  at::Tensor tensor = view.over(output.storage(), 0);
  // All views of it count versions together.
  tensor.unsafeGetTensorImpl()->set_version_counter(
      output.unsafeGetTensorImpl()->version_counter());
  return tensor;
}

std::vector<c10::IValue> ChainCall::stack_of(std::size_t op, SegmentHost& host) const {
  std::vector<c10::IValue> stack = ops_[op].stack;
  std::map<std::size_t, c10::List<at::Tensor>> lists;
  for (const Argument& argument : ops_[op].arguments) {
    at::Tensor tensor;
    switch (argument.kind) {
      case Argument::Kind::older:
        if (!argument.is_defined) break;
        tensor = argument.tensor.get();
        host.check_present(tensor);
        break;
      case Argument::Kind::input:
        tensor = tensors_[argument.input];
        break;
      case Argument::Kind::made:
        tensor = made(argument.serial, argument.view);
        break;
    }
    if (argument.in_list < 0) {
      stack[argument.place] = std::move(tensor);
    } else {
      lists[argument.place].push_back(std::move(tensor));
    }
  }
  for (auto& [place, list] : lists) stack[place] = std::move(list);
  return stack;
}

void ChainCall::run_op(std::size_t op, SegmentHost& host) {
  TORCH_CHECK(ops_[op].handle, "stowage: ", spec_.ops[op].name,
              " was not seen in forward, so it cannot run again");
  const ForwardState::Restored as_in_forward(*ops_[op].state);
  const at::AutoDispatchBelowAutograd below;
  std::vector<c10::IValue> stack = stack_of(op, host);
  ops_[op].handle->callBoxed(&stack);
  for (const c10::IValue& value : stack) {
    visit_tensors(value,
                  [&](const at::Tensor& tensor, std::int32_t) { outputs_[op].push_back(tensor); });
  }
}

// What no later op reads. Saved tensors have their own handles.
void ChainCall::let_go(std::size_t op) {
  std::vector<std::vector<bool>> is_read(op + 1);
  for (std::size_t o = 0; o <= op; ++o) is_read[o].assign(outputs_[o].size(), false);
  for (std::size_t later = op + 1; later < ops_.size(); ++later) {
    for (const Argument& argument : ops_[later].arguments) {
      if (argument.kind != Argument::Kind::made) continue;
      const Made& at = made_.at(argument.serial);
      if (at.op <= op && at.output < is_read[at.op].size()) is_read[at.op][at.output] = true;
    }
  }
  for (std::size_t o = 0; o <= op; ++o) {
    for (std::size_t k = 0; k < outputs_[o].size(); ++k) {
      if (!is_read[o][k]) outputs_[o][k].reset();
    }
  }
}

void ChainCall::run(SegmentHost& host) {
  if (failure_) std::rethrow_exception(failure_);
  host.begin_chain(spec_.path);
  for (const Input& input : inputs_) {
    TORCH_CHECK(input.hooks, "stowage: an input of ops that are to run again was not seen");
    tensors_.push_back(input.hooks->call_unpack_hook());
  }
  outputs_.resize(ops_.size());
  for (std::size_t op = 0; op < ops_.size(); ++op) {
    run_op(op, host);
    std::vector<std::pair<std::int32_t, at::Tensor>> saved;
    for (std::size_t k = 0; k < given_up_.size(); ++k) {
      if (spec_.given_up[k].op != op) continue;
      // An op may save its result ahead of its end; behind that nobody has written into it.
      const auto at = made_.find(given_up_[k].serial);
      TORCH_CHECK(at == made_.end() || given_up_[k].version <= at->second.version,
                  "stowage: what was saved at ", spec_.given_up[k].layer,
                  " had been written in place, which was not recorded");
      saved.emplace_back(static_cast<std::int32_t>(k),
                         made(given_up_[k].serial, given_up_[k].view));
    }
    let_go(op);
    for (const auto& [number, tensor] : saved) {
      const ChainSpec::GivenUp& of = spec_.given_up[static_cast<std::size_t>(number)];
      const Site site{of.layer, of.call, of.ordinal, simulator::Pass::recompute, 0};
      keep(number, tensor, host.pack_again(tensor, site));
    }
  }
  tensors_.clear();
  outputs_.clear();
  inputs_.clear();
  ops_.clear();
  host.end_chain(spec_.path);
}

}  // namespace stowage::executor
