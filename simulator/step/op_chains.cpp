#include "simulator/step/op_chains.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "simulator/step/grouped_rows.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

constexpr int kDeepest = 8;             // ops from what a chain makes to what it is given
constexpr std::size_t kMostOps = 1000;  // of a chain
constexpr Bytes kNever = std::numeric_limits<Bytes>::max() / 4;

// Results depend on the arguments alone, bit by bit; nothing is written but what is returned.
bool may_run_again(std::string_view op) {
  static constexpr std::array kOps = std::to_array<std::string_view>({
      "aten::_fused_rms_norm",
      "aten::_log_softmax",
      "aten::_safe_softmax",
      "aten::_softmax",
      "aten::_to_copy",
      "aten::abs",
      "aten::add",
      "aten::addcdiv",
      "aten::addcmul",
      "aten::baddbmm",
      "aten::bmm",
      "aten::cat",
      "aten::clamp",
      "aten::clone",
      "aten::cos",
      "aten::cudnn_batch_norm",  // the executor gives it no statistics to move
      "aten::div",
      "aten::elu",
      "aten::erf",
      "aten::exp",
      "aten::gelu",
      "aten::hardsigmoid",
      "aten::hardswish",
      "aten::leaky_relu",
      "aten::log",
      "aten::masked_fill",
      "aten::maximum",
      "aten::mean",
      "aten::minimum",
      "aten::mish",
      "aten::mul",
      "aten::native_batch_norm",  // likewise
      "aten::native_group_norm",
      "aten::native_layer_norm",
      "aten::neg",
      "aten::pow",
      "aten::reciprocal",
      "aten::relu",
      "aten::rsqrt",
      "aten::rsub",
      "aten::sigmoid",
      "aten::silu",
      "aten::sin",
      "aten::softplus",
      "aten::sqrt",
      "aten::stack",
      "aten::sub",
      "aten::sum",
      "aten::tanh",
      "aten::tril",
      "aten::triu",
      "aten::var",
      "aten::where",
  });
  return std::find(kOps.begin(), kOps.end(), op) != kOps.end();
}

// Likewise; what is written is the first argument.
bool may_write_again(std::string_view op) {
  static constexpr std::array kOps =
      std::to_array<std::string_view>({"aten::copy_", "aten::fill_", "aten::zero_"});
  if (std::find(kOps.begin(), kOps.end(), op) != kOps.end()) return true;
  return op.ends_with('_') && may_run_again(op.substr(0, op.size() - 1));
}

Error chain_error(std::string message, std::string hint = "keep it, or offload it") {
  return {ErrorCode::bad_input, std::move(message), "", "", std::move(hint)};
}

bool is_written(UseMode mode) {
  return mode == UseMode::write || mode == UseMode::in_place;
}

std::string entry_text(std::size_t site) {
  return "/ops/" + std::to_string(site);
}

Error at_entry(std::size_t site, Error error) {
  error.pointer = entry_text(site);
  return error;
}

}  // namespace

ChainFinder::ChainFinder(const Trace& recording)
    : trace_(recording),
      spans_(recording),
      uses_of_(uses_by_op(recording)),
      used_by_(uses_by_storage(recording)),
      saved_of_(saved_by_storage(recording)),
      unpacks_of_(unpacks_by_saved(recording)) {
  if (trace_.unpacks.size() > 0) backward_ = trace_.unpacks.event.front();
  const std::vector<std::uint8_t>& primitive = trace_.ops.primitive;
  has_primitives_ = std::find(primitive.begin(), primitive.end(), 1) != primitive.end();
}

bool ChainFinder::is_of_inner_op(std::uint32_t use) const {
  const OpId op = trace_.uses.op[use];
  if (trace_.ops.primitive[op.index()] != 0) return false;
  const auto lies_in_it = [&](OpId other) {
    while (other.valid() && other != op) other = trace_.ops.parent[other.index()];
    return other.valid();
  };
  const auto uses = used_by_[storage_of_use(use).index()];
  return std::any_of(uses.begin(), uses.end(), [&](std::uint32_t other) {
    return is_written(trace_.uses.mode[other]) && trace_.uses.op[other] != op &&
           lies_in_it(trace_.uses.op[other]);
  });
}

std::vector<OpId> ChainFinder::makers_of(StorageId storage) const {
  std::vector<OpId> makers = {spans_.primitive(trace_.storages.alloc_op[storage.index()])};
  for (const std::uint32_t use : used_by_[storage.index()]) {
    const OpId op = trace_.uses.op[use];
    if (is_written(trace_.uses.mode[use]) && !is_of_inner_op(use) && op > makers.back()) {
      makers.push_back(op);
    }
  }
  return makers;
}

std::string ChainFinder::why_not_written(StorageId storage, std::uint32_t use) const {
  const OpId op = trace_.uses.op[use];
  const std::string& name = trace_.string(trace_.ops.name[op.index()]);
  const bool is_primitive = trace_.ops.primitive[op.index()] != 0 && spans_.is_known(op);
  const bool is_able = is_primitive && may_write_again(name) && spans_.end(op) < backward_;
  if (!is_able) return name + " writes into it, which does not run again by itself";
  for (const std::uint32_t each : uses_of_[op.index()]) {
    if (is_written(trace_.uses.mode[each]) && storage_of_use(each) != storage) {
      return name + " writes into it and into something else";
    }
  }
  return "";
}

std::string ChainFinder::why_not(StorageId storage) const {
  if (!is_made(storage)) return "it is older than the step";
  if (trace_.storages.device[storage.index()] != 0) return "it is not on the device";
  if (!has_primitives_) return "the recording does not say of which ops others are made";
  const OpId op = spans_.primitive(trace_.storages.alloc_op[storage.index()]);
  if (!op.valid()) return "no op made it";
  const std::string& name = trace_.string(trace_.ops.name[op.index()]);
  const EventId end = spans_.end(op);
  const bool is_forward = spans_.is_known(op) && backward_.valid() && end < backward_;
  if (!is_forward) return "it is not made in forward";
  if (!may_run_again(name)) return name + " made it, which does not run again by itself";
  const EventId natural = trace_.storages.natural_free_event[storage.index()];
  if (natural.valid() && natural < end) return name + " made it, and does not return it";
  for (const std::uint32_t use : uses_of_[op.index()]) {
    if (is_written(trace_.uses.mode[use])) return name + " made it, and writes what it is given";
  }
  for (const std::uint32_t use : used_by_[storage.index()]) {
    if (!is_written(trace_.uses.mode[use]) || is_of_inner_op(use)) continue;
    if (std::string why = why_not_written(storage, use); !why.empty()) return why;
  }
  return "";
}

Status ChainFinder::check(SavedId saved) const {
  const std::string why = why_not(trace_.saved.storage[saved.index()]);
  if (why.empty()) return Unit{};
  return chain_error(
      trace_.string(trace_.saved.site[saved.index()]) + " cannot be made again by ops: " + why,
      has_primitives_ ? "keep it, or offload it" : "record the model again with this version");
}

Result<ChainFinder::GivenUp> ChainFinder::storages_at(const std::vector<std::string>& sites) const {
  std::map<std::string_view, SavedId> by_name;
  for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
    by_name.emplace(trace_.string(trace_.saved.site[s]), SavedId(s));
  }
  GivenUp given_up;
  given_up.storages.assign(trace_.storages.size(), false);
  given_up.site.assign(trace_.saved.size(), sites.size());
  for (std::size_t k = 0; k < sites.size(); ++k) {
    const std::string& site = sites[k];
    const auto found = by_name.find(site);
    if (found == by_name.end()) {
      std::vector<std::string> names;
      for (const auto& [name, row] : by_name) names.emplace_back(name);
      const std::string near = nearest(site, names);
      return at_entry(k, chain_error("the recording saves nothing at '" + site + "'",
                                     near.empty() ? "stowage inspect lists the saved tensors"
                                                  : "did you mean '" + near + "'?"));
    }
    if (Status able = check(found->second); !able) return at_entry(k, able.error());
    given_up.site[found->second.index()] = k;
    given_up.storages[trace_.saved.storage[found->second.index()].index()] = true;
  }
  for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
    const StorageId of = trace_.saved.storage[s];
    if (!of.valid() || !given_up.storages[of.index()]) continue;
    const std::string& site = trace_.string(trace_.saved.site[s]);
    const std::size_t k = given_up.site[s];
    if (k == sites.size()) {
      const auto same = saved_of_[of.index()];
      const auto named = std::find_if(same.begin(), same.end(), [&](SavedId other) {
        return given_up.site[other.index()] < sites.size();
      });
      const std::size_t other = given_up.site[named->index()];
      return at_entry(other, chain_error("what is saved at " + sites[other] + " is saved at " +
                                             site + " too, which is not made again by ops",
                                         "name " + site + " too, or leave both out"));
    }
    if (unpacks_of_[s].empty()) {
      return at_entry(
          k, chain_error(site + " cannot be made again by ops: backward does not ask for it"));
    }
    const OpId writer = makers_of(of).back();
    if (trace_.saved.event[s] < spans_.begin(writer)) {
      return at_entry(k, chain_error(site + " cannot be made again by ops: " +
                                     trace_.string(trace_.ops.name[writer.index()]) +
                                     " writes into it after that"));
    }
  }
  return given_up;
}

// What a chain that needs the storage holds for it from forward on.
Bytes ChainFinder::bytes_to_hold(StorageId storage, const std::vector<bool>& given_up,
                                 std::vector<Bytes>& known, int depth) const {
  if (!is_made(storage)) return 0;
  Bytes& bytes = known[storage.index()];
  if (bytes >= 0) return bytes;
  const bool is_given_up = given_up[storage.index()];
  if (!is_given_up && !saved_of_[storage.index()].empty()) return bytes = 0;
  const Bytes own = is_given_up ? kNever : trace_.storages.bytes[storage.index()];
  if (!is_given_up && (depth <= 0 || !why_not(storage).empty())) return own;
  if (depth < -static_cast<int>(kMostOps)) return own;
  bytes = 0;  // a broken recording may read what it makes
  Bytes inputs = 0;
  for (const OpId maker : makers_of(storage)) {
    for (const std::uint32_t use : uses_of_[maker.index()]) {
      inputs =
          std::min(inputs + bytes_to_hold(storage_of_use(use), given_up, known, depth - 1), kNever);
    }
  }
  known[storage.index()] = std::min(own, inputs);
  return known[storage.index()];
}

void ChainFinder::make(StorageId storage, const std::vector<bool>& given_up,
                       std::vector<Bytes>& known, Chain& chain) const {
  if (!chain.made.insert(storage).second) return;
  for (const OpId op : makers_of(storage)) {
    if (chain.ops.size() == kMostOps) return;
    chain.ops.insert(op);
    for (const std::uint32_t use : uses_of_[op.index()]) {
      const StorageId of = storage_of_use(use);
      if (!is_made(of) || of == storage) continue;
      const bool is_saved = !saved_of_[of.index()].empty();
      const bool goes_on = given_up[of.index()] || (!is_saved && why_not(of).empty() &&
                                                    bytes_to_hold(of, given_up, known, kDeepest) <
                                                        trace_.storages.bytes[of.index()]);
      if (goes_on) {
        make(of, given_up, known, chain);
        continue;
      }
      const TensorId tensor = trace_.uses.tensor[use];
      if (std::find(chain.inputs.begin(), chain.inputs.end(), tensor) == chain.inputs.end()) {
        chain.inputs.push_back(tensor);
      }
    }
  }
}

std::int32_t ChainFinder::call_at(LayerId layer, EventId event) const {
  std::int32_t call = -1;
  for (std::size_t e = 0; e < event.index(); ++e) {
    const bool begins = trace_.events.kind[e] == EventKind::layer_forward_begin;
    if (begins && trace_.events.ref[e] == layer.value) ++call;
  }
  return std::max(call, 0);
}

Result<Segment> ChainFinder::segment_of(const Chain& chain, UnpackId trigger,
                                        std::vector<SavedId> saved) const {
  Segment segment;
  const SavedId first = trace_.unpacks.saved[trigger.index()];
  segment.name = trace_.string(trace_.saved.site[first.index()]);
  segment.layer = trace_.saved.layer[first.index()];
  segment.call = trace_.saved.call[first.index()];
  segment.calls = 0;
  segment.ops.assign(chain.ops.begin(), chain.ops.end());
  segment.first = spans_.begin(segment.ops.front());
  segment.end = EventId(spans_.end(segment.ops.back()).value + 1);
  segment.saved = std::move(saved);
  for (const SavedId each : segment.saved) {
    segment.made_by.push_back(makers_of(trace_.saved.storage[each.index()]).back());
  }
  segment.last_needed = segment.saved.back();
  segment.trigger = trigger;
  segment.runs_at = trace_.unpacks.event[trigger.index()];
  // In the order in which the ops of the chain read them first.
  for (const OpId op : segment.ops) {
    for (const std::uint32_t use : uses_of_[op.index()]) {
      const TensorId tensor = trace_.uses.tensor[use];
      const bool is_input =
          std::find(chain.inputs.begin(), chain.inputs.end(), tensor) != chain.inputs.end();
      const bool is_new = std::none_of(segment.inputs.begin(), segment.inputs.end(),
                                       [&](const auto& each) { return each.tensor == tensor; });
      if (!is_input || !is_new) continue;
      const EventId begin = spans_.begin(op);
      const LayerId layer = trace_.ops.layer[op.index()];
      segment.inputs.push_back({tensor, begin, layer, call_at(layer, begin), 0});
    }
  }
  if (Status status = check_order(segment); !status) return std::move(status).error();
  if (Status status = check_unwritten(segment); !status) return std::move(status).error();
  return segment;
}

Status ChainFinder::check_order(const Segment& segment) const {
  const auto broken = [&] {
    return chain_error(segment.name +
                       " cannot be made again by ops: their events are not in order");
  };
  EventId behind;
  for (const OpId op : segment.ops) {
    if (spans_.begin(op) < behind) return broken();
    behind = spans_.end(op);
    for (EventId e = spans_.begin(op); e < behind; ++e.value) {
      if (trace_.events.kind[e.index()] != EventKind::alloc) continue;
      const auto made = static_cast<std::size_t>(trace_.events.ref[e.index()]);
      const EventId natural = trace_.storages.natural_free_event[made];
      const bool is_own = spans_.primitive(trace_.storages.alloc_op[made]) == op;
      if (!is_own || (natural.valid() && natural < e)) return broken();
    }
  }
  return Unit{};
}

Status ChainFinder::check_unwritten(const Segment& segment) const {
  const EventId again = segment.runs_at;
  for (const OpId op : segment.ops) {
    for (const std::uint32_t use : uses_of_[op.index()]) {
      const StorageId of = storage_of_use(use);
      if (!of.valid()) continue;
      for (const std::uint32_t other : used_by_[of.index()]) {
        const OpId writer = trace_.uses.op[other];
        const EventId at = spans_.begin(writer);
        if (!is_written(trace_.uses.mode[other]) || at < spans_.begin(op) || again < at) continue;
        const bool is_own = std::binary_search(segment.ops.begin(), segment.ops.end(), writer);
        if (is_own || is_of_inner_op(other)) continue;
        return chain_error(segment.name + " cannot be made again by ops: " +
                           trace_.string(trace_.ops.name[writer.index()]) +
                           " writes what they read before they would run again");
      }
    }
  }
  return Unit{};
}

Result<std::vector<Segment>> ChainFinder::find(const std::vector<std::string>& sites) const {
  const Result<GivenUp> named = storages_at(sites);
  if (!named) return named.error();
  const std::vector<bool>& given_up = named->storages;
  std::vector<Bytes> known(trace_.storages.size(), -1);
  std::vector<bool> is_served(trace_.storages.size(), false);
  std::vector<Segment> chains;
  for (std::size_t u = 0; u < trace_.unpacks.size(); ++u) {
    const StorageId of = trace_.saved.storage[trace_.unpacks.saved[u].index()];
    if (!of.valid() || !given_up[of.index()] || is_served[of.index()]) continue;
    Chain chain;
    make(of, given_up, known, chain);
    const std::size_t site = named->site[trace_.unpacks.saved[u].index()];
    if (chain.ops.size() == kMostOps) {
      return at_entry(
          site,
          chain_error(
              sites[site] + " cannot be made again by ops: a thousand of them or more would run",
              "keep some of what they make"));
    }
    std::vector<SavedId> saved;
    for (std::size_t s = 0; s < trace_.saved.size(); ++s) {
      const StorageId each = trace_.saved.storage[s];
      if (!each.valid() || !given_up[each.index()] || is_served[each.index()]) continue;
      const std::vector<OpId> makers = makers_of(each);
      const bool is_made = std::all_of(makers.begin(), makers.end(),
                                       [&](OpId op) { return chain.ops.contains(op); });
      if (is_made) saved.emplace_back(s);
    }
    // In micro-batches a later one may save it again.
    for (const SavedId each : saved) {
      if (trace_.saved.event[each.index()] < trace_.unpacks.event[u]) continue;
      return at_entry(site, chain_error(trace_.string(trace_.saved.site[each.index()]) +
                                        " cannot be made again by ops: it is saved behind the "
                                        "first time that backward asks for it"));
    }
    for (const SavedId each : saved) is_served[trace_.saved.storage[each.index()].index()] = true;
    Result<Segment> segment = segment_of(chain, UnpackId(u), std::move(saved));
    if (!segment) return at_entry(site, std::move(segment).error());
    segment->entry = entry_text(site);
    chains.push_back(std::move(segment).value());
  }
  // Inputs are numbered within the layer call where they are packed.
  std::vector<std::pair<EventId, Segment::Input*>> inputs;
  for (Segment& chain : chains) {
    for (Segment::Input& input : chain.inputs) inputs.emplace_back(input.event, &input);
  }
  std::map<std::pair<LayerId, std::int32_t>, std::int32_t> next;
  for (const auto& [event, input] : inputs) input->number = next[{input->layer, input->call}]++;
  return chains;
}

}  // namespace stowage::simulator
