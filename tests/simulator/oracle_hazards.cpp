#include "tests/simulator/oracle_hazards.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "simulator/schedule/tenant_kind.h"
#include "tests/simulator/oracle_uses.h"

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::CopyMode;
using simulator::Instruction;
using simulator::Schedule;
using simulator::Side;
using simulator::Stay;
using simulator::Tenant;

enum class Does { read, write };  // giving memory up is a write

constexpr Bytes kWhole = Bytes{1} << 60;

struct HazardNode {
  std::vector<std::size_t> after;  // direct predecessors
  // An access: a storage of a period, a buffer, or the arena; its bytes; what it does with them.
  bool accesses = false;
  std::tuple<char, int, int> object;
  Bytes first = 0;
  Bytes last = 0;
  Does does = Does::read;
  int filled = 0;  // of the arena: the number of the store that wrote these bytes, or has to have
};

// One kind of period: what of it is the same each time.
struct OracleKind {
  const Trace& trace;
  const Schedule& schedule;
  std::vector<OracleUse> uses;
  std::vector<int> given_up_at;  // by stay: row of the instruction
  std::vector<int> held_until;   // by stay: event
};

struct OracleStay {
  bool here = false;
  bool visible = false;  // awaited
  bool stored = false;   // a store has read it
  bool ended = false;    // in this period
  int buffer = 0;        // its number, unique
  int version = 0;       // of the bytes in it
  std::size_t load = 0;  // nodes at which copies end; 0 = none
  std::size_t store = 0;
};

struct OracleTenant {
  StayId stay;            // the one that was loaded, or made, last
  int latest = 0;         // version
  int at_home = -1;       // version; -1 = nothing is
  int filled = 0;         // number of the store that wrote the home
  std::size_t store = 0;  // the node at which it ended; 0 = none
};

class HazardOracle {
 public:
  explicit HazardOracle(const std::vector<OraclePeriod>& periods) {
    for (const OraclePeriod& each : periods) {
      const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const OracleKind& kind) {
        return &kind.schedule == &each.schedule;
      });
      order_.push_back(static_cast<std::size_t>(known - kinds_.begin()));
      if (known == kinds_.end()) {
        kinds_.push_back(
            {each.trace, each.schedule, oracle_uses(each.trace, each.schedule), {}, {}});
      }
    }
    nodes_.push_back({});
    for (OracleKind& kind : kinds_) {
      now_ = &kind;
      for (std::size_t i = 0; i < kind.schedule.stays.size(); ++i) {
        kind.given_up_at.push_back(given_up_at(StayId(i)));
        kind.held_until.push_back(held_until(StayId(i)));
      }
    }
    now_ = &kinds_.front();
    stays_.resize(now_->schedule.stays.size());
    waits_.resize(stays_.size());
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      waits_[i] = std::any_of(kinds_.begin(), kinds_.end(), [&](const OracleKind& kind) {
        return kind.schedule.stays[i].is_stored;
      });
    }
    tenants_.resize(now_->schedule.tenants.size());
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      const Tenant& tenant = now_->schedule.tenants[t];
      if (!tenant.has_own_home || tenant.kind->is_made_anew) continue;
      tenants_[t].at_home = 0;
      tenants_[t].filled = ++fills_;
      access(compute_ = add({compute_}), {'h', 0, 0}, slot_of(tenant), Does::write, fills_);
    }
  }

  bool safe() {
    for (const std::size_t kind : order_) {
      now_ = &kinds_[kind];
      began_with_.assign(now_->uses.size(), {});
      begin_period();
      for (int e = 0; e < static_cast<int>(now_->trace.events.size()); ++e) {
        run_instructions(e, Side::before);
        run_uses(e, false);
        run_instructions(e, Side::after);
        run_uses(e, true);
        let_go_behind(e);
      }
      wait(host_);
      ++period_;
    }
    return ok_ && no_race() && homes_have_the_bytes();
  }

 private:
  using Range = std::pair<Bytes, Bytes>;

  std::size_t add(std::vector<std::size_t> after) {
    nodes_.push_back({});
    nodes_.back().after = std::move(after);
    return nodes_.size() - 1;
  }
  void wait(std::size_t node) {
    if (node != 0) compute_ = add({compute_, node});
  }
  void access(std::size_t node, std::tuple<char, int, int> object, Range range, Does does,
              int filled = 0) {
    nodes_[node] = {nodes_[node].after, true, object, range.first, range.second, does, filled};
  }
  std::size_t on_compute(std::tuple<char, int, int> object, Does does) {
    compute_ = add({compute_});
    access(compute_, object, {0, kWhole}, does);
    return compute_;
  }

  // The node that reads and the one that writes, with which the copy ends.
  std::pair<std::size_t, std::size_t> copy(int lane, CopyMode mode) {
    if (mode == CopyMode::compute) {
      const std::size_t read = add({compute_});
      return {read, compute_ = add({read})};
    }
    const std::size_t read = add({compute_, lane_[lane]});
    const std::size_t end = lane_[lane] = add({read});
    if (mode == CopyMode::blocking) wait(end);
    return {read, end};
  }

  [[nodiscard]] const Schedule& plan() const { return now_->schedule; }
  [[nodiscard]] const Stay& stay_of(StayId stay) const { return plan().stays[stay.index()]; }
  [[nodiscard]] const Tenant& tenant_of(StayId stay) const { return plan().tenant(stay); }
  [[nodiscard]] OracleTenant& of(StayId stay) { return tenants_[stay_of(stay).tenant.index()]; }
  [[nodiscard]] bool lasts(StorageId storage) const {
    return !now_->trace.storages.alloc_event[storage.index()].valid();
  }
  [[nodiscard]] static Range slot_of(const Tenant& tenant) {
    return {tenant.host_offset, tenant.host_offset + tenant.bytes};
  }
  // Named by the row that it has in the first period.
  [[nodiscard]] std::tuple<char, int, int> storage_now(TenantId tenant) const {
    const StorageId first = kinds_.front().schedule.tenants[tenant.index()].storage;
    return {'s', first.value, lasts(plan().tenants[tenant.index()].storage) ? 0 : period_};
  }
  // Where the stay's bytes are.
  [[nodiscard]] std::tuple<char, int, int> memory_of(StayId stay) const {
    if (stay_of(stay).is_made) return storage_now(stay_of(stay).tenant);
    return {'b', stays_[stay.index()].buffer, 0};
  }
  [[nodiscard]] int row_of(StayId stay, Action action) const {
    for (std::size_t i = 0; i < plan().instructions.size(); ++i) {
      const Instruction& at = plan().instructions[i];
      if (at.stay == stay && at.action == action) return static_cast<int>(i);
    }
    return -1;
  }

  void begin_period() {
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const StayId id(i);
      const Stay& stay = stay_of(id);
      OracleStay& now = stays_[i];
      if (stay.wraps) {
        if (period_ > 0) continue;
        now.here = true;
        now.buffer = ++buffers_;
        const int await = row_of(id, Action::await);
        now.visible = await < 0 || await > row_of(id, Action::evict);
        of(id).stay = id;
        continue;
      }
      now = {};
      if (!stay.is_made) continue;
      now.here = true;
      now.version = of(id).latest;
      of(id).stay = id;
    }
    for (std::size_t t = 0; t < tenants_.size(); ++t) {  // every period fills a shared home anew
      const bool is_made_anew = plan().tenants[t].kind->is_made_anew;
      if (plan().tenants[t].has_own_home && !is_made_anew) continue;
      tenants_[t].at_home = -1;
      tenants_[t].store = 0;
    }
  }

  void run_instructions(int e, Side side) {
    for (std::size_t row = 0; row < plan().instructions.size(); ++row) {
      const Instruction& i = plan().instructions[row];
      if (i.anchor.event.value != e || i.anchor.side != side) continue;
      switch (i.action) {
        case Action::load:
          load(i.stay);
          break;
        case Action::await:
          if (!stays_[i.stay.index()].here) break;
          wait(stays_[i.stay.index()].load);
          stays_[i.stay.index()].visible = true;
          break;
        case Action::store:
          store(i.stay);
          break;
        case Action::evict:
          if (waits_[i.stay.index()]) wait(stays_[i.stay.index()].store);
          evict(i.stay, static_cast<int>(row));
          break;
        case Action::update:
          update(i.stay);
      }
    }
  }

  // The host reads the gradient's home and writes those of its parameter and of that one's state,
  // one after the other; the step's end waits for it.
  void update(StayId id) {
    const OracleStay& now = stays_[id.index()];
    OracleTenant& gradient = of(id);
    if (!now.stored || now.store == 0 || gradient.at_home != gradient.latest) ok_ = false;
    host_ = add({host_, now.store});
    access(host_, {'h', 0, 0}, slot_of(tenant_of(id)), Does::read, gradient.filled);
    const std::vector<StorageId>& owner = now_->trace.storages.parameter;
    const StorageId parameter = owner[tenant_of(id).storage.index()];
    for (std::size_t t = 0; t < tenants_.size(); ++t) {
      const Tenant& tenant = plan().tenants[t];
      const bool is_own = tenant.storage == parameter || owner[tenant.storage.index()] == parameter;
      if (!tenant.is_updated_at_home || !is_own) continue;
      OracleTenant& updated = tenants_[t];
      if (updated.stay.valid() || updated.at_home != updated.latest) ok_ = false;
      host_ = updated.store = add({host_});
      access(host_, {'h', 0, 0}, slot_of(tenant), Does::write, ++fills_);
      updated.filled = fills_;
      updated.at_home = ++updated.latest;
    }
  }

  void load(StayId id) {
    OracleStay& now = stays_[id.index()];
    OracleTenant& tenant = of(id);
    const Stay& stay = stay_of(id);
    if (tenant_of(id).is_updated_at_home) wait(tenant.store);
    if (now.ended && !stay.wraps) ok_ = false;
    if (tenant.at_home < 0) ok_ = false;
    if (!tenant_of(id).kind->is_snapshot && tenant.at_home != tenant.latest) ok_ = false;
    const auto [read, end] = copy(1, stay.load_mode);
    if (tenant.store != 0) must_follow_.emplace_back(tenant.store, read);
    now = {};
    now.here = true;
    now.buffer = ++buffers_;
    now.version = tenant.at_home;
    now.load = end;
    tenant.stay = id;
    access(read, {'h', 0, 0}, slot_of(tenant_of(id)), Does::read, tenant.filled);
    access(end, memory_of(id), {0, tenant_of(id).bytes}, Does::write);
  }

  void store(StayId id) {
    OracleStay& now = stays_[id.index()];
    OracleTenant& tenant = of(id);
    const Stay& stay = stay_of(id);
    const Bytes begin = stay.is_made ? tenant_of(id).begin : 0;
    const Bytes bytes = tenant_of(id).bytes;
    const auto [read, end] = copy(0, stay.store_mode);
    if (stay.is_made ? !now.here && bytes > 0 : !now.here || !now.visible) ok_ = false;
    if (now.load != 0) must_follow_.emplace_back(now.load, read);
    access(read, memory_of(id), {begin, begin + bytes}, Does::read);
    access(end, {'h', 0, 0}, slot_of(tenant_of(id)), Does::write, ++fills_);
    now.store = tenant.store = end;
    now.stored = now.here;
    tenant.at_home = now.version;
    tenant.filled = fills_;
  }

  // The gap behind which the model itself lets go of what the stay has on the device: an event; -1
  // when it holds nothing, an event behind the step when it never does.
  [[nodiscard]] int held_until(StayId id) const {
    const Trace& trace = now_->trace;
    const int never = static_cast<int>(trace.events.size());
    if (stay_of(id).is_made) {
      if (tenant_of(id).has_own_home) return -1;
      const int natural = trace.storages.natural_free_event[tenant_of(id).storage.index()].value;
      return natural < 0 ? never : natural;
    }
    int last = -1;
    for (const UnpackId u : stay_of(id).unpacks) {
      const int released = trace.unpacks.released_event[u.index()].value;
      last =
          std::max({last, trace.unpacks.event[u.index()].value, released < 0 ? never : released});
    }
    return last;
  }
  // The row at which the schedule lets go of it, with its storage's other copies; -1: never.
  [[nodiscard]] int given_up_at(StayId id) const {
    if (!stay_of(id).is_made) return row_of(id, Action::evict);
    const StorageId storage = tenant_of(id).storage;
    if (lasts(storage)) return -1;
    int last = -1;
    for (std::size_t i = 0; i < plan().stays.size(); ++i) {
      if (!stay_of(StayId(i)).is_made || tenant_of(StayId(i)).storage != storage) continue;
      last = std::max(last, row_of(StayId(i), Action::evict));
    }
    return last;
  }
  [[nodiscard]] int event_of(int row) const {
    return plan().instructions[static_cast<std::size_t>(row)].anchor.event.value;
  }

  void evict(StayId id, int row) {
    const StorageId storage = tenant_of(id).storage;
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const bool with = stay_of(id).is_made
                            ? stay_of(StayId(i)).is_made && tenant_of(StayId(i)).storage == storage
                            : StayId(i) == id;
      if (with && now_->given_up_at[i] == row && now_->held_until[i] < event_of(row)) {
        leave(StayId(i));
      }
    }
  }
  void let_go_behind(int e) {
    for (std::size_t i = 0; i < stays_.size(); ++i) {
      const int row = now_->given_up_at[i];
      if (row >= 0 && now_->held_until[i] == e && event_of(row) <= e) leave(StayId(i));
    }
  }

  void leave(StayId id) {
    OracleStay& now = stays_[id.index()];
    OracleTenant& tenant = of(id);
    if (now.here) {
      on_compute(memory_of(id), Does::write);
      const bool is_newer = now.version > tenant.at_home;
      if (!tenant_of(id).kind->is_snapshot && is_newer) ok_ = false;
    }
    now.here = now.visible = false;
    now.ended = true;
    if (tenant.stay == id) tenant.stay = {};
  }

  void run_uses(int e, bool behind) {
    for (std::size_t u = 0; u < now_->uses.size(); ++u) {
      if (!behind && now_->uses[u].begin == e) begin_use(u);
      if (now_->uses[u].ends_behind == behind && now_->uses[u].end == e) end_use(u);
    }
  }

  void begin_use(std::size_t row) {
    const OracleUse& use = now_->uses[row];
    OracleTenant& tenant = tenants_[use.tenant.index()];
    const Does does = use.writes ? Does::write : Does::read;
    began_with_[row] = {};
    if (use.of_storage) {
      on_compute(storage_now(use.tenant), does);
      return;
    }
    const StayId id = use.stay.valid() ? use.stay : tenant.stay;
    if (!id.valid()) {
      ok_ = false;
      return;
    }
    OracleStay& now = stays_[id.index()];
    began_with_[row] = {id, now.buffer};
    if (!now.here || (!stay_of(id).is_made && !now.visible)) ok_ = false;
    if (!plan().tenants[use.tenant.index()].kind->is_snapshot && now.version != tenant.latest) {
      ok_ = false;
    }
    const std::size_t node = on_compute(memory_of(id), does);
    if (now.load != 0) must_follow_.emplace_back(now.load, node);
  }

  void end_use(std::size_t row) {
    const OracleUse& use = now_->uses[row];
    if (use.of_storage || use.stay.valid()) return;
    OracleTenant& tenant = tenants_[use.tenant.index()];
    const auto [id, buffer] = began_with_[row];
    if (!id.valid()) return;
    OracleStay& now = stays_[id.index()];
    if (tenant.stay != id || now.buffer != buffer) ok_ = false;
    if (!use.writes) return;
    on_compute(memory_of(id), Does::write);
    if (now.stored) ok_ = false;
    now.version = ++tenant.latest;
  }

  bool no_race() {
    const std::size_t n = nodes_.size();
    const std::size_t words = n / 64 + 1;
    std::vector<std::vector<std::uint64_t>> reach(n, std::vector<std::uint64_t>(words, 0));
    const auto is_ahead = [&](std::size_t a, std::size_t b) {
      return (reach[b][a / 64] >> (a % 64) & 1) != 0;
    };
    for (std::size_t b = 0; b < n; ++b) {
      for (const std::size_t a : nodes_[b].after) {
        reach[b][a / 64] |= std::uint64_t{1} << (a % 64);
        for (std::size_t w = 0; w < words; ++w) reach[b][w] |= reach[a][w];
      }
    }
    for (const auto& [first, second] : must_follow_) {
      if (!is_ahead(first, second)) return false;
    }
    std::map<std::tuple<char, int, int>, std::vector<std::size_t>> by_object;
    for (std::size_t b = 0; b < n; ++b) {
      const HazardNode& y = nodes_[b];
      if (!y.accesses) continue;
      for (const std::size_t a : by_object[y.object]) {
        const HazardNode& x = nodes_[a];
        // Not empty, and some byte in both.
        const bool conflict = std::max(x.first, y.first) < std::min(x.last, y.last) &&
                              (x.does == Does::write || y.does == Does::write);
        if (conflict && !is_ahead(a, b)) return false;
      }
      by_object[y.object].push_back(b);
    }
    return true;
  }

  // Nodes are in an order of the graph; without races every order moves the same bytes.
  bool homes_have_the_bytes() {
    std::set<Bytes> edges;
    for (const Tenant& tenant : plan().tenants) {
      edges.insert(tenant.host_offset);
      edges.insert(tenant.host_offset + tenant.bytes);
    }
    std::map<Bytes, int> filled;  // by first byte of each piece between two edges
    for (const HazardNode& n : nodes_) {
      if (!n.accesses || std::get<0>(n.object) != 'h') continue;
      for (auto at = edges.lower_bound(n.first); at != edges.end() && *at < n.last; ++at) {
        if (n.does == Does::write) filled[*at] = n.filled;
        if (n.does == Does::read && filled[*at] != n.filled) return false;
      }
    }
    return true;
  }

  std::vector<OracleKind> kinds_;
  std::vector<std::size_t> order_;  // rows of kinds_
  const OracleKind* now_ = nullptr;
  std::vector<bool> waits_;                         // by stay: its evict, for a store
  std::vector<std::pair<StayId, int>> began_with_;  // by use: the stay and its buffer
  std::vector<OracleStay> stays_;
  std::vector<OracleTenant> tenants_;
  int period_ = 0;
  bool ok_ = true;
  std::vector<HazardNode> nodes_;  // row 0: the begin
  std::size_t compute_ = 0;
  std::size_t lane_[2] = {0, 0};
  std::size_t host_ = 0;
  int buffers_ = 0;
  int fills_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> must_follow_;
};

}  // namespace

bool oracle_is_safe(const Trace& trace, const Schedule& schedule) {
  return oracle_is_safe({{trace, schedule}, {trace, schedule}});
}

bool oracle_is_safe(const std::vector<OraclePeriod>& periods) {
  return HazardOracle(periods).safe();
}

}  // namespace stowage::testing
