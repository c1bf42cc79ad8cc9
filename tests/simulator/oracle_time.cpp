#include "tests/simulator/oracle_time.h"

#include <algorithm>
#include <deque>
#include <map>

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::CopyMode;
using simulator::Instruction;
using simulator::Schedule;
using simulator::StepIndex;

// Least n >= 0 with n * by >= what: division rounded up.
std::int64_t quotient_up(Wide what, Wide by) {
  return static_cast<std::int64_t>(what / by + (what % by > 0 ? 1 : 0));
}

// simulator/machine/link_model.h: each calibrated size has a time, bytes over rate; times between
// two sizes lie on the line between theirs, outside they are at the rate of the nearest size; a
// part of a nanosecond is a whole one. A larger size that was faster counts as no slower.
Nanoseconds nominal_ns(const LinkCurve& curve, Bytes bytes) {
  if (bytes == 0) return 0;
  const std::size_t points = curve.bytes.size();
  const auto at_rate_of = [&](Bytes size, std::size_t point) {
    return quotient_up(Wide{size} * 1'000'000'000, curve.bytes_per_second[point]);
  };
  std::size_t right = 0;  // the first calibrated size above
  while (right < points && curve.bytes[right] <= bytes) ++right;
  if (right == 0 || right == points) return at_rate_of(bytes, right == 0 ? 0 : points - 1);
  const std::size_t left = right - 1;
  const Nanoseconds from = at_rate_of(curve.bytes[left], left);
  const Nanoseconds rise = std::max<Nanoseconds>(at_rate_of(curve.bytes[right], right) - from, 0);
  return from + quotient_up(Wide{rise} * (bytes - curve.bytes[left]),
                            curve.bytes[right] - curve.bytes[left]);
}

// What compute has to do ahead of each event: on a GPU the kernels launched in the gap, what is
// launched behind the last event included with it; else all of the gap.
std::vector<Nanoseconds> work_of(const Trace& trace) {
  std::vector<Nanoseconds> work(trace.events.size(), 0);
  for (std::size_t e = 1; e < work.size(); ++e) {
    if (trace.gpu.size() == 0) work[e] = trace.events.time[e] - trace.events.time[e - 1];
    for (std::size_t g = 0; g < trace.gpu.size(); ++g) {
      const bool is_last = e + 1 == work.size() && trace.gpu.event[g].index() == e;
      if (trace.gpu.event[g].index() + 1 == e || is_last) work[e] += trace.gpu.duration[g];
    }
  }
  return work;
}

struct Copy {
  Nanoseconds latency = 0;
  std::int64_t work = 0;  // ns * 10^6
  bool done = false;
};

// The host's update with the gradient that this copy brings; none: it is there.
struct HostWork {
  const Copy* copy = nullptr;
  std::int64_t work = 0;  // ns * 10^6
  bool done = false;
  Nanoseconds end = 0;
};

struct Lane {
  std::deque<Copy*> queue;
  void settle() {
    while (!queue.empty() && queue.front()->latency == 0 && queue.front()->work <= 0) {
      queue.front()->done = true;
      queue.pop_front();
    }
  }
  [[nodiscard]] bool moving() const { return !queue.empty() && queue.front()->latency == 0; }
};

class Machine {
 public:
  Machine(const StepIndex& index, const Schedule& schedule)
      : index_(index), link_(index.trace().calibration), s_(schedule) {
    out_.time.assign(index.event_count(), 0);
    work_ = work_of(index.trace());
  }

  OracleTime run() {
    const std::size_t last = index_.event_count() - 1;
    std::size_t next_instruction = 0;
    for (std::size_t e = 0; e <= last;) {
      // One piece: up to the next event with instructions; on a GPU also up to the first work that
      // is launched only after compute at full speed would be through with what came before.
      const std::size_t stop = next_instruction < s_.instructions.size()
                                   ? s_.instructions[next_instruction].anchor.event.index()
                                   : last;
      const Nanoseconds begin = now_;
      std::size_t end = e;
      Nanoseconds work = 0;
      std::vector<Nanoseconds> work_at;
      std::vector<Nanoseconds> launched_at;
      Nanoseconds launched = launched_;
      for (; end <= stop; ++end) {
        const Nanoseconds arrival = launched + slowed(launch_time(end), false);
        if (work_[end] > 0 && arrival > begin + work) {
          if (end > e) break;
          if (arrival > now_) break;
        }
        launched = launched + slowed(launch_time(end), true);
        work += work_[end];
        work_at.push_back(work);
        launched_at.push_back(launched);
        if (synchronises(end)) {
          ++end;
          break;
        }
      }
      if (end == e) {  // compute waits for the launch of event e
        while (now_ < launched_ + slowed(launch_time(e), false)) tick(false);
        continue;
      }
      std::int64_t done = 0;
      std::size_t marked = 0;
      for (;;) {
        for (; marked < work_at.size() && work_at[marked] * kPpm <= done; ++marked) {
          out_.time[e + marked] = std::max(now_, launched_at[marked]);
        }
        if (done >= work * kPpm) break;
        settle();
        Ppm speed = lane(0).moving() || lane(1).moving() ? link_.compute_interference : kPpm;
        if (rested_ >= kPpm) {
          speed = speed * boost() / kPpm;
          rested_ -= kPpm;
        }
        done += speed;
        ++out_.compute_ns;
        tick(true);
      }
      launched_ = synchronises(end - 1) ? std::max(launched, now_) : launched;
      e = end;
      if (end <= stop) continue;
      while (now_ < launched_) tick(false);
      for (; next_instruction < s_.instructions.size() &&
             s_.instructions[next_instruction].anchor.event.index() == stop;
           ++next_instruction) {
        execute(s_.instructions[next_instruction]);
      }
    }
    // The device finishes what is under way.
    for (settle(); !lane(0).queue.empty() || !lane(1).queue.empty() || !host_.empty();) stall();
    out_.step_ns = now_;
    return out_;
  }

 private:
  Lane& lane(int i) { return lanes_[i]; }

  void settle() {
    lanes_[0].settle();
    lanes_[1].settle();
    while (!host_.empty() && is_updating() && host_.front()->work <= 0) {
      host_.front()->done = true;
      host_.front()->end = now_;
      host_.pop_front();
    }
  }
  [[nodiscard]] bool is_updating() const {
    return !host_.empty() && (host_.front()->copy == nullptr || host_.front()->copy->done);
  }

  [[nodiscard]] bool has_device() const { return index_.trace().gpu.size() > 0; }

  // Of the launch thread ahead of an event, without what it stood still in the recording.
  [[nodiscard]] Nanoseconds launch_time(std::size_t event) const {
    if (!has_device() || event == 0) return 0;
    const Trace& t = index_.trace();
    Nanoseconds time = t.events.time[event] - t.events.time[event - 1];
    for (std::size_t s = 0; s < t.syncs.size(); ++s) {
      if (t.syncs.event[s].index() + 1 == event) time -= t.syncs.duration[s];
    }
    time = std::max<Nanoseconds>(time, 0);
    const bool hooked =
        t.events.kind[event] == EventKind::pack || t.events.kind[event] == EventKind::unpack;
    return hooked && s_.has_hooks ? time + link_.hook_ns : time;
  }
  [[nodiscard]] bool synchronises(std::size_t event) const {
    const auto& at = index_.trace().syncs.event;
    return has_device() && event > 0 &&
           std::find(at.begin(), at.end(), EventId(event - 1)) != at.end();
  }
  void issue(Nanoseconds cost) {
    if (!has_device()) return;
    launched_ += slowed(cost, true);
    while (now_ < launched_) tick(false);
  }
  // Of the launch thread's own work, nanosecond by nanosecond; `is_done`: it is behind it now.
  Nanoseconds slowed(Nanoseconds work, bool is_done) {
    Nanoseconds slow = 0;
    while (slow < work && slow < cold_) ++slow;
    if (is_done) cold_ -= slow;
    return work - slow + slow * kPpm / std::max<Ppm>(link_.woken_launch, 10'000);
  }

  void tick(bool computing) {
    settle();
    struct Moving {
      Copy* copy;
      int direction;
    };
    std::vector<Moving> all;
    for (const int direction : {0, 1}) {
      if (!lanes_[direction].queue.empty()) {
        all.push_back({lanes_[direction].queue.front(), direction});
      }
    }
    if (on_compute_ != nullptr) all.push_back({on_compute_, on_compute_direction_});
    std::vector<Ppm> factors;
    for (const Moving& one : all) {
      Ppm factor = computing ? link_.copy_interference : kPpm;
      bool against = false;
      bool shared = false;
      for (const Moving& other : all) {
        if (other.copy == one.copy || other.copy->latency > 0) continue;
        (other.direction == one.direction ? shared : against) = true;
      }
      if (against) factor = factor * link_.duplex / kPpm;
      factors.push_back(shared ? factor / 2 : factor);
    }
    const bool moves = std::any_of(all.begin(), all.end(),
                                   [](const Moving& one) { return one.copy->latency == 0; });
    if (is_updating()) {
      host_.front()->work -= moves ? link_.host_update_interference : kPpm;
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].copy->latency > 0) {
        --all[i].copy->latency;
      } else {
        all[i].copy->work -= factors[i];
      }
    }
    ++now_;
    settle();
  }

  // Speed of compute that has rested.
  [[nodiscard]] Ppm boost() const {
    return link_.rest_gain > 0 ? kPpm * kPpm / link_.least_compute : kPpm;
  }
  void stall() {
    tick(false);
    ++out_.stall_ns;
    const Nanoseconds rest = now_ - out_.compute_ns - index_.resident_idle(s_.has_hooks);
    if (boost() == kPpm || rest <= earned_) return;
    rested_ += (rest - earned_) * (link_.rest_gain * kPpm / (boost() - kPpm));
    earned_ = rest;
  }

  void wait(const Copy& copy) {
    settle();
    while (!copy.done) stall();
  }
  // Compute hears of the end of a copy that it stood still for.
  void wait_and_hear(const Copy& copy) {
    settle();
    if (copy.done) return;
    wait(copy);
    for (Nanoseconds i = link_.handover_ns / 2; i < link_.handover_ns; ++i) stall();
  }
  void pause() {
    for (Nanoseconds i = 0; i < link_.start_gap_ns; ++i) tick(false);
  }

  void start(int direction, CopyMode mode, Bytes bytes, Copy& copy) {
    const LinkCurve& curve = direction == 0 ? link_.d2h : link_.h2d;
    const Nanoseconds nominal = nominal_ns(curve, bytes);
    if (bytes > 0) issue(link_.copy_issue_ns);
    copy.latency = std::min(curve.latency, nominal);
    copy.work = (nominal - copy.latency) * kPpm;
    settle();
    if (nominal > 0 && mode == CopyMode::compute) copy.latency += link_.compute_copy_gap_ns;
    if (nominal > 0 && mode != CopyMode::compute && lane(direction).queue.empty()) {
      copy.latency += link_.handover_ns / 2;
    }
    if (mode == CopyMode::compute) {
      on_compute_ = &copy;
      on_compute_direction_ = direction;
      while (copy.latency > 0 || copy.work > 0) stall();
      on_compute_ = nullptr;
      copy.done = true;
      return;
    }
    lanes_[direction].queue.push_back(&copy);
    if (bytes > 0 && mode == CopyMode::lane) pause();
    if (mode == CopyMode::blocking) {
      wait(copy);
      if (!has_device() || bytes == 0) return;
      launched_ = std::max(launched_, now_ + (link_.handover_ns + 1) / 2);
      cold_ = 250'000;
    }
  }

  void execute(const Instruction& i) {
    const auto& stay = s_.stays[i.stay.index()];
    const Bytes bytes = s_.tenants[stay.tenant.index()].bytes;
    switch (i.action) {
      case Action::load:
        wait_for_update(stay.tenant);
        start(1, stay.load_mode, bytes, loads_[i.stay.value]);
        break;
      case Action::store:
        start(0, stay.store_mode, bytes, stores_[i.stay.value]);
        break;
      case Action::await:
        if (bytes > 0) await(stay.load_mode, loads_, i.stay);
        break;
      case Action::evict:
        if (bytes > 0 && stay.is_stored) await(stay.store_mode, stores_, i.stay);
        break;
      case Action::update:
        update(i.stay);
    }
  }

  [[nodiscard]] StorageId owner_of(TenantId tenant) const {
    const StorageId storage = s_.tenants[tenant.index()].storage;
    const StorageId owner = index_.trace().storages.parameter[storage.index()];
    return owner.valid() ? owner : storage;
  }

  void update(StayId gradient) {
    const TenantId of = s_.stays[gradient.index()].tenant;
    Bytes bytes = s_.tenants[of.index()].bytes;
    HostWork work;
    for (std::size_t t = 0; t < s_.tenants.size(); ++t) {
      const bool is_own = s_.tenants[t].is_updated_at_home && owner_of(TenantId(t)) == owner_of(of);
      if (is_own) bytes += s_.tenants[t].bytes;
    }
    const bool is_known = link_.host_update_ns_per_gib > 0;
    const Nanoseconds per_gib = is_known ? link_.host_update_ns_per_gib : 1'024'000'000;
    work.work = kPpm * ((is_known ? link_.host_update_ns : 0) +
                        quotient_up(Wide{bytes} * per_gib, Bytes{1} << 30));
    const auto copy = stores_.find(gradient.value);
    if (copy != stores_.end()) work.copy = &copy->second;
    settle();
    HostWork& kept = updates_[owner_of(of).value] = work;
    host_.push_back(&kept);
    settle();
  }
  void wait_for_update(TenantId parameter) {
    const auto update = updates_.find(owner_of(parameter).value);
    if (!s_.tenants[parameter.index()].is_updated_at_home || update == updates_.end()) return;
    settle();
    while (!update->second.done) stall();
    launched_ = std::max(launched_, update->second.end);
    while (now_ < launched_) stall();
  }

  // A copy of the period before is done by now.
  void await(CopyMode mode, std::map<std::int32_t, Copy>& copies, StayId stay) {
    if (mode != CopyMode::compute) issue(link_.wait_issue_ns);
    if (const auto at = copies.find(stay.value); at != copies.end()) wait_and_hear(at->second);
  }

  Nanoseconds earned_ = 0;   // rest beyond that of the recorded step
  std::int64_t rested_ = 0;  // ns * 10^6 that compute may run faster for
  const StepIndex& index_;
  const Calibration& link_;
  const Schedule& s_;
  Nanoseconds now_ = 0;
  Nanoseconds launched_ = 0;
  Nanoseconds cold_ = 0;  // of the launch thread's work: behind a wait
  Lane lanes_[2];
  Copy* on_compute_ = nullptr;  // a copy on the compute stream under way
  int on_compute_direction_ = 0;
  std::map<std::int32_t, Copy> loads_;  // of this period, by stay
  std::map<std::int32_t, Copy> stores_;
  std::map<std::int32_t, HostWork> updates_;  // by parameter
  std::deque<HostWork*> host_;
  std::vector<Nanoseconds> work_;  // of compute, ahead of each event
  OracleTime out_;
};

}  // namespace

OracleTime oracle_time(const StepIndex& index, const Schedule& schedule) {
  return Machine(index, schedule).run();
}

}  // namespace stowage::testing
