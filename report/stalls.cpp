#include "report/stalls.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "report/alive.h"
#include "report/moment.h"
#include "report/transfers.h"
#include "report/words.h"
#include "simulator/lowering/memory_profile.h"
#include "simulator/schedule/host_updates.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

constexpr std::int64_t kFasterAtMost = 100;

std::string format_rate(std::int64_t bytes_per_second) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.3g GB/s", static_cast<double>(bytes_per_second) / 1e9);
  return buffer;
}

std::int64_t rate_of(Bytes bytes, Nanoseconds time) {
  return time > 0 ? static_cast<std::int64_t>(Wide{bytes} * 1'000'000'000 / time) : 0;
}

// Copies of one lane that follow each other without a gap, up to one of them.
struct Run {
  Nanoseconds begin = 0;
  Nanoseconds idle_before = 0;  // how long the lane had nothing to do ahead of it
  std::int64_t copies = 0;
  Bytes bytes = 0;
};

class Explainer {
 public:
  Explainer(const simulator::StepIndex& index, const simulator::Schedule& schedule,
            const simulator::ReplayDetail& detail, std::optional<Bytes> budget)
      : step_(index.step()),
        trace_(index.trace()),
        schedule_(schedule),
        detail_(detail),
        budget_(budget),
        updates_(simulator::host_updates(index.trace(), schedule)),
        memory_(detail.requested) {
    index_transfers();
    find_earliest();
  }

  StallRow explain(const simulator::Stall& stall, std::size_t row_of_stall) {
    StallRow row;
    row.stall = static_cast<std::int32_t>(row_of_stall);
    row.stay = stall.stay;
    row.storage = schedule_.tenant(stall.stay).storage;
    row.site = name_of_copy(trace_, schedule_, stall.stay);
    row.copy_back = !stall.is_store;
    row.bytes = schedule_.tenant(stall.stay).bytes;
    const Moment at = moment_at(trace_, stall.event);
    row.event = stall.event;
    row.layer = at.layer;
    row.phase = at.phase ? stowage::name_of(*at.phase) : "step";
    row.start = stall.start;
    row.duration = stall.duration;
    row.transfer = transfer_of(stall);
    STOWAGE_ASSERT(row.transfer >= 0);
    const auto t = static_cast<std::size_t>(row.transfer);
    const simulator::Transfer& transfer = detail_.transfers[t];
    row.ready = transfer.ready;
    row.copy_start = transfer.start;
    row.copy_end = transfer.end;
    row.earliest = std::min(earliest_of(stall, transfer.ready), transfer.ready);
    row.copies_ahead = runs_[t].copies - 1;
    row.bytes_ahead = runs_[t].bytes - row.bytes;
    if (stall.is_update) {
      explain_update(row);
      return row;
    }
    judge(row);
    propose(row);
    return row;
  }

 private:
  void explain_update(StallRow& row) const {
    const auto is_it = [&](const auto& each) { return each.stay == row.stay; };
    const auto update = std::find_if(updates_.begin(), updates_.end(), is_it);
    STOWAGE_ASSERT(update != updates_.end());
    const auto number = static_cast<std::size_t>(update - updates_.begin());
    const simulator::HostUpdateTime& time = detail_.host_updates[number];
    row.is_update = true;
    row.storage = update->of;
    row.site = parameter_text(*update);
    row.bytes = update->bytes;
    row.ready = row.earliest = time.ready;
    row.copy_start = time.start;
    row.copy_end = time.end;
    row.copies_ahead = 0;
    row.bytes_ahead = 0;
    for (std::size_t i = number; i-- > 0 && detail_.host_updates[i].end > time.ready;) {
      ++row.copies_ahead;
      row.bytes_ahead += updates_[i].bytes;
    }
    const std::string took = format_bytes(row.bytes) +
                             " of parameter, gradient and state take the "
                             "host " +
                             format_time(time.end - time.start);
    if (2 * std::min(row.queued(), row.duration) >= row.duration) {
      row.why = Lateness::host_busy;
      row.why_text = "its gradient had come, and it waited " + format_time(row.queued()) +
                     " behind " + count_of(row.copies_ahead, "update") + " on the host (" +
                     format_bytes(row.bytes_ahead) + ")";
    } else {
      row.why = Lateness::host_slow;
      row.why_text = took + ", from where its gradient has come";
    }
    row.remedies.push_back(on_device(*update));
  }

  [[nodiscard]] Remedy on_device(const simulator::HostUpdate& update) const {
    Remedy device;
    device.kind = RemedyKind::update_on_device;
    for (const TenantId each : update.state) {
      device.bytes += schedule_.tenants[each.index()].bytes;
    }
    device.text = "have the device update the " + parameter_text(update);
    if (device.bytes > 0) device.text += " (" + format_bytes(device.bytes) + " of state)";
    return device;
  }
  [[nodiscard]] std::string parameter_text(const simulator::HostUpdate& update) const {
    const LayerId layer = trace_.storages.layer[update.of.index()];
    return "parameter of " +
           (layer.valid() ? trace_.string(trace_.layers.name[layer.index()]) : std::string("-"));
  }

  void index_transfers() {
    for (auto& rows : transfers_) rows.assign(schedule_.stays.size(), -1);
    std::array<Run, 2> run{};
    std::array<Nanoseconds, 2> end = {0, 0};
    for (std::size_t i = 0; i < detail_.transfers.size(); ++i) {
      const simulator::Transfer& each = detail_.transfers[i];
      transfers_[each.is_store ? 1 : 0][each.stay.index()] = static_cast<std::int32_t>(i);
      const Bytes bytes = schedule_.tenant(each.stay).bytes;
      if (mode_of_copy(schedule_, each.stay, each.is_store) == simulator::CopyMode::compute) {
        runs_.push_back({each.start, 0, 1, bytes});
        continue;
      }
      Run& at = run[each.is_store ? 0 : 1];
      Nanoseconds& until = end[each.is_store ? 0 : 1];
      if (at.copies == 0 || each.start > until || each.start == each.ready) {
        at = {each.start, each.start - until, 0, 0};
      }
      ++at.copies;
      at.bytes += bytes;
      until = std::max(until, each.end);
      runs_.push_back(at);
    }
  }

  [[nodiscard]] std::int32_t transfer_of(const simulator::Stall& stall) const {
    return transfers_[stall.is_store ? 1 : 0][stall.stay.index()];
  }

  // When what a load reads is there: behind the last stay of its tenant that ended ahead of it, and
  // that one's store.
  void find_earliest() {
    load_after_.assign(schedule_.stays.size(), 0);
    std::vector<Nanoseconds> left(schedule_.tenants.size(), 0);
    for (const simulator::Instruction& each : schedule_.instructions) {
      const simulator::Stay& stay = schedule_.stays[each.stay.index()];
      Nanoseconds& until = left[stay.tenant.index()];
      if (each.action == simulator::Action::load) load_after_[each.stay.index()] = until;
      // Stays that serve unpacks may overlap: what these load is there since the made one left.
      if (each.action != simulator::Action::evict || !stay.unpacks.empty()) continue;
      until = detail_.time[each.anchor.event.index()];
      const std::int32_t store = transfers_[1][each.stay.index()];
      if (!stay.is_made || store < 0) continue;
      until = std::max(until, detail_.transfers[static_cast<std::size_t>(store)].end);
    }
  }

  [[nodiscard]] Nanoseconds earliest_of(const simulator::Stall& stall, Nanoseconds ready) const {
    return stall.is_store ? ready : load_after_[stall.stay.index()];
  }

  // Requested bytes above the budget if the copy's buffer were taken `earlier` than it is.
  [[nodiscard]] Bytes over_budget(const StallRow& row, Nanoseconds earlier) const {
    if (!budget_ || !row.copy_back) return 0;
    const std::size_t first = event_at(detail_.time, row.ready - earlier).index();
    const std::size_t last = event_at(detail_.time, row.ready).index();
    const Bytes most = memory_.max(first, std::max(last, first + 1)) + row.bytes;
    return std::max<Bytes>(most - *budget_, 0);
  }

  void judge(StallRow& row) const {
    const Nanoseconds copy = row.copy_end - row.copy_start;
    const Nanoseconds behind = std::min(row.queued(), row.duration);
    const std::string took = format_bytes(row.bytes) + " take " + format_time(copy);
    if (mode_of_copy(schedule_, row.stay, !row.copy_back) != simulator::CopyMode::lane) {
      row.why = Lateness::in_line;
      row.why_text = "its copy is not on a lane, compute stands until it is done: " + took;
    } else if (2 * behind >= row.duration) {
      row.why = Lateness::lane_busy;
      row.why_text = "it queued " + format_time(row.queued()) + " behind " +
                     copies_text(row.copies_ahead) + " (" + format_bytes(row.bytes_ahead) + ")";
    } else if (copy > row.start - row.earliest) {
      row.why = Lateness::too_large;
      row.why_text = took + ", of the " +
                     format_time(std::max<Nanoseconds>(row.start - row.earliest, 0)) +
                     " from where they are there to where they are needed";
    } else {
      const Bytes over = over_budget(row, std::min(row.duration, row.ready - row.earliest));
      row.why = over > 0 ? Lateness::no_room : Lateness::started_late;
      row.why_text = took + ", it started " +
                     format_time(std::max<Nanoseconds>(row.start - row.copy_start, 0)) +
                     " ahead of its use";
      if (over > 0) {
        row.why_text += "; any earlier would be " + format_bytes(over) + " over the budget";
      }
    }
  }

  static std::string copies_text(std::int64_t count) {
    return count == 1 ? "1 copy" : with_commas(count) + " copies";
  }

  void propose(StallRow& row) const {
    if (row.why == Lateness::in_line) {
      Remedy lane;
      lane.kind = RemedyKind::use_lane;
      lane.text = "copy it on a lane";
      row.remedies.push_back(std::move(lane));
    } else {
      propose_earlier(row);
      propose_link(row);
    }
    // What the host updates, and with what, leaves for that whatever else is said of it.
    const TenantId tenant = schedule_.stays[row.stay.index()].tenant;
    const auto update = std::find_if(updates_.begin(), updates_.end(), [&](const auto& each) {
      return each.parameter == tenant || each.gradient == tenant;
    });
    if (update != updates_.end()) return row.remedies.push_back(on_device(*update));
    Remedy keep;
    keep.kind = RemedyKind::keep;
    keep.bytes = trace_.storages.bytes[row.storage.index()];
    keep.text = "keep " + (serves_saved(schedule_, row.stay) ? row.site : "the " + row.site) +
                " on the device (" + format_bytes(keep.bytes) + ")";
    row.remedies.push_back(std::move(keep));
  }

  // The whole run that it queued in moves; the lane must be idle ahead of that.
  void propose_earlier(StallRow& row) const {
    const Run& run = runs_[static_cast<std::size_t>(row.transfer)];
    const bool queued = row.why == Lateness::lane_busy;
    if (row.ready - row.earliest < row.duration || run.idle_before < row.duration) return;
    Remedy remedy;
    remedy.earlier = row.duration;
    remedy.start_at = event_at(detail_.time, (queued ? run.begin : row.ready) - row.duration);
    remedy.over = over_budget(row, row.duration);
    remedy.text = "start it ";
    if (queued) remedy.text += "and the " + copies_text(row.copies_ahead) + " ahead of it ";
    remedy.text +=
        format_time(row.duration) + " earlier, at " + place(moment_at(step_, remedy.start_at));
    if (remedy.over > 0) remedy.text += " (" + format_bytes(remedy.over) + " over the budget)";
    row.remedies.push_back(std::move(remedy));
  }

  void propose_link(StallRow& row) const {
    const Run& run = runs_[static_cast<std::size_t>(row.transfer)];
    const Nanoseconds window = row.start - run.begin;
    if (window <= 0 || (row.copy_end - run.begin) / window >= kFasterAtMost) return;
    Remedy remedy;
    remedy.kind = RemedyKind::faster_link;
    remedy.bytes_per_second = rate_of(run.bytes, window);
    const std::string moved = format_rate(rate_of(run.bytes, row.copy_end - run.begin));
    const std::string enough = format_rate(remedy.bytes_per_second);
    remedy.text = enough == moved
                      ? "a link that is a little faster here (it moved " + moved + ")"
                      : "a link that moves " + enough + " here (it moved " + moved + ")";
    row.remedies.push_back(std::move(remedy));
  }

  const simulator::Step& step_;
  const Trace& trace_;
  const simulator::Schedule& schedule_;
  const simulator::ReplayDetail& detail_;
  std::optional<Bytes> budget_;
  const std::vector<simulator::HostUpdate> updates_;  // as detail_.host_updates
  simulator::MemoryProfile memory_;
  std::array<std::vector<std::int32_t>, 2> transfers_;  // rows by stay: loads, stores
  std::vector<Run> runs_;                               // by transfer
  std::vector<Nanoseconds> load_after_;                 // by stay
};

}  // namespace

const char* name_of(Lateness value) {
  switch (value) {
    case Lateness::lane_busy:
      return "lane_busy";
    case Lateness::started_late:
      return "started_late";
    case Lateness::no_room:
      return "no_room";
    case Lateness::too_large:
      return "too_large";
    case Lateness::in_line:
      return "in_line";
    case Lateness::host_busy:
      return "host_busy";
    case Lateness::host_slow:
      return "host_slow";
  }
  STOWAGE_ASSERT(false && "unknown lateness");
}

const char* name_of(RemedyKind value) {
  switch (value) {
    case RemedyKind::start_earlier:
      return "start_earlier";
    case RemedyKind::faster_link:
      return "faster_link";
    case RemedyKind::keep:
      return "keep";
    case RemedyKind::use_lane:
      return "use_lane";
    case RemedyKind::update_on_device:
      return "update_on_device";
  }
  STOWAGE_ASSERT(false && "unknown remedy");
}

std::vector<StallRow> explain_stalls(const simulator::StepIndex& index,
                                     const simulator::Schedule& schedule,
                                     const simulator::ReplayResult& result,
                                     const simulator::ReplayDetail& detail,
                                     std::optional<Bytes> budget) {
  std::vector<StallRow> rows;
  if (result.stalls.empty()) return rows;
  Explainer explainer(index, schedule, detail, budget);
  for (std::size_t i = 0; i < result.stalls.size(); ++i) {
    rows.push_back(explainer.explain(result.stalls[i], i));
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const StallRow& a, const StallRow& b) { return a.duration > b.duration; });
  return rows;
}

}  // namespace stowage::report
