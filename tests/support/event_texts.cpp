#include "tests/support/event_texts.h"

#include <algorithm>
#include <cstddef>

namespace stowage::testing {
namespace {

std::string event_text(const Trace& trace, std::size_t event) {
  const EventKind kind = trace.events.kind[event];
  const auto ref = static_cast<std::size_t>(std::max(trace.events.ref[event], 0));
  switch (kind) {
    case EventKind::alloc:
    case EventKind::free:
      return std::string(name_of(kind)) + " " + std::to_string(trace.storages.bytes[ref]);
    case EventKind::pack:
      return "pack " + trace.string(trace.saved.site[ref]);
    case EventKind::unpack: {
      const SavedId saved = trace.unpacks.saved[ref];
      return "unpack " + trace.string(trace.saved.site[saved.index()]) + " of pack " +
             std::to_string(saved.value);
    }
    case EventKind::op_begin:
    case EventKind::op_end:
      return std::string(name_of(kind)) + " " + trace.string(trace.ops.name[ref]);
    case EventKind::layer_forward_begin:
    case EventKind::layer_forward_end:
    case EventKind::recompute_begin:
    case EventKind::recompute_end:
      return std::string(name_of(kind)) + " " + trace.string(trace.layers.name[ref]);
    default:
      return name_of(kind);
  }
}

}  // namespace

std::vector<std::string> texts_of(const Trace& trace) {
  std::vector<std::string> texts;
  for (std::size_t e = 0; e < trace.events.size(); ++e) texts.push_back(event_text(trace, e));
  return texts;
}

}  // namespace stowage::testing
