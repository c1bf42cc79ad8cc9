#include "report/host_use.h"

#include <algorithm>
#include <map>

namespace stowage::report {

Bytes HostUse::most_in(Nanoseconds begin, Nanoseconds end) const {
  auto at =
      std::upper_bound(points.begin(), points.end(), begin,
                       [](Nanoseconds time, const Point& point) { return time < point.time; });
  Bytes bytes = at == points.begin() ? 0 : std::prev(at)->bytes;
  for (; at != points.end() && at->time < end; ++at) bytes = std::max(bytes, at->bytes);
  return bytes;
}

HostUse host_use(const simulator::Schedule& schedule, const simulator::ReplayDetail& detail) {
  struct There {
    Nanoseconds begin = -1;
    Nanoseconds end = 0;
  };
  std::vector<There> spans(schedule.tenants.size());  // by tenant
  for (const simulator::Transfer& each : detail.transfers) {
    There& span = spans[schedule.stays[each.stay.index()].tenant.index()];
    if (each.is_store && (span.begin < 0 || each.start < span.begin)) span.begin = each.start;
    span.end = std::max(span.end, each.end);
  }
  std::map<Nanoseconds, Bytes> changes{{0, 0}};
  for (std::size_t t = 0; t < spans.size(); ++t) {
    const simulator::Tenant& tenant = schedule.tenants[t];
    if (tenant.has_own_home) {
      changes[0] += tenant.bytes;
    } else if (spans[t].begin >= 0) {
      changes[spans[t].begin] += tenant.bytes;
      changes[spans[t].end] -= tenant.bytes;
    }
  }
  HostUse use;
  Bytes bytes = 0;
  for (const auto& [time, change] : changes) {
    bytes += change;
    if (!use.points.empty() && change == 0) continue;
    use.points.push_back({time, bytes});
    use.most = std::max(use.most, bytes);
  }
  return use;
}

}  // namespace stowage::report
