// An option is one way to treat something for the whole step, a candidate decision: what it holds
// on the device and when, which copies and how much compute it adds, and what it needs on the
// device. Search, memory floor and time bound work on options alone, so a further decision is a
// further option.
//
// Positions: 2e is the moment ahead of event e; at an anchor, when the instructions ahead of it are
// done (a load on demand has its buffer). 2e+1 is the moment when event e itself and all
// instructions at it are done. Nothing is allocated or freed by an anchor's own action, so no
// moment between is higher. Spans are half-open ranges of positions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "traces/ids.h"
#include "traces/units.h"

namespace stowage::planner {

// keep: as recorded. Of a storage with saved tensors, shared: one copy out and back; separate: one
// copy a saved view, one back an unpack ("share": false). Of parameters, forward, backward and
// always: they stream in that mode (simulator/plan/stream_modes.h). Of optimizer state, always: it
// streams; of a gradient: it is at home but for what uses it. again: some structure of the
// step computes it again in backward; which one is not said, so it is an option of bounds alone
// (planner/allowed.h).
enum class Choice : std::uint8_t { keep, shared, separate, forward, backward, always, again };
inline constexpr std::size_t kChoices = 7;
// Of parameters that stream, those with the fewest copies first.
inline constexpr std::array kStreamChoices = {Choice::forward, Choice::backward, Choice::always};

// What is decided about together: saved tensors of one storage, or the parameters, the optimizer's
// state or the gradients of a layer. Prefixes and keys are made of it, by number.
enum class Moves : std::uint8_t { saved_tensor, parameters, optimizer_state, gradients };

// What leaves in this way too, or stays where that is `keep`: a layer that is away behind forward
// and behind backward streams always. `keep`: it cannot.
[[nodiscard]] inline Choice with(Choice choice, Choice too) {
  if (choice == Choice::keep) return too;
  const bool both = (choice == Choice::forward && too == Choice::backward) ||
                    (choice == Choice::backward && too == Choice::forward);
  return both ? Choice::always : Choice::keep;
}
// The same the other way: not in this way.
[[nodiscard]] inline Choice without(Choice choice, Choice that) {
  if (choice != Choice::always || that == Choice::always) return Choice::keep;
  return that == Choice::forward ? Choice::backward : Choice::forward;
}

struct FootprintSpan {
  std::int32_t first = 0;
  std::int32_t last = 0;  // one behind
  Bytes bytes = 0;
};

// One transfer. Out: it may start at `position`; back: it is awaited there. In order of positions.
struct OptionCopy {
  std::int32_t position = 0;
  Bytes bytes = 0;
};

struct Option {
  Choice choice = Choice::keep;
  // When everything leaves as early and comes back as late as it can ("tight"): no plan with this
  // choice holds fewer bytes at any position.
  std::vector<FootprintSpan> spans;
  std::vector<OptionCopy> out;
  std::vector<OptionCopy> back;
  // Of a gradient: where it is made. Ahead of that the option frees what the step before left,
  // which never comes back.
  std::int32_t made = 0;
  // Of `again`: the op that makes it, and the least work of running that up to where it is saved.
  OpId made_by;
  Nanoseconds compute = 0;

  [[nodiscard]] Bytes bytes_at(std::int32_t position) const {
    Bytes bytes = 0;
    for (const FootprintSpan& span : spans) {
      if (span.first <= position && position < span.last) bytes += span.bytes;
    }
    return bytes;
  }
};

// The option of that choice, null when there is none. `keep` is always there, first.
[[nodiscard]] inline const Option* find(const std::vector<Option>& options, Choice choice) {
  for (const Option& option : options) {
    if (option.choice == choice) return &option;
  }
  return nullptr;
}

}  // namespace stowage::planner
