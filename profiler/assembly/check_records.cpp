#include "profiler/assembly/check_records.h"

#include <cstddef>

namespace stowage::profiler {

namespace {

Error bad_pass(const std::string& message) {
  return {ErrorCode::bad_input, message, "", "", ""};
}

}  // namespace

Status check_records(const RawPass& pass, const std::string& name) {
  if (pass.events.size() < 2 || pass.events.front().kind != RawKind::step_begin ||
      pass.events.back().kind != RawKind::step_end) {
    return bad_pass("the " + name + " pass does not run from step begin to step end");
  }
  const auto in_range = [](std::int64_t id, std::size_t size) {
    return id >= 0 && static_cast<std::size_t>(id) < size;
  };
  const Error dangling = bad_pass("the " + name + " pass refers to a record that it does not have");
  for (const RawSaved& saved : pass.saved) {
    if (saved.layer >= 0 && !in_range(saved.layer, pass.layer_paths.size())) return dangling;
  }
  for (const RawUnpack& unpack : pass.unpacks) {
    if (!in_range(unpack.saved, pass.saved.size())) return dangling;
  }
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    if (pass.ops[i].parent >= 0 && !in_range(pass.ops[i].parent, i)) return dangling;
  }
  // Packs, unpacks and ops are numbered by their events.
  std::size_t packs = 0;
  std::size_t unpacks = 0;
  std::size_t ops = 0;
  std::size_t boundaries = 0;
  for (const RawEvent& event : pass.events) {
    bool good = true;
    bool next = true;
    switch (event.kind) {
      case RawKind::pack:
        good = in_range(event.id, pass.saved.size());
        next = static_cast<std::size_t>(event.id) == packs++;
        break;
      case RawKind::unpack:
        good = in_range(event.id, pass.unpacks.size());
        next = static_cast<std::size_t>(event.id) == unpacks++;
        break;
      case RawKind::released:
        good = in_range(event.id, unpacks);
        break;
      case RawKind::hook_gone:
        good = in_range(event.id, packs);
        break;
      case RawKind::layer_forward_begin:
      case RawKind::layer_forward_end:
        ++boundaries;
        [[fallthrough]];
      case RawKind::layer_backward_begin:
      case RawKind::layer_backward_end:
      case RawKind::recompute_begin:
      case RawKind::recompute_end:
        good = in_range(event.id, pass.layer_paths.size());
        break;
      case RawKind::op_begin:
        good = in_range(event.id, pass.ops.size());
        next = static_cast<std::size_t>(event.id) == ops++;
        break;
      case RawKind::op_end:
        good = in_range(event.id, ops);
        break;
      default:
        break;
    }
    if (!good) return dangling;
    if (!next) return bad_pass("records of the " + name + " pass stand out of order");
  }
  for (std::size_t i = 0; i < pass.passed.size(); ++i) {
    if (!in_range(pass.passed[i].boundary, boundaries)) return dangling;
    if (i > 0 && pass.passed[i].boundary < pass.passed[i - 1].boundary) return dangling;
  }
  if (packs != pass.saved.size() || unpacks != pass.unpacks.size() || ops != pass.ops.size()) {
    return bad_pass("the " + name + " pass has records that no event names");
  }
  return Unit{};
}

}  // namespace stowage::profiler
