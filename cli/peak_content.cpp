#include "cli/peak_content.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "cli/inspect_report.h"
#include "simulator/lifetimes.h"

namespace stowage::cli {
namespace {

// Positions order events and instructions: an instruction stands behind its event, ahead of the
// next one, instructions of one event in their order.
using Position = std::int64_t;
constexpr Position kNever = std::numeric_limits<Position>::max();
constexpr Position kBefore = -1;

struct Stay {
  Holding holding = Holding::original;
  StorageId storage;
  SavedId saved;  // of a reloaded copy: the first that it serves
  Bytes bytes = 0;
  Position begin = kBefore;
  Position end = kNever;  // the first position at which it is gone
};

class Stays {
 public:
  Stays(const simulator::TraceIndex& index, const simulator::Schedule& schedule)
      : trace_(index.trace()), schedule_(schedule) {
    // Instructions are in the order of their events, so the ones ahead of an event are a prefix.
    ahead_.assign(trace_.events.size() + 1, 0);
    for (const simulator::Instruction& each : schedule.instructions) {
      ++ahead_[each.anchor.event.index() + 1];
    }
    for (std::size_t e = 1; e < ahead_.size(); ++e) ahead_[e] += ahead_[e - 1];
    add_storages();
    add_buffers();
    add_residencies();
  }

  [[nodiscard]] const std::vector<Stay>& all() const { return stays_; }
  [[nodiscard]] Position at_event(std::size_t event) const {
    return static_cast<Position>(event) + ahead_[event];
  }
  // The event at which, or behind whose action, a position is.
  [[nodiscard]] EventId event_of(Position position) const {
    std::size_t low = 0;
    std::size_t high = trace_.events.size();
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (at_event(middle) <= position ? low : high) = middle;
    }
    return EventId(low);
  }

  // The first position with the most bytes.
  [[nodiscard]] Position highest() const {
    std::vector<Bytes> change(trace_.events.size() + schedule_.instructions.size() + 1, 0);
    for (const Stay& stay : stays_) {
      change[static_cast<std::size_t>(std::max(stay.begin, Position{0}))] += stay.bytes;
      if (stay.end != kNever) change[static_cast<std::size_t>(stay.end)] -= stay.bytes;
    }
    Bytes now = 0;
    Bytes most = std::numeric_limits<Bytes>::min();
    Position best = 0;
    for (std::size_t p = 0; p + 1 < change.size(); ++p) {
      now += change[p];
      if (now > most) {
        most = now;
        best = static_cast<Position>(p);
      }
    }
    return best;
  }

 private:
  [[nodiscard]] Position at_instruction(std::size_t i) const {
    const auto event = static_cast<Position>(schedule_.instructions[i].anchor.event.index());
    return event + 1 + static_cast<Position>(i);
  }
  [[nodiscard]] Position behind_event(EventId event) const {
    if (!event.valid() || event.index() + 1 >= trace_.events.size()) return kNever;
    return at_event(event.index() + 1);
  }

  void add_storages() {
    std::vector<Position> leaves(trace_.storages.size(), kBefore);
    for (const simulator::Departure& departure : simulator::departures(trace_, schedule_)) {
      Position& end = leaves[departure.storage.index()];
      end = behind_event(departure.event);
      if (departure.instruction >= 0) {
        end = at_instruction(static_cast<std::size_t>(departure.instruction));
      }
    }
    std::vector<std::uint8_t> streams(trace_.storages.size(), 0);
    for (const auto& parameter : schedule_.parameters) streams[parameter.storage.index()] = 1;
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      if (trace_.storages.device[s] != 0 || streams[s] != 0) continue;
      Stay stay{.storage = StorageId(s), .saved = {}, .bytes = trace_.storages.bytes[s]};
      const EventId made = trace_.storages.alloc_event[s];
      const EventId freed = trace_.storages.free_event[s];
      if (made.valid()) stay.begin = at_event(made.index());
      if (freed.valid()) stay.end = at_event(freed.index());
      if (leaves[s] != kBefore) stay.end = leaves[s];
      stays_.push_back(stay);
    }
  }

  void add_buffers() {
    for (std::size_t i = 0; i < schedule_.instructions.size(); ++i) {
      const simulator::Instruction& each = schedule_.instructions[i];
      if (each.action != simulator::Action::start_reload) continue;
      const simulator::Reload& reload = schedule_.reloads[each.reload.index()];
      const simulator::Offload& offload = schedule_.offloads[reload.offload.index()];
      Stay stay{.holding = Holding::reloaded,
                .storage = offload.storage,
                .saved = offload.saved.empty() ? SavedId{} : offload.saved.front(),
                .bytes = offload.bytes};
      stay.begin = at_instruction(i);
      stay.end = behind_event(simulator::buffer_end(trace_, reload));
      stays_.push_back(stay);
    }
  }

  // A stay that goes on over the step's end is two: up to its evict, and from its start_load on.
  void add_residencies() {
    std::vector<Stay> open(schedule_.residencies.size());
    std::vector<std::uint8_t> is_open(schedule_.residencies.size(), 0);
    for (std::size_t r = 0; r < schedule_.residencies.size(); ++r) {
      const auto& parameter = schedule_.parameters[schedule_.residencies[r].parameter.index()];
      open[r].storage = parameter.storage;
      open[r].bytes = trace_.storages.bytes[parameter.storage.index()];
      is_open[r] = schedule_.residencies[r].wraps ? 1 : 0;
    }
    for (std::size_t i = 0; i < schedule_.instructions.size(); ++i) {
      const simulator::Instruction& each = schedule_.instructions[i];
      if (each.action == simulator::Action::start_load) {
        open[each.residency.index()].begin = at_instruction(i);
        is_open[each.residency.index()] = 1;
      } else if (each.action == simulator::Action::evict) {
        Stay done = open[each.residency.index()];
        done.end = at_instruction(i);
        stays_.push_back(done);
        is_open[each.residency.index()] = 0;
      }
    }
    for (std::size_t r = 0; r < open.size(); ++r) {
      if (is_open[r] != 0) stays_.push_back(open[r]);
    }
  }

  const Trace& trace_;
  const simulator::Schedule& schedule_;
  std::vector<std::int64_t> ahead_;  // instructions ahead of each event
  std::vector<Stay> stays_;
};

// Rows under construction, in the order in which they are shown.
class Rows {
 public:
  explicit Rows(const Trace& trace) : trace_(trace), first_saved_(trace.storages.size()) {
    for (std::size_t i = 0; i < trace.saved.size(); ++i) {
      const StorageId storage = trace.saved.storage[i];
      if (storage.valid() && !first_saved_[storage.index()].valid()) {
        first_saved_[storage.index()] = SavedId(i);
      }
    }
  }

  void add(const Stay& stay) {
    const std::size_t s = stay.storage.index();
    const SavedId saved = stay.saved.valid() ? stay.saved : first_saved_[s];
    const StorageClass storage_class = trace_.storages.storage_class[s];
    const bool older = !trace_.storages.alloc_event[s].valid();
    // What is older than the step belongs where it was registered, whoever saves it.
    LayerId layer = trace_.storages.layer[s];
    if (saved.valid() && !older) layer = trace_.saved.layer[saved.index()];
    const OpId op = trace_.storages.alloc_op[s];
    const std::string op_name =
        older || !op.valid() ? std::string() : trace_.string(trace_.ops.name[op.index()]);
    const std::int32_t order =
        layer.valid() ? trace_.layers.forward_order[layer.index()] : std::int32_t{-1};
    const std::string layer_name =
        layer.valid() ? trace_.string(trace_.layers.name[layer.index()]) : std::string("step");
    PeakRow& row = rows_[{storage_class, order, layer_name, op_name, stay.holding}];
    row.holding = stay.holding;
    row.storage_class = storage_class;
    row.layer = layer_name;
    row.op = op_name;
    if (saved.valid() && !older) sites_[&row].push_back(saved);
    ++row.storages;
    row.bytes += stay.bytes;
  }

  [[nodiscard]] std::vector<PeakRow> take() {
    std::vector<PeakRow> rows;
    for (auto& [key, row] : rows_) {
      std::vector<SavedId>& saved = sites_[&row];
      std::sort(saved.begin(), saved.end());
      for (const SavedId each : saved) {
        std::string site = trace_.string(trace_.saved.site[each.index()]);
        if (row.sites.empty() || row.sites.back() != site) row.sites.push_back(std::move(site));
      }
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  using Key = std::tuple<StorageClass, std::int32_t, std::string, std::string, Holding>;
  const Trace& trace_;
  std::vector<SavedId> first_saved_;
  std::map<Key, PeakRow> rows_;
  std::map<const PeakRow*, std::vector<SavedId>> sites_;
};

}  // namespace

const char* name_of(Holding value) {
  switch (value) {
    case Holding::original:
      return "original";
    case Holding::reloaded:
      return "reloaded";
    case Holding::host:
      return "host";
  }
  STOWAGE_ASSERT(false && "unknown holding");
}

PeakContent peak_content(const simulator::TraceIndex& index, const simulator::Schedule& schedule) {
  const Trace& trace = index.trace();
  PeakContent content;
  if (trace.events.size() == 0) return content;
  const Stays stays(index, schedule);
  const Position peak = stays.highest();
  Rows rows(trace);
  for (const Stay& stay : stays.all()) {
    if (stay.begin > peak || stay.end <= peak || stay.bytes == 0) continue;
    rows.add(stay);
    content.peak_requested += stay.bytes;
  }
  content.on_device = rows.take();
  const Moment moment = moment_at(trace, stays.event_of(peak));
  content.op_name = moment.op_name;
  content.layer = moment.layer;
  if (moment.phase) content.phase = stowage::name_of(*moment.phase);

  Rows host(trace);
  for (const simulator::StreamedParameter& each : schedule.parameters) {
    host.add({.holding = Holding::host, .storage = each.storage, .saved = {}, .bytes = each.bytes});
  }
  for (const simulator::Offload& each : schedule.offloads) {
    host.add({.holding = Holding::host,
              .storage = each.storage,
              .saved = each.saved.empty() ? SavedId{} : each.saved.front(),
              .bytes = each.bytes});
  }
  content.on_host = host.take();
  return content;
}

}  // namespace stowage::cli
