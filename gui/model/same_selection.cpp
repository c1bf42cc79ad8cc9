#include "gui/model/same_selection.h"

#include <vector>

namespace stowage::gui {
namespace {

using Kind = Selection::Kind;

// What moves, without a row of any one schedule.
struct Move {
  std::int32_t storage = -1;  // of the recording; -1: what the recording does not have
  Bytes begin = 0;
  std::int32_t stay = 0;  // of those of its tenant
  bool is_store = false;
  bool is_update = false;
  bool operator==(const Move&) const = default;
};

class Moves {
 public:
  explicit Moves(const Simulated& simulated) : simulated_(simulated) {
    std::vector<std::int32_t> stays(simulated.schedule.tenants.size(), 0);
    for (const simulator::Stay& stay : simulated.schedule.stays) {
      number_.push_back(stays[stay.tenant.index()]++);
    }
  }

  [[nodiscard]] std::size_t size(Kind kind) const {
    if (kind == Kind::transfer) return simulated_.detail.transfers.size();
    return kind == Kind::stall ? simulated_.result.stalls.size()
                               : simulated_.detail.host_updates.size();
  }
  // Precondition: a row of its table.
  [[nodiscard]] Move at(Kind kind, std::size_t row) const {
    if (kind == Kind::transfer) {
      const simulator::Transfer& transfer = simulated_.detail.transfers[row];
      return move_of(transfer.stay, transfer.is_store, false);
    }
    if (kind == Kind::update) return move_of(simulated_.detail.host_updates[row].stay, true, true);
    const simulator::Stall& stall = simulated_.result.stalls[row];
    return move_of(stall.stay, stall.is_store, stall.is_update);
  }

 private:
  [[nodiscard]] Move move_of(StayId stay, bool is_store, bool is_update) const {
    const simulator::Tenant& tenant = simulated_.schedule.tenant(stay);
    const Selection recorded = in_recording(simulated_.rows, {Kind::storage, tenant.storage.value});
    return {recorded.row, tenant.begin, number_[stay.index()], is_store, is_update};
  }

  const Simulated& simulated_;
  std::vector<std::int32_t> number_;  // of each stay among those of its tenant
};

}  // namespace

Selection same_in(const Simulated& now, const Simulated& before, const Selection& selection) {
  const bool is_of_replay = selection.kind == Kind::transfer || selection.kind == Kind::stall ||
                            selection.kind == Kind::update;
  if (!is_of_replay) {
    return now.rows == before.rows ? selection
                                   : in_step(now.rows, in_recording(before.rows, selection));
  }
  const Moves old(before);
  if (selection.row < 0 || static_cast<std::size_t>(selection.row) >= old.size(selection.kind)) {
    return {};
  }
  const Move wanted = old.at(selection.kind, static_cast<std::size_t>(selection.row));
  const Moves moves(now);
  for (std::size_t i = 0; wanted.storage >= 0 && i < moves.size(selection.kind); ++i) {
    if (moves.at(selection.kind, i) == wanted) {
      return {selection.kind, static_cast<std::int32_t>(i)};
    }
  }
  return {};
}

std::optional<Nanoseconds> time_of(const Simulated& simulated, const Selection& selection) {
  if (selection.row < 0) return std::nullopt;
  const auto row = static_cast<std::size_t>(selection.row);
  const simulator::ReplayDetail& detail = simulated.detail;
  switch (selection.kind) {
    case Kind::event:
      if (row < detail.time.size()) return detail.time[row];
      break;
    case Kind::transfer:
      if (row < detail.transfers.size()) return detail.transfers[row].start;
      break;
    case Kind::stall:
      if (row < simulated.result.stalls.size()) return simulated.result.stalls[row].start;
      break;
    case Kind::update:
      if (row < detail.host_updates.size()) return detail.host_updates[row].start;
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace stowage::gui
