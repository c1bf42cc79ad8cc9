#include "simulator/placement/hand_out_text.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "traces/enum_names.h"
#include "traces/size_text.h"

namespace stowage::simulator {
namespace {

// What is allocated at the event, or ahead of it.
std::string allocation_at(const Trace& trace, EventId event) {
  if (!event.valid()) return "the step's end";
  const std::size_t e = event.index();
  const auto in_layer = [&](LayerId layer) {
    return layer.valid() ? " in " + trace.string(trace.layers.name[layer.index()]) : std::string();
  };
  if (trace.events.kind[e] == EventKind::alloc) {
    const auto storage = static_cast<std::size_t>(trace.events.ref[e]);
    const OpId op = trace.storages.alloc_op[storage];
    return (op.valid() ? trace.string(trace.ops.name[op.index()]) : std::string("no op")) +
           in_layer(trace.storages.layer[storage]);
  }
  return std::string("what comes back at a ") + name_of(trace.events.kind[e]);
}

}  // namespace

std::vector<std::string> surprises_text(const Trace& trace, const HandOutReport& report) {
  std::vector<std::pair<std::string, std::int64_t>> counted;
  const auto add = [&](const std::string& text, std::int64_t times) {
    const auto same = std::find_if(counted.begin(), counted.end(),
                                   [&](const auto& each) { return each.first == text; });
    if (same == counted.end()) {
      counted.emplace_back(text, times);
    } else {
      same->second += times;
    }
  };
  for (const HandOutReport::Conflict& each : report.first_conflicts) {
    const std::string owner = each.owner_event.valid()
                                  ? "what " + allocation_at(trace, each.owner_event) + " made"
                                  : "what was loaded";
    add(owner + " is kept longer than planned: its bytes are those of " +
            (each.event.valid() ? allocation_at(trace, each.event) : "what is loaded"),
        each.times);
  }
  for (const HandOutReport::Unforeseen& each : report.first_unforeseen) {
    add(format_bytes(each.bytes) + (each.op.empty() ? "" : " of " + each.op) +
            " were not foreseen, ahead of " + allocation_at(trace, each.ahead_of),
        each.times);
  }
  std::vector<std::string> lines;
  for (const auto& [text, times] : counted) {
    lines.push_back(times == 1 ? text : text + " (" + std::to_string(times) + " times)");
  }
  return lines;
}

}  // namespace stowage::simulator
