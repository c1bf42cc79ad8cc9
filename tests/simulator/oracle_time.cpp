#include "tests/simulator/oracle_time.h"

#include <algorithm>
#include <deque>
#include <map>

#include "simulator/link_model.h"

namespace stowage::testing {
namespace {

using simulator::Action;
using simulator::CopyMode;
using simulator::Instruction;
using simulator::Schedule;
using simulator::TraceIndex;

struct Copy {
  Nanoseconds latency = 0;
  std::int64_t work = 0;  // ns * 10^6
  bool done = false;
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
  void pass(Ppm factor) {
    if (queue.empty()) return;
    if (queue.front()->latency > 0) {
      --queue.front()->latency;
    } else {
      queue.front()->work -= factor;
    }
  }
};

class Machine {
 public:
  Machine(const TraceIndex& index, const Schedule& schedule)
      : index_(index), link_(index.trace().calibration), s_(schedule) {
    out_.time.assign(index.event_count(), 0);
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
        const Nanoseconds arrival = launched + index_.launch_ns()[end];
        if (index_.compute_ns()[end] > 0 && arrival > begin + work) {
          if (end > e) break;
          if (arrival > now_) break;
        }
        launched = arrival;
        work += index_.compute_ns()[end];
        work_at.push_back(work);
        launched_at.push_back(launched);
      }
      if (end == e) {  // compute waits for the launch of event e
        while (now_ < launched_ + index_.launch_ns()[e]) tick(false);
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
        done += lane(0).moving() || lane(1).moving() ? link_.compute_interference : kPpm;
        ++out_.compute_ns;
        tick(true);
      }
      launched_ = launched;
      e = end;
      if (end <= stop) continue;
      while (now_ < launched_) tick(false);
      for (; next_instruction < s_.instructions.size() &&
             s_.instructions[next_instruction].anchor.event.index() == stop;
           ++next_instruction) {
        execute(s_.instructions[next_instruction]);
      }
    }
    out_.step_ns = now_;
    return out_;
  }

 private:
  Lane& lane(int i) { return lanes_[i]; }

  void settle() {
    lanes_[0].settle();
    lanes_[1].settle();
  }

  void tick(bool computing) {
    settle();
    Ppm factor = computing ? link_.copy_interference : kPpm;
    if (lanes_[0].moving() && lanes_[1].moving()) factor = factor * link_.duplex / kPpm;
    lanes_[0].pass(factor);
    lanes_[1].pass(factor);
    ++now_;
    settle();
  }

  void wait(const Copy& copy) {
    settle();
    while (!copy.done) {
      tick(false);
      ++out_.stall_ns;
    }
  }

  void start(int direction, CopyMode mode, Bytes bytes, Copy& copy) {
    const LinkCurve& curve = direction == 0 ? link_.d2h : link_.h2d;
    const Nanoseconds nominal = simulator::transfer_ns(curve, bytes);
    if (mode == CopyMode::compute) {
      copy.done = true;
      for (Nanoseconds i = 0; i < nominal; ++i) tick(false);
      out_.stall_ns += nominal;
      return;
    }
    copy.latency = std::min(curve.latency, nominal);
    copy.work = (nominal - copy.latency) * kPpm;
    lanes_[direction].queue.push_back(&copy);
    if (mode == CopyMode::blocking) {
      wait(copy);
      launched_ = std::max(launched_, now_);
    }
  }

  void execute(const Instruction& i) {
    switch (i.action) {
      case Action::start_offload: {
        const auto& offload = s_.offloads[i.offload.index()];
        start(0, offload.copy_out, offload.bytes, out_copies_[i.offload.value]);
        break;
      }
      case Action::start_reload: {
        const auto& reload = s_.reloads[i.reload.index()];
        start(1, reload.copy_in, s_.offloads[reload.offload.index()].bytes,
              in_copies_[i.reload.value]);
        break;
      }
      case Action::release:
        wait(out_copies_[i.offload.value]);
        break;
      case Action::await:
        wait(in_copies_[i.reload.value]);
        break;
      case Action::drop:
        break;
    }
  }

  const TraceIndex& index_;
  const Calibration& link_;
  const Schedule& s_;
  Nanoseconds now_ = 0;
  Nanoseconds launched_ = 0;
  Lane lanes_[2];
  std::map<std::int32_t, Copy> out_copies_;
  std::map<std::int32_t, Copy> in_copies_;
  OracleTime out_;
};

}  // namespace

OracleTime oracle_time(const TraceIndex& index, const Schedule& schedule) {
  return Machine(index, schedule).run();
}

}  // namespace stowage::testing
