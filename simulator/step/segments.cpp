#include "simulator/step/segments.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/step/grouped_rows.h"
#include "traces/nearest.h"

namespace stowage::simulator {
namespace {

Error bad(std::string message, std::string hint = {}) {
  return {ErrorCode::bad_input, std::move(message), "", "", std::move(hint)};
}

Error cannot(const std::string& segment, const std::string& why,
             const std::string& hint = "leave it out, or name layers within it") {
  return bad("segment '" + segment + "' cannot run again: " + why, hint);
}

// Their schemas do not say that they write the statistics that they are given.
bool updates_statistics(const std::string& op) {
  return op.find("batch_norm") != std::string::npos ||
         op.find("instance_norm") != std::string::npos;
}

constexpr const char* kOneByOne = "let them run again one by one";

bool writes(UseMode mode) {
  return mode == UseMode::write || mode == UseMode::in_place;
}

}  // namespace

SegmentFinder::SegmentFinder(const Trace& recording)
    : trace_(recording),
      unpacks_of_(unpacks_by_saved(recording)),
      uses_of_(uses_by_op(recording)),
      casts_(recording) {
  const Events& events = trace_.events;
  std::vector<std::int32_t> counts(trace_.layers.size(), 0);
  std::vector<std::size_t> open;
  bool is_again = false;  // a run is of the call that it runs again
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events.kind[e] == EventKind::recompute_begin) is_again = true;
    if (events.kind[e] == EventKind::recompute_end) is_again = false;
    if (is_again) continue;
    if (events.kind[e] == EventKind::layer_forward_begin) {
      const LayerId layer(events.ref[e]);
      open.push_back(calls_.size());
      calls_.push_back({layer, counts[layer.index()]++, EventId(e), EventId()});
    } else if (events.kind[e] == EventKind::layer_forward_end && !open.empty()) {
      calls_[open.back()].end = EventId(e + 1);
      open.pop_back();
    }
  }
}

Result<SegmentFinder::Call> SegmentFinder::find_call(const std::string& name) const {
  std::vector<std::string> names;
  for (const Call& call : calls_) {
    const std::string& layer = trace_.string(trace_.layers.name[call.layer.index()]);
    const bool is_first = call.call == 0;
    if ((is_first && layer == name) || layer + "@" + std::to_string(call.call) == name) {
      if (call.end.valid()) return call;
      return cannot(name, "its forward does not end");
    }
    if (is_first) names.push_back(layer);
  }
  const std::string near = nearest(name, names);
  return bad("the recording has no layer call '" + name + "'",
             near.empty() ? "stowage inspect --by layer lists the layers"
                          : "did you mean '" + near + "'?");
}

std::vector<SegmentFinder::Named> SegmentFinder::calls() const {
  std::vector<Named> named;
  for (const Call& call : calls_) {
    if (!call.end.valid()) continue;
    const std::string& layer = trace_.string(trace_.layers.name[call.layer.index()]);
    const bool is_only = trace_.layers.calls[call.layer.index()] <= 1;
    named.push_back({is_only ? layer : layer + "@" + std::to_string(call.call), layer, call.first,
                     call.end, check_callable(call).ok()});
  }
  return named;
}

std::vector<TensorId> SegmentFinder::passed_at(EventId event) const {
  const LayerTensors& passed = trace_.layer_tensors;
  const auto [first, end] = std::equal_range(passed.event.begin(), passed.event.end(), event);
  const auto begin = passed.tensor.begin();
  return {begin + (first - passed.event.begin()), begin + (end - passed.event.begin())};
}

Status SegmentFinder::check_callable(const Call& call) const {
  const std::vector<EventId>& events = trace_.layer_tensors.event;
  const auto has = [&](EventId event) {
    return std::binary_search(events.begin(), events.end(), event);
  };
  const std::string& layer = trace_.string(trace_.layers.name[call.layer.index()]);
  if (has(call.first) || has(EventId(call.end.value - 1))) return Unit{};
  if (trace_.layer_tensors.size() == 0) {
    if (trace_.schema.major == 1 && trace_.schema.minor < kFirstWithCallables) {
      return cannot(layer,
                    "the recording is of schema 1." + std::to_string(trace_.schema.minor) +
                        ", before 1." + std::to_string(kFirstWithCallables) +
                        ": it does not say what its layers are given",
                    "record the step again");
    }
    return cannot(layer, "the recording does not say what its layers are given",
                  "record the model again, with layers that are callables");
  }
  return cannot(layer, "it marks a scope and is no callable", "name layers within it");
}

// What `from` returns is what `to` is given, and nothing stands between them.
Status SegmentFinder::check_chain(const Call& from, const Call& to) const {
  const std::string& a = trace_.string(trace_.layers.name[from.layer.index()]);
  const std::string& b = trace_.string(trace_.layers.name[to.layer.index()]);
  const auto same = [&](TensorId x, TensorId y) {
    const Tensors& tensors = trace_.tensors;
    return x.valid() && y.valid() && tensors.storage[x.index()].valid() &&
           tensors.storage[x.index()] == tensors.storage[y.index()] &&
           trace_.list(tensors.shape[x.index()]) == trace_.list(tensors.shape[y.index()]) &&
           trace_.list(tensors.strides[x.index()]) == trace_.list(tensors.strides[y.index()]) &&
           tensors.offset[x.index()] == tensors.offset[y.index()];
  };
  const std::vector<TensorId> out = passed_at(EventId(from.end.value - 1));
  const std::vector<TensorId> in = passed_at(to.first);
  const bool fits = out.size() == in.size() && std::equal(out.begin(), out.end(), in.begin(), same);
  if (!fits)
    return cannot(a + kRunOfLayers + b, "'" + b + "' is not given exactly what '" + a + "' returns",
                  kOneByOne);
  for (EventId e = from.end; e < to.first; ++e.value) {
    if (trace_.events.kind[e.index()] == EventKind::free) continue;
    return cannot(a + kRunOfLayers + b,
                  "the model does something between '" + a + "' and '" + b + "'", kOneByOne);
  }
  return Unit{};
}

Status SegmentFinder::find_saved(Segment& segment) const {
  const std::vector<EventId>& packs = trace_.saved.event;
  const auto row_at = [&](EventId event) {
    return SavedId(static_cast<std::size_t>(std::lower_bound(packs.begin(), packs.end(), event) -
                                            packs.begin()));
  };
  const SavedId end_saved = row_at(segment.end);
  for (SavedId s = row_at(segment.first); s < end_saved; ++s.value) {
    segment.saved.push_back(s);
    for (const UnpackId unpack : unpacks_of_[s.index()]) {
      if (trace_.unpacks.event[unpack.index()] < segment.end) {
        return cannot(segment.name, "what it saves is asked for before it ends");
      }
      segment.last_needed = s;
      if (!segment.trigger.valid() || unpack < segment.trigger) segment.trigger = unpack;
    }
  }
  if (!segment.trigger.valid()) {
    return cannot(segment.name, "nothing that it saves is asked for in backward",
                  "leave it out: it holds nothing for backward");
  }
  segment.runs_at = begin_of_run(trace_.unpacks.event[segment.trigger.index()]);
  return Unit{};
}

EventId SegmentFinder::begin_of_run(EventId event) const {
  const std::vector<EventId>& phases = trace_.phases.first_event;
  const auto behind = std::upper_bound(phases.begin(), phases.end(), event);
  const auto phase = static_cast<std::size_t>(behind - phases.begin());
  if (phase == 0 || trace_.phases.kind[phase - 1] != PhaseKind::recompute) return event;
  if (trace_.phases.last_event[phase - 1] < event) return event;
  while (trace_.events.kind[event.index()] != EventKind::recompute_begin) --event.value;
  return event;
}

// A second run would not make it then.
Status SegmentFinder::check_casts(const Segment& segment) const {
  const EventId stop = trace_.saved.event[segment.last_needed.index()];
  for (EventId e = segment.first; e < stop; ++e.value) {
    if (trace_.events.kind[e.index()] != EventKind::alloc) continue;
    if (casts_.held_until(StorageId(trace_.events.ref[e.index()])) < segment.runs_at) continue;
    return cannot(segment.name,
                  "it casts a parameter, and autocast still has that cast where it would run again",
                  "leave it out: keep or offload what it saves");
  }
  return Unit{};
}

Status SegmentFinder::find_uses(Segment& segment) const {
  const auto is_own = [&](StorageId storage) {
    const EventId made = trace_.storages.alloc_event[storage.index()];
    return made.valid() && segment.has(made);
  };
  std::vector<bool> is_input(trace_.storages.size(), false);
  std::vector<bool> reads(trace_.storages.size(), false);
  for (const Segment::Input& each : segment.inputs) {
    const TensorId input = each.tensor;
    const StorageId of = input.valid() ? trace_.tensors.storage[input.index()] : StorageId();
    if (of.valid()) is_input[of.index()] = reads[of.index()] = true;
  }
  const EventId again = segment.runs_at;
  const EventId stop = trace_.saved.event[segment.last_needed.index()];
  for (EventId e = segment.first; e < again; ++e.value) {
    if (trace_.events.kind[e.index()] != EventKind::op_begin) continue;
    for (const std::uint32_t use :
         uses_of_[static_cast<std::size_t>(trace_.events.ref[e.index()])]) {
      const StorageId storage = trace_.tensors.storage[trace_.uses.tensor[use].index()];
      if (!storage.valid() || is_own(storage)) continue;
      const std::string& op =
          trace_.string(trace_.ops.name[static_cast<std::size_t>(trace_.events.ref[e.index()])]);
      if (segment.has(e) && updates_statistics(op) &&
          trace_.storages.storage_class[storage.index()] == StorageClass::buffer) {
        return cannot(segment.name, op + " in it would update its running statistics twice");
      }
      if (writes(trace_.uses.mode[use])) {
        if (segment.has(e)) {
          return cannot(segment.name, op + " in it writes what it did not make",
                        "leave it out, or let layers run again with the one that makes that");
        }
        if (reads[storage.index()]) {
          return cannot(segment.name, op + " writes what it reads before it would run again",
                        "leave it out: keep or offload what it saves");
        }
      }
      if (!segment.has(e) || e > stop || reads[storage.index()]) continue;
      reads[storage.index()] = true;
      const bool is_made = trace_.storages.alloc_event[storage.index()].valid();
      if (!is_made || is_input[storage.index()]) continue;
      if (casts_.has(storage)) {
        return cannot(segment.name,
                      op + " in it reads a cast of a parameter that was made outside "
                           "of it: if autocast cached that, it is gone in backward",
                      "let a run of layers with the one that casts it run again as one");
      }
      segment.captured.push_back(storage);
    }
  }
  return Unit{};
}

Result<Segment> SegmentFinder::find(const std::string& name) const {
  const std::size_t dots = name.find(kRunOfLayers);
  const std::string to_name =
      dots == std::string::npos ? name : name.substr(dots + kRunOfLayers.size());
  const Result<Call> from = find_call(name.substr(0, dots));
  if (!from) return from.error();
  const Result<Call> to = find_call(to_name);
  if (!to) return to.error();
  Segment segment;
  segment.name = name;
  segment.layer = from->layer;
  segment.call = from->call;
  segment.first = from->first;
  segment.end = to->end;
  if (Status status = check_callable(*from); !status) return status.error();
  Call last = *from;
  for (const Call& call : calls_) {
    if (call.first < last.end || last.first == to->first) continue;
    if (Status status = check_callable(call); !status) return status.error();
    if (Status status = check_chain(last, call); !status) return status.error();
    last = call;
    ++segment.calls;
  }
  if (last.first != to->first) {
    return cannot(name, "'" + to_name + "' does not come behind '" + name.substr(0, dots) + "'",
                  "a row goes from an earlier layer to a later one");
  }
  for (const TensorId input : passed_at(segment.first)) {
    segment.inputs.push_back({input, segment.first, segment.layer, segment.call,
                              static_cast<std::int32_t>(segment.inputs.size())});
  }
  if (Status status = find_saved(segment); !status) return status.error();
  if (Status status = find_uses(segment); !status) return status.error();
  if (Status status = check_casts(segment); !status) return status.error();
  return segment;
}

}  // namespace stowage::simulator
