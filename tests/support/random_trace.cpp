#include <algorithm>
#include <random>
#include <utility>

#include "tests/support/micro_trace.h"
#include "tests/support/random_modes.h"

namespace stowage::testing {
namespace {

using simulator::CopyMode;
using simulator::Decision;
using simulator::Decisions;
using simulator::ProgramPoint;
using simulator::ReleasePoint;
using simulator::ReloadPoint;

// mt19937_64 gives the same numbers everywhere; the library's distributions do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed * 7919 + 17) {}
  std::int64_t in(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return in(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(in(0, static_cast<std::int64_t>(items.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

class RandomTrace {
 public:
  RandomTrace(std::uint64_t seed, const RandomTraceOptions& options)
      : dice_(seed),
        extra_(seed + 77'000'003),
        rest_(seed + 55'000'001),
        gaps_(seed + 33'000'001),
        values_(seed + 11'000'003),
        state_(seed + 22'000'007),
        gradients_(seed + 44'000'009),
        options_(options) {}

  Trace run() && {
    link();
    zero_grad();
    const int micro_batches = dice_.chance(35) ? 2 : 1;  // slots and buffers are used again
    for (int i = 0; i < micro_batches; ++i) {
      if (i > 0) t_.forward();
      saved_.clear();
      forward();
      backward();
    }
    make_the_rest();
    optimizer();
    return t_.finish();
  }

 private:
  struct Gradient {
    StorageId parameter;
    StorageId made;
    bool is_reported = false;
  };

  // What keeps a storage of the step alive, in the structure pass.
  struct Live {
    StorageId id;
    bool model = true;   // the model's own reference
    int references = 0;  // autograd's, and tensors handed out by unpacks
    int version = 0;     // how often it was written in place
    bool forever = false;
    bool freed = false;
  };
  struct Held {
    UnpackId unpack;
    std::size_t live;
  };

  void link() {
    Calibration& c = t_.link();
    const std::int64_t speed = 100'000'000 * options_.unit / 4;
    c.d2h = flat_link(dice_.in(2, 40) * speed, dice_.chance(50) ? dice_.in(0, 60) : 0);
    c.h2d = flat_link(dice_.in(2, 40) * speed, dice_.chance(50) ? dice_.in(0, 60) : 0);
    if (dice_.chance(50)) c.duplex = dice_.in(500'000, kPpm);
    if (dice_.chance(50)) c.copy_interference = dice_.in(600'000, kPpm);
    if (dice_.chance(50)) c.compute_interference = dice_.in(800'000, kPpm);
    if (options_.device_times && rest_.chance(40)) {
      c.least_compute = rest_.in(700'000, 990'000);
      c.rest_gain = rest_.in(10'000, 500'000);
    }
    if (options_.device_times && extra_.chance(70)) {
      c.copy_issue_ns = extra_.in(0, 30);
      c.wait_issue_ns = extra_.in(0, 20);
      c.hook_ns = extra_.in(0, 10);
    }
    if (options_.device_times && gaps_.chance(60)) {
      c.start_gap_ns = gaps_.in(0, 15);
      c.handover_ns = gaps_.in(0, 41);
      c.compute_copy_gap_ns = gaps_.in(0, 40);
      c.woken_launch = gaps_.in(200'000, kPpm);
    }
    if (!options_.several_weights || extra_.chance(50)) return;
    for (LinkCurve* curve : {&c.d2h, &c.h2d}) {
      const std::int64_t rate = curve->bytes_per_second.front();
      curve->bytes = {100 * options_.unit, 300 * options_.unit};
      curve->bytes_per_second = {rate, rate / 2};
      curve->bytes_per_second_p10 = curve->bytes_per_second;
    }
  }

  // Gradients of the step before go away, parameters stay.
  void zero_grad() {
    for (int i = 0; i < 3; ++i) parameters_.push_back(t_.existing(bytes(1, 100)));
    for (int i = 0; options_.parameters && i < 5; ++i) {
      parameters_.push_back(t_.existing(options_.unit * extra_.in(1, 100)));
    }
    for (int i = 0; options_.several_weights && i < kBlocks * kWeights; ++i) {
      weights_.push_back(t_.existing(options_.unit * extra_.in(20, 200)));
    }
    std::vector<StorageId> left = gradients_before();
    std::vector<StorageId> old{t_.existing(bytes(1, 100), StorageClass::gradient)};
    for (const StorageId parameter : parameters_) {
      const auto pieces = options_.parameters ? state_.in(0, 2) : 0;
      for (std::int64_t i = 0; i < pieces; ++i) {
        states_.push_back(t_.state_of(parameter, options_.unit * state_.in(1, 100)));
      }
    }
    if (options_.setup) {
      // As many as a step of this kind leaves behind, mostly.
      for (int i = 0; i < options_.ops; ++i) old.push_back(t_.existing(0, StorageClass::gradient));
      t_.repeat(old);
      t_.set_up({extra_.in(0, 300) * options_.unit, extra_.in(0, 300) * options_.unit});
    }
    work();
    for (const StorageId storage : old) t_.free(storage);
    for (const StorageId storage : left) t_.free(storage);
  }

  // Of most parameters; now and then of none, or one that the step does not make anew.
  std::vector<StorageId> gradients_before() {
    std::vector<StorageId> left;
    if (!options_.parameters || gradients_.chance(15)) return left;
    for (const StorageId parameter : parameters_) {
      if (!gradients_.chance(75)) continue;
      if (!options_.updates_in_backward && (options_.setup || gradients_.chance(92))) {
        left.push_back(t_.gradient_before(parameter));
      }
      if (options_.setup || gradients_.chance(95)) gradients_of_.push_back({parameter, {}, false});
    }
    return left;
  }

  // The running op makes one or adds to one; autograd says so behind it.
  void make_gradients() {
    if (gradients_of_.empty() || !gradients_.chance(40)) return;
    Gradient& each = gradients_of_[static_cast<std::size_t>(
        gradients_.in(0, static_cast<std::int64_t>(gradients_of_.size()) - 1))];
    make(each);
  }
  void make(Gradient& each) {
    if (each.made.valid() && options_.updates_in_backward) return;
    if (each.made.valid()) {
      t_.write(each.made);
    } else {
      each.made = t_.make_gradient(each.parameter);
    }
    each.is_reported = false;
  }
  void report_gradients() {
    for (Gradient& each : gradients_of_) {
      if (!each.made.valid() || std::exchange(each.is_reported, true)) continue;
      if (!gradients_.chance(97)) continue;  // somebody else has its hook
      t_.accumulate(each.parameter);
      if (options_.updates_in_backward) update_in_backward(each);
    }
  }
  void update_in_backward(const Gradient& of) {
    if (!gradients_.chance(90)) return;  // it goes on, as others do
    t_.update(of.parameter, extra_.in(0, 80));
    updated_.push_back(of.parameter);
    if (gradients_.chance(5)) {
      t_.begin_op();
      t_.read(of.made);
      t_.end_op();
    }
    if (gradients_.chance(95)) t_.free(of.made);
  }
  // What no op of backward made.
  void make_the_rest() {
    for (Gradient& each : gradients_of_) {
      if (each.made.valid()) continue;
      t_.begin_op();
      work();
      make(each);
      t_.end_op();
      report_gradients();
    }
  }
  // Norms are clipped.
  void look_at_gradients() {
    if (gradients_of_.empty() || !gradients_.chance(30)) return;
    for (const Gradient& each : gradients_of_) {
      if (!gradients_.chance(60)) continue;
      t_.begin_op();
      gradients_.chance(50) ? t_.write(each.made) : t_.read(each.made);
      t_.run(gradients_.in(0, 60));
      t_.end_op();
    }
  }

  Bytes bytes(std::int64_t low, std::int64_t high) { return options_.unit * dice_.in(low, high); }

  // cuBLAS makes its workspace when it is needed first.
  void first_time() {
    if (!options_.setup || !extra_.chance(5)) return;
    const Bytes bytes = extra_.in(1, 200) * options_.unit;
    if (extra_.chance(30)) {
      t_.once(bytes);
    } else {
      t_.made_by_first_step(bytes);
    }
  }

  void work() {
    first_time();
    t_.run(dice_.chance(70) ? dice_.in(0, 80) : 0);
    if (options_.device_times && dice_.chance(60)) t_.kernel(dice_.in(0, 200));
    if (options_.device_times && extra_.chance(5)) t_.sync(extra_.in(0, 100));
  }

  void forward() {
    int layers = 0;
    layer_names_.clear();
    blocks_ = 0;
    std::vector<std::string> open;
    for (int op = 0; op < options_.ops; ++op) {
      if (open.size() < 2 && dice_.chance(40)) {
        open.push_back("layers." + std::to_string(layers++));
        layer_names_.push_back(open.back());
        t_.begin_layer(open.back());
      }
      forward_op();
      if (!open.empty() && dice_.chance(40)) {
        t_.end_layer(open.back());
        open.pop_back();
      }
    }
    for (; !open.empty(); open.pop_back()) t_.end_layer(open.back());
  }

  void forward_op() {
    if (options_.several_weights && blocks_ < kBlocks && extra_.chance(60)) use_block(true);
    t_.begin_op();
    read_parameters(true);
    if (dice_.chance(60)) pack_something();
    work();
    if (dice_.chance(50)) temporary();
    live_.push_back({t_.alloc(bytes(0, 200))});
    if (values_.chance(20)) write_something();
    if (dice_.chance(70)) pack_something();
    work();
    t_.end_op();
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].model && dice_.chance(30)) let_go(i);
    }
  }

  // In backward from the last one to the first, mostly.
  void read_parameters(bool in_forward) {
    if (!options_.parameters || !extra_.chance(60)) return;
    const auto count = static_cast<std::int64_t>(parameters_.size());
    std::int64_t& at = in_forward ? forward_at_ : backward_at_;
    const auto row = extra_.chance(85) ? at++ % count : extra_.in(0, count - 1);
    t_.read(parameters_[static_cast<std::size_t>(in_forward ? row : count - 1 - row)]);
  }

  void use_block(bool in_forward) {
    const int block = in_forward ? blocks_++ : --blocks_;
    const std::string name = "blocks." + std::to_string(block);
    in_forward ? t_.begin_layer(name) : t_.begin_layer_backward(name);
    for (int i = 0; i < kWeights; ++i) {
      const int weight = in_forward ? i : kWeights - 1 - i;
      if (!in_forward && extra_.chance(30)) continue;  // a bias
      const std::string inner = name + "." + std::to_string(weight);
      in_forward ? t_.begin_layer(inner) : t_.begin_layer_backward(inner);
      t_.begin_op();
      t_.read(weights_[static_cast<std::size_t>(block * kWeights + weight)]);
      t_.run(extra_.in(0, 2000));
      if (extra_.chance(50)) temporary();
      t_.end_op();
      in_forward ? t_.end_layer(inner) : t_.end_layer_backward(inner);
    }
    in_forward ? t_.end_layer(name) : t_.end_layer_backward(name);
  }

  void temporary() {
    const StorageId id = t_.alloc(bytes(1, 200), StorageClass::temporary);
    work();
    t_.free(id);
  }

  void pack_something() {
    if (dice_.chance(15)) {
      saved_.push_back({t_.pack(dice_.of(parameters_)), -1});
      return;
    }
    std::vector<std::size_t> held;  // by the model: only that can still be saved
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].model) held.push_back(i);
    }
    if (held.empty()) return;
    const std::size_t row = dice_.of(held);
    const DType dtype = values_.chance(50)
                            ? DType::float32
                            : static_cast<DType>(values_.in(0, static_cast<int>(DType::other)));
    const Bytes each = element_bytes(dtype);
    const std::int64_t words = trace_bytes(row) / 4;
    TensorId view;
    if (words > 1 && dice_.chance(40)) {
      const std::int64_t first = dice_.in(0, words - 1);
      view = t_.view(live_[row].id, first * 4 / each, dice_.in(0, words - first) * 4 / each, dtype);
    } else {
      view = t_.view(live_[row].id, 0, -1, dtype);
    }
    ++live_[row].references;
    saved_.push_back({t_.pack(view), static_cast<std::int32_t>(row)});
    t_.set_version(saved_.back().id, live_[row].version);
  }

  // The running op changes an activation that the model holds. What was saved of it before is older
  // from then on; what is saved behind has a higher version.
  void write_something() {
    std::vector<std::size_t> held;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].model) held.push_back(i);
    }
    if (held.empty()) return;
    Live& live = live_[values_.of(held)];
    t_.write(live.id);
    ++live.version;
  }

  Bytes trace_bytes(std::size_t row) { return t_.bytes_of(live_[row].id); }

  void let_go(std::size_t row) {
    live_[row].model = false;
    t_.let_go(live_[row].id);
    free_if_unused(row);
  }

  void release_reference(std::size_t row) {
    --live_[row].references;
    free_if_unused(row);
  }

  void free_if_unused(std::size_t row) {
    Live& live = live_[row];
    if (live.freed || live.model || live.forever || live.references > 0) return;
    live.freed = true;
    t_.free(live.id);
  }

  void backward() {
    t_.backward();
    std::vector<Saved> again;
    for (std::size_t i = saved_.size(); i-- > 0;) {
      if (!layer_names_.empty() && dice_.chance(20))
        t_.begin_layer_backward(dice_.of(layer_names_));
      const bool unused = dice_.chance(12);
      const bool twice = !unused && dice_.chance(12);
      if (blocks_ > 0 && extra_.chance(60)) use_block(false);
      backward_op(saved_[i], unused, twice);
      if (twice) again.push_back(saved_[i]);
    }
    for (const Saved& saved : again) backward_op(saved, false, false);
    for (std::size_t row = 0; row < live_.size(); ++row) {
      if (live_[row].model && dice_.chance(80)) let_go(row);
    }
    while (!handed_out_.empty()) drop_one();
    while (blocks_ > 0) use_block(false);
  }

  struct Saved {
    SavedId id;
    std::int32_t live;  // -1: a parameter
  };

  void backward_op(const Saved& saved, bool unused, bool stays_saved) {
    t_.begin_op();
    read_parameters(false);
    work();
    if (!unused) unpack(saved);
    if (values_.chance(10)) write_something();
    work();
    if (dice_.chance(50)) temporary();
    if (dice_.chance(20)) t_.alloc(bytes(1, 50), StorageClass::gradient);  // outlives
    make_gradients();
    t_.end_op();
    report_gradients();
    if (saved.live >= 0 && !stays_saved) release_reference(static_cast<std::size_t>(saved.live));
    while (!handed_out_.empty() && dice_.chance(40)) drop_one();
    for (std::size_t row = 0; row < live_.size(); ++row) {
      if (live_[row].model && dice_.chance(10)) let_go(row);
    }
  }

  void unpack(const Saved& saved) {
    const UnpackId id = t_.unpack(saved.id);
    if (saved.live < 0) return;
    const auto row = static_cast<std::size_t>(saved.live);
    if (dice_.chance(3)) {
      live_[row].forever = true;
      t_.outlives_step(id);
    } else if (dice_.chance(50)) {
      ++live_[row].references;
      handed_out_.push_back({id, row});
    }
  }

  void drop_one() {
    const Held held = handed_out_.front();
    handed_out_.erase(handed_out_.begin());
    t_.drop(held.unpack);
    release_reference(held.live);
  }

  void optimizer() {
    t_.optimizer();
    look_at_gradients();
    for (const StorageId parameter : parameters_) {
      if (std::find(updated_.begin(), updated_.end(), parameter) != updated_.end()) continue;
      if (options_.parameters && extra_.chance(70)) {
        look_at_state();
        t_.update(parameter, extra_.in(0, 80));
        continue;
      }
      if (options_.parameters && extra_.chance(70)) continue;
      t_.begin_op("aten::add_");
      t_.write(parameter);
      work();
      t_.end_op();
    }
  }

  // Somebody reads some state ahead of an update, or changes it.
  void look_at_state() {
    if (states_.empty() || !state_.chance(20)) return;
    t_.begin_op();
    const StorageId state = state_.of(states_);
    if (state_.chance(30)) {
      t_.write(state);
    } else {
      t_.read(state);
    }
    t_.end_op();
  }

  static constexpr int kBlocks = 3;
  static constexpr int kWeights = 3;

  Dice dice_;
  Dice extra_;  // for what came later: the other draws stay as they are
  Dice rest_;
  Dice gaps_;
  Dice values_;  // element types, writes
  Dice state_;   // of the optimizer
  Dice gradients_;
  RandomTraceOptions options_;
  MicroTrace t_;
  std::vector<StorageId> parameters_;
  std::vector<StorageId> weights_;  // of blocks, in order
  std::vector<StorageId> states_;
  std::vector<Gradient> gradients_of_;
  std::vector<StorageId> updated_;  // in backward
  int blocks_ = 0;                  // that forward used and backward did not yet
  std::vector<Live> live_;
  std::vector<Saved> saved_;
  std::vector<Held> handed_out_;
  std::vector<std::string> layer_names_;
  std::int64_t forward_at_ = 0;
  std::int64_t backward_at_ = 0;
};

// A layer with such an event inside [first, last], or none.
std::string layer_between(const Trace& trace, Dice& dice, EventKind kind, EventId first,
                          EventId last) {
  std::vector<std::string> names;
  for (std::size_t e = first.index(); e <= last.index(); ++e) {
    if (trace.events.kind[e] != kind) continue;
    names.push_back(trace.string(trace.layers.name[static_cast<std::size_t>(trace.events.ref[e])]));
  }
  return names.empty() ? std::string() : dice.of(names);
}

ProgramPoint point(ProgramPoint::Phase phase, const std::string& layer, ProgramPoint::Where where) {
  ProgramPoint p;
  p.phase = phase;
  p.layer = layer;
  p.where = where;
  return p;
}

ReleasePoint random_release(const Trace& trace, Dice& dice, std::size_t saved) {
  ReleasePoint release;
  if (dice.chance(40)) return release;
  release.kind = ReleasePoint::Kind::pack;
  release.lag = static_cast<std::int32_t>(dice.in(0, 5));
  if (!dice.chance(40)) return release;
  const EventId end(trace.events.size() - 1);
  const std::string layer =
      layer_between(trace, dice, EventKind::layer_forward_end, trace.saved.event[saved], end);
  if (layer.empty()) return release;
  release.kind = ReleasePoint::Kind::point;
  release.lag = 0;
  release.point = point(ProgramPoint::Phase::forward, layer, ProgramPoint::Where::end);
  return release;
}

ReloadPoint random_reload(const Trace& trace, Dice& dice, EventId first_unpack) {
  ReloadPoint reload;
  if (dice.chance(50)) return reload;
  reload.kind = ReloadPoint::Kind::unpack;
  if (!first_unpack.valid() || dice.chance(40)) return reload;
  const std::string layer = layer_between(trace, dice, EventKind::layer_backward_begin,
                                          EventId(std::size_t{0}), first_unpack);
  if (layer.empty()) return reload;
  reload.kind = ReloadPoint::Kind::point;
  reload.point = point(ProgramPoint::Phase::backward, layer, ProgramPoint::Where::begin);
  return reload;
}

CopyMode random_mode(Dice& dice) {
  if (dice.chance(70)) return CopyMode::lane;
  return dice.chance(50) ? CopyMode::compute : CopyMode::blocking;
}

}  // namespace

Trace random_trace(std::uint64_t seed, const RandomTraceOptions& options) {
  return RandomTrace(seed, options).run();
}

simulator::ParameterDecisions random_shards(const Trace& trace, std::uint64_t seed) {
  Dice dice(seed + 5'000'011);
  simulator::ParameterDecisions decisions;
  decisions.shard_of.assign(trace.storages.size(), -1);
  const std::int64_t shards = dice.in(1, 5);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter || dice.chance(15)) continue;
    decisions.shard_of[s] = static_cast<std::int32_t>(dice.in(0, shards - 1));
  }
  decisions.stream = random_modes(static_cast<std::size_t>(shards), seed);
  if (dice.chance(50)) decisions.prefetch = static_cast<std::int32_t>(dice.in(0, 3));
  return decisions;
}

simulator::GradientDecisions random_gradients(const Trace& trace, std::uint64_t seed) {
  Dice dice(seed + 7'000'001);
  simulator::GradientDecisions decisions;
  if (dice.chance(60)) return decisions;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const bool is_made = trace.storages.storage_class[s] == StorageClass::gradient &&
                         trace.storages.alloc_event[s].valid();
    decisions.at_home.push_back(is_made && dice.chance(70));
  }
  return decisions;
}

simulator::OptimizerDecisions random_state(const Trace& trace, std::uint64_t seed) {
  Dice dice(seed + 6'000'011);
  simulator::OptimizerDecisions decisions;
  if (dice.chance(10)) return decisions;
  for (const StorageClass each : trace.storages.storage_class) {
    decisions.state_streams.push_back(each == StorageClass::optimizer_state && dice.chance(70));
  }
  return decisions;
}

Decisions random_decisions(const Trace& trace, std::uint64_t seed) {
  Dice dice(seed + 1'000'003);
  Decisions decisions = keep_all(trace);
  // The way a storage moves is drawn once for all of its saved tensors, most of the time.
  std::vector<simulator::SavedDecision> of_storage(trace.storages.size());
  for (auto& row : of_storage) {
    row.decision = dice.chance(70) ? Decision::offload : Decision::keep;
    row.copy_out = random_mode(dice);
    row.copy_in = random_mode(dice);
    row.share = dice.chance(75);
  }
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    auto& row = decisions.saved[s] = of_storage[trace.saved.storage[s].index()];
    if (dice.chance(5)) row.decision = Decision::keep;
    row.release = random_release(trace, dice, s);
    EventId first;
    for (std::size_t u = trace.unpacks.size(); u-- > 0;) {
      if (trace.unpacks.saved[u] == SavedId(s)) first = trace.unpacks.event[u];
    }
    row.reload = random_reload(trace, dice, first);
  }
  if (dice.chance(60)) {
    Bytes now = 0;
    for (std::size_t s = 0; s < trace.storages.size(); ++s) {
      if (!trace.storages.alloc_event[s].valid()) now += trace.storages.bytes[s];
    }
    Bytes peak = now;
    const Bytes least = now;
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      const auto ref = static_cast<std::size_t>(trace.events.ref[e]);
      if (trace.events.kind[e] == EventKind::alloc) now += trace.storages.bytes[ref];
      if (trace.events.kind[e] == EventKind::free) now -= trace.storages.bytes[ref];
      peak = std::max(peak, now);
    }
    decisions.budget = dice.in(least, peak);
  }
  return decisions;
}

}  // namespace stowage::testing
