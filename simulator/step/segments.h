// Segments of a recorded step: what can run again in backward as one, and why other layer calls
// cannot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/grouped.h"
#include "simulator/step/parameter_casts.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// Traces of schema 1.x before this minor do not say what layers are given.
inline constexpr int kFirstWithCallables = 7;

// Between the first and the last layer of a run, in its name: "layers.0..layers.3".
inline const std::string kRunOfLayers = "..";

// Of one of two grains. Layer calls: one, or several where each is given exactly what the one
// before it returned; in forward they run without saving, and the first time that backward asks for
// something that they would have saved they run again, up to the last tensor that backward asks
// for. A chain: primitive ops of the forward (simulator/step/op_chains.h); in forward some of what
// is saved of their results is given up, and the first time that backward asks for some of it, the
// ops run again, below autograd.
struct Segment {
  // What it is given. Its pack stands behind the event where the segment, or the first op of a
  // chain that reads it, begins.
  struct Input {
    TensorId tensor;  // -1 = an undefined one
    EventId event;
    LayerId layer;  // site of its pack: call number `call` of the layer, input number `number`
    std::int32_t call = 0;
    std::int32_t number = 0;
  };

  std::string name;  // as a structure names it: "layers.3", "embed@2", "layers.0..layers.3"; of a
                     // chain: the site that triggers it
  std::string
      entry;      // that names it in the structure: "/recompute/3", "/ops/0"; errors point there
  LayerId layer;  // of its first call, or of its trigger's site
  std::int32_t call = 0;
  std::int32_t calls = 1;  // of layers, one after the other; 0 = a chain
  EventId first;  // [first, end): from the first call's layer_forward_begin to the last one's end,
  EventId end;    // or from the first op's begin to the last one's end
  std::vector<OpId> ops;       // of a chain, in order
  std::vector<SavedId> saved;  // that it gives up, sorted: all that is packed in it; of a chain:
                               // those that it makes again
  std::vector<OpId> made_by;   // likewise: behind which op each is what it was when it was saved
  SavedId last_needed;         // the last one of them that is unpacked
  UnpackId trigger;            // their first unpack
  EventId runs_at;             // it runs again ahead of that, or of the run of another that asks
  std::vector<Input> inputs;
  std::vector<StorageId> captured;  // what else it uses that was made in the step ahead of it
  // Events [begin, end] of runs of other segments, which lie within it in forward: what they read
  // of what it makes is what its own run made, which is ahead of theirs. In order.
  std::vector<std::pair<EventId, EventId>> inner_runs;

  [[nodiscard]] bool is_chain() const { return calls == 0; }
  [[nodiscard]] bool has(EventId event) const { return first <= event && event < end; }
  [[nodiscard]] bool saves(SavedId each) const {
    return std::binary_search(saved.begin(), saved.end(), each);
  }
};

// What a recording says of its segments. It must outlive this. Cost: O(recording).
class SegmentFinder {
 public:
  explicit SegmentFinder(const Trace& recording);

  // Errors (bad_input), each with its reason: no layer call of this name; a scope without a
  // callable, or a recording of an earlier version; what it saves is not asked for in backward; it
  // writes what it did not make; what it reads is written before it would run again; it reads a
  // cast of a parameter that was made outside of it, or makes one that autocast still has where it
  // would run again.
  // Cost: O(events and uses from the segment's begin to its trigger).
  [[nodiscard]] Result<Segment> find(const std::string& name) const;

  // Layer calls in order of their begin; `name` is what find() takes.
  struct Named {
    std::string name;
    std::string layer;
    EventId first;  // [first, end)
    EventId end;
    bool is_callable = false;  // no scope: what it is given is known
  };
  [[nodiscard]] std::vector<Named> calls() const;

 private:
  struct Call {
    LayerId layer;
    std::int32_t call = 0;
    EventId first;
    EventId end;
  };
  [[nodiscard]] Result<Call> find_call(const std::string& name) const;
  [[nodiscard]] Status check_callable(const Call& call) const;
  [[nodiscard]] Status check_chain(const Call& from, const Call& to) const;
  [[nodiscard]] Status find_saved(Segment& segment) const;
  [[nodiscard]] Status find_uses(Segment& segment) const;
  // The begin of the run that the event is in, or the event itself.
  [[nodiscard]] EventId begin_of_run(EventId event) const;
  [[nodiscard]] Status check_casts(const Segment& segment) const;
  [[nodiscard]] std::vector<TensorId> passed_at(EventId event) const;

  const Trace& trace_;
  std::vector<Call> calls_;  // in order of their begin
  Grouped<UnpackId> unpacks_of_;
  Grouped<std::uint32_t> uses_of_;  // by op
  ParameterCasts casts_;
};

}  // namespace stowage::simulator
