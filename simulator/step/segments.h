// Segments of a recorded step: layer calls that can run again in backward, and why others cannot.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "simulator/step/grouped.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// A layer call, or several where each is given exactly what the one before it returned. In forward
// it runs without saving; the first time that backward asks for something that it would have saved,
// it runs again, up to the last tensor that backward asks for.
struct Segment {
  std::string name;  // as a structure names it: "layers.3", "embed@2", "layers.0..layers.3"
  LayerId layer;     // of its first call
  std::int32_t call = 0;
  std::int32_t calls = 1;  // of layers, one after the other
  EventId first;  // [first, end): from the first call's layer_forward_begin to the last one's end
  EventId end;
  SavedId first_saved;  // [first_saved, end_saved) are packed in it
  SavedId end_saved;
  SavedId last_needed;              // the last one of them that is unpacked
  UnpackId trigger;                 // their first unpack; it runs again ahead of that
  std::vector<TensorId> inputs;     // what it is given; -1 = an undefined tensor
  std::vector<StorageId> captured;  // what else it uses that was made in the step ahead of it

  [[nodiscard]] bool has(EventId event) const { return first <= event && event < end; }
  [[nodiscard]] bool saves(SavedId saved) const {
    return first_saved <= saved && saved < end_saved;
  }
};

// What a recording says of its segments. It must outlive this. Cost: O(recording).
class SegmentFinder {
 public:
  explicit SegmentFinder(const Trace& recording);

  // Errors (bad_input), each with its reason: no layer call of this name; a scope without a
  // callable, or a recording of an earlier version; what it saves is not asked for in backward; it
  // writes what it did not make; what it reads is written before it would run again.
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
  [[nodiscard]] std::vector<TensorId> passed_at(EventId event) const;

  const Trace& trace_;
  std::vector<Call> calls_;  // in order of their begin
  Grouped<UnpackId> unpacks_of_;
  Grouped<std::uint32_t> uses_of_;  // by op
};

}  // namespace stowage::simulator
