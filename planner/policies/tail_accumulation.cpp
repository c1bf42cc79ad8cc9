// Gradient accumulation of the step's tail alone: the trunk's forward runs once; the tail (a large
// head and its loss) runs on what the trunk returned, detached, in parts of the batch, forward and
// backward of each, which accumulate the gradient of that; then the trunk's backward runs once with
// it. In PyTorch's forum it is written by hand, with detach().requires_grad_() and
// trunk.backward(detached.grad); here the division is executor/tail.h's. Saved tensors stay.
//
// Of the counts in which the step was recorded (`profile --micro-batches`) the one with the lowest
// peak of requested bytes is taken, of equal ones that of fewer parts.
#include <optional>

#include "planner/policies/policies.h"
#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "simulator/step/structure.h"
#include "simulator/step/unroll.h"

namespace stowage::planner::builtin {
namespace {

constexpr const char* kAny = "any";
constexpr const char* kBest = "best";

using Parts = simulator::Structure::Parts;

Bytes peak_of(const Trace& recording) {
  const simulator::StepIndex index(recording);
  return simulator::replay(index, simulator::resident_schedule(index)).peak_requested;
}

// The tail of this recording that runs in parts, and no more than that; else none.
std::optional<Parts> tail_of(const Trace& recording) {
  const std::vector<Parts> parts = simulator::recorded_parts(recording);
  if (parts.size() != 1 || parts.front().segment == simulator::kWholeStep) return std::nullopt;
  return parts.front();
}

}  // namespace

PolicyInfo tail_accumulation_info() {
  PolicyInfo info{"tail_accumulation",
                  "The step's tail runs in parts of the batch, forward and backward, then the rest",
                  {{"segment", kAny, "the layer that the tail begins with"},
                   {"parts", kBest, "how many, as the step was recorded; best: the lowest peak"}}};
  info.divides = Divides::always;
  return info;
}

Rules tail_accumulation_rules(const simulator::StepIndex& index, const Options& options) {
  const std::string& segment = options.at("segment");
  std::int32_t count = 0;  // best
  if (options.at("parts") != kBest) {
    const Result<std::int32_t> parts = whole_number(options, "parts", 2, "parts");
    if (!parts) return parts.error();
    count = *parts;
  }
  const auto is_asked = [&](const std::optional<Parts>& tail) {
    return tail && (segment == kAny || tail->segment == segment) &&
           (count == 0 || tail->parts == count);
  };
  PolicyRules rules{{keep_the_rest()}, {}, {}};
  const Trace& recording = index.step().recording();
  if (const std::optional<Parts> tail = tail_of(recording); is_asked(tail)) {
    rules.micro_batches = {{tail->segment, tail->parts}};
    return rules;
  }
  std::optional<Parts> best;
  Bytes lowest = 0;
  std::string recorded;
  for (const std::shared_ptr<const Trace>& divided : recording.divided) {
    const std::optional<Parts> tail = tail_of(*divided);
    if (tail) {
      recorded +=
          (recorded.empty() ? "" : ", ") + tail->segment + "=" + std::to_string(tail->parts);
    }
    if (!is_asked(tail)) continue;
    const Bytes peak = peak_of(*divided);
    const bool is_lower = peak < lowest || (peak == lowest && best && tail->parts < best->parts);
    if (best && !is_lower) continue;
    best = tail;
    lowest = peak;
  }
  if (!best) {
    const std::string asked =
        (segment == kAny ? "its tail" : "the tail from " + segment) +
        (count == 0 ? " in parts" : " in " + std::to_string(count) + " parts");
    return Error{ErrorCode::bad_input,
                 "policy tail_accumulation: the step was not recorded with " + asked, "", "",
                 recorded.empty() ? "stowage profile --micro-batches head=2,4,8 records it, too"
                                  : "it was in " + recorded};
  }
  rules.micro_batches = {{best->segment, best->parts}};
  if (lowest >= peak_of(recording)) {
    rules.notes.push_back("policy tail_accumulation: the peak lies elsewhere, " + best->segment +
                          " in " + std::to_string(best->parts) + " parts does not lower it");
  }
  return rules;
}

}  // namespace stowage::planner::builtin
