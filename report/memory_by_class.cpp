#include "report/memory_by_class.h"

#include <algorithm>
#include <array>

namespace stowage::report {
namespace {

constexpr std::size_t kClasses = static_cast<std::size_t>(StorageClass::other) + 1;

struct Change {
  StepPosition at = 0;
  std::size_t storage_class = 0;
  Bytes bytes = 0;
};

std::vector<Change> changes_of(const Trace& trace, const AliveSpans& spans,
                               StepPosition positions) {
  std::vector<Change> changes;
  changes.reserve(2 * spans.all().size());
  for (const AliveSpan& span : spans.all()) {
    const auto c = static_cast<std::size_t>(trace.storages.storage_class[span.storage.index()]);
    const StepPosition begin = std::max(span.begin, StepPosition{0});
    if (begin < positions) changes.push_back({begin, c, span.bytes});
    if (span.end < positions) changes.push_back({span.end, c, -span.bytes});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  return changes;
}

}  // namespace

MemoryByClass memory_by_class(const Trace& trace, const AliveSpans& spans) {
  MemoryByClass out;
  const std::size_t events = trace.events.size();
  if (events == 0) return out;
  const std::vector<Change> changes = changes_of(trace, spans, spans.last_at(events - 1) + 1);
  std::array<bool, kClasses> occurs{};
  for (const Change& change : changes) occurs[change.storage_class] = true;
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < kClasses; ++c) {
    if (!occurs[c]) continue;
    columns.push_back(c);
    out.classes.push_back(static_cast<StorageClass>(c));
  }
  out.bytes.resize(columns.size());
  std::array<Bytes, kClasses> now{};
  std::size_t next = 0;
  const auto go_to = [&](StepPosition position) {
    for (; next < changes.size() && changes[next].at <= position; ++next) {
      now[changes[next].storage_class] += changes[next].bytes;
    }
  };
  bool changed = true;  // ahead of the event, behind the bytes of the last point
  for (std::size_t e = 0; e < events; ++e) {
    const bool changes_here = next < changes.size() && changes[next].at <= spans.last_at(e);
    if (!changed && !changes_here) continue;
    go_to(spans.highest_at(EventId(e)));
    out.event.push_back(EventId(e));
    for (std::size_t i = 0; i < columns.size(); ++i) out.bytes[i].push_back(now[columns[i]]);
    // The bytes may be those amid the event's instructions: then the next event has a point too.
    const std::size_t here = next;
    go_to(spans.last_at(e));
    changed = next != here;
  }
  out.event.shrink_to_fit();
  for (std::vector<Bytes>& bytes : out.bytes) bytes.shrink_to_fit();
  return out;
}

}  // namespace stowage::report
