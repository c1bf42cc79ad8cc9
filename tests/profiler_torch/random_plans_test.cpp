// The central claim, on the real models: for any plan, loss, gradients, parameters and buffers are
// bitwise those of the step in which nothing moves, and the requested peak is the predicted one to
// the byte. Copies are delayed at random, so that results do not depend on their timing. CI draws a
// fifth of the plans; all: ctest --preset release -C full -R profiler_torch.random_plans_in_full.
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <random>
#include <string>
#include <vector>

#include "executor/planned_step.h"
#include "simulator/hazards/hazards.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/schedule/tenant_kind.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/support/random_modes.h"
#include "tests/support/schedule_damage.h"
#include "tests/support/schedule_parts.h"
#include "tests/support/slowdown.h"

namespace stowage {
namespace {

using executor::NamedTensor;
using executor::Update;
using simulator::Decision;
using simulator::Decisions;
using simulator::SavedDecision;

using Bits = std::vector<std::vector<char>>;

Bits bits_of(executor::Device& device, const std::vector<NamedTensor>& tensors) {
  Bits bits;
  for (const NamedTensor& each : tensors) bits.push_back(testing::fetch(device, each.tensor));
  return bits;
}

void copy_into(executor::Device& device, const std::vector<NamedTensor>& tensors,
               const Bits& bits) {
  ASSERT_EQ(tensors.size(), bits.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    testing::store(device, tensors[i].tensor, bits[i]);
  }
}

struct Moved {
  Bytes loaded = 0;
  Bytes stored = 0;
};

struct Outcome {
  double loss = 0;
  Bits gradients;
  Bits parameters;
  Bits optimizer_state;
  Bits buffers;  // batch norms' running statistics among them
  Bytes peak = 0;
  Moved moved;
};

// A plan drawn at random. `density` of the storages leave; points, modes and sharing vary.
Decisions random_decisions(const Trace& trace, const simulator::StepIndex& index,
                           std::mt19937& random) {
  const auto chance = [&](int percent) { return static_cast<int>(random() % 100) < percent; };
  const int density = static_cast<int>(random() % 101);
  Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  if (chance(40)) {
    const Bytes peak = trace.peaks.requested.front();
    decisions.budget = peak * static_cast<Bytes>(40 + random() % 60) / 100;
  }
  SavedDecision common;
  common.decision = Decision::offload;
  const bool one_style = chance(50);
  const auto vary = [&](SavedDecision& decision) {
    using simulator::CopyMode;
    constexpr CopyMode kModes[] = {CopyMode::lane, CopyMode::lane, CopyMode::lane,
                                   CopyMode::compute, CopyMode::blocking};
    decision.copy_out = kModes[random() % 5];
    decision.copy_in = kModes[random() % 5];
    decision.share = !chance(20);
    if (chance(50)) {
      decision.release.kind = simulator::ReleasePoint::Kind::pack;
      decision.release.lag = static_cast<std::int32_t>(random() % 12);
    }
    if (chance(40)) decision.reload.kind = simulator::ReloadPoint::Kind::unpack;
  };
  vary(common);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const auto& saved_here = index.saved_of(StorageId(s));
    if (saved_here.empty() || !chance(density)) continue;
    // What existed before the step (parameters, inputs) leaves now and then, too.
    if (!trace.storages.alloc_event[s].valid() && !chance(25)) continue;
    SavedDecision decision = common;
    if (!one_style) vary(decision);
    // An early reload: at the beginning of some layer's backward.
    if (chance(20) && !trace.layers.name.empty()) {
      std::vector<std::string> begun;
      for (std::size_t e = 0; e < trace.events.size(); ++e) {
        if (trace.events.kind[e] != EventKind::layer_backward_begin) continue;
        const UnpackId first = [&] {
          UnpackId least;
          for (const SavedId each : saved_here) {
            for (const UnpackId unpack : index.unpacks_of(each)) {
              if (!least.valid() || unpack < least) least = unpack;
            }
          }
          return least;
        }();
        if (!first.valid() || trace.unpacks.event[first.index()] <= EventId(e)) break;
        begun.push_back(
            trace.string(trace.layers.name[static_cast<std::size_t>(trace.events.ref[e])]));
      }
      if (!begun.empty()) {
        decision.reload.kind = simulator::ReloadPoint::Kind::point;
        decision.reload.point.phase = simulator::ProgramPoint::Phase::backward;
        decision.reload.point.layer = begun[random() % begun.size()];
        decision.reload.point.where = simulator::ProgramPoint::Where::begin;
      }
    }
    for (const SavedId saved : saved_here) decisions.saved[saved.index()] = decision;
  }
  return decisions;
}

// Parameters of the step are cut into shards at random; some of them stay.
simulator::ParameterDecisions random_shards(const Trace& trace, std::mt19937& random) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int32_t>(random() % n); };
  simulator::ParameterDecisions parameters;
  parameters.shard_of.assign(trace.storages.size(), -1);
  const std::int32_t resident = below(2) == 0 ? 0 : below(70);  // percent
  const std::int32_t cut = 1 + below(100);
  std::int32_t shards = 0;
  bool open = false;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    if (below(100) < cut) open = false;
    if (below(100) < resident) continue;
    if (!open) ++shards;
    open = true;
    parameters.shard_of[s] = shards - 1;
  }
  const auto seed = static_cast<std::uint64_t>(below(1'000'000));
  parameters.stream = testing::random_modes(static_cast<std::size_t>(std::max(shards, 1)), seed);
  if (below(10) < 7) parameters.prefetch = below(5);
  return parameters;
}

// Any pieces of the optimizer's state.
simulator::OptimizerDecisions random_state(const Trace& trace, std::mt19937& random) {
  simulator::OptimizerDecisions optimizer;
  const auto density = random() % 2 == 0 ? 100 : random() % 100;
  for (const StorageClass each : trace.storages.storage_class) {
    optimizer.state_streams.push_back(each == StorageClass::optimizer_state &&
                                      random() % 100 < density);
  }
  return optimizer;
}

// Any gradients, or none.
simulator::GradientDecisions random_gradients(const Trace& trace, std::mt19937& random) {
  simulator::GradientDecisions gradients;
  const auto density = random() % 3 == 0 ? 0 : random() % 3 == 0 ? 100 : random() % 100;
  for (const LayerId layer : simulator::layers_of_gradients(trace)) {
    gradients.at_home.push_back(layer.valid() && random() % 100 < density);
  }
  return gradients;
}

Moved moved_state(const simulator::Schedule& schedule) {
  Moved moved;
  for (const simulator::Stay& each : schedule.stays) {
    const simulator::Tenant& tenant = schedule.tenants[each.tenant.index()];
    if (!tenant.has_own_home || each.is_left_out) continue;
    if (!each.is_made) moved.loaded += tenant.bytes;
    if (each.is_stored) moved.stored += tenant.bytes;
  }
  return moved;
}

enum class Shards : bool { none, random };

// Two sessions of one model train side by side from the same state: the planned one, and its twin,
// in which nothing moves. The twin is there while the other one is recorded, so it is part of the
// bytes at the step's begin.
class RandomPlans {
 public:
  RandomPlans(const std::string& spec, std::int64_t batch, const std::string& optimizer)
      : device_(testing::make_delayed_device([this](std::uint64_t number) {
          // A busy delay of up to ~60 us, another one for each copy.
          const std::uint64_t spins = (number * 2654435761U + delay_seed_.load()) % 20000;
          for (std::uint64_t i = 0; i < spins; ++i) {
            std::atomic_signal_fence(std::memory_order_seq_cst);
          }
        })),
        twin_(testing::make_session(spec, batch, optimizer)),
        recorded_(testing::record_model(spec, batch, optimizer)),
        index_(*recorded_.trace) {
    executor::TrainingStep& from = recorded_.session->step();
    copy_into(*device_, twin_->step().parameters(), bits_of(*device_, from.parameters()));
    copy_into(*device_, twin_->step().optimizer_state(), bits_of(*device_, from.optimizer_state()));
    copy_into(*device_, twin_->step().model().buffers(), bits_of(*device_, from.model().buffers()));
  }

  // With shards each plan runs for three steps: what one leaves behind, the next one needs. Where
  // there is an optimizer the second one skips its update.
  void try_plans(int all, unsigned seed, Shards shards = Shards::none) {
    const int count = all / testing::stride();
    const bool streams = shards == Shards::random;
    std::mt19937 random(seed);
    int moved = 0;
    for (int i = 0; i < count; ++i) {
      SCOPED_TRACE("plan " + std::to_string(i) + " of seed " + std::to_string(seed));
      delay_seed_.store(random());
      Decisions decisions = random_decisions(*recorded_.trace, index_, random);
      if (streams) decisions.parameters = random_shards(*recorded_.trace, random);
      if (streams) decisions.optimizer = random_state(*recorded_.trace, random);
      if (streams) decisions.gradients = random_gradients(*recorded_.trace, random);
      const Result<simulator::Lowering> lowering = simulator::lower(index_, decisions);
      ASSERT_TRUE(lowering.ok()) << lowering.error().text();
      const simulator::Schedule& schedule = lowering->schedule;
      moved += (streams ? testing::parameters_of(schedule).empty()
                        : testing::offloads_of(schedule).empty())
                   ? 0
                   : 1;
      run_beside_twin(schedule, streams ? 3 : 1);
      if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(moved, count / 2);
  }

  // Schedules that nobody would lower, damaged at random, and that the hazard check lets pass all
  // the same: what it says is safe must be. So many of them, of many more drawn.
  void try_damaged(int all, unsigned seed) {
    const int count = all / testing::stride();
    std::mt19937 random(seed);
    int ran = 0;
    int refused = 0;
    for (int i = 0; ran < count; ++i) {
      ASSERT_LT(i, 200 * count);
      Decisions decisions = random_decisions(*recorded_.trace, index_, random);
      if (i % 2 == 1) decisions.parameters = random_shards(*recorded_.trace, random);
      if (i % 2 == 1) decisions.optimizer = random_state(*recorded_.trace, random);
      if (i % 2 == 1) decisions.gradients = random_gradients(*recorded_.trace, random);
      const Result<simulator::Lowering> lowering = simulator::lower(index_, decisions);
      ASSERT_TRUE(lowering.ok()) << lowering.error().text();
      for (int damage = 0; damage < 8 && ran < count; ++damage) {
        const simulator::Schedule damaged =
            testing::ScheduleDamage(index_, lowering->schedule, random()).run_on_all();
        if (!simulator::find_hazards(index_, damaged).empty()) {
          ++refused;
          continue;
        }
        SCOPED_TRACE("plan " + std::to_string(i) + " of seed " + std::to_string(seed) +
                     ", damage " + std::to_string(damage));
        delay_seed_.store(random());
        run_beside_twin(damaged, i % 2 == 1 ? 2 : 1, false);
        if (::testing::Test::HasFailure()) return print(damaged);
        ++ran;
      }
    }
    EXPECT_GT(refused, count) << "damage that does harm";
    std::cout << ran << " damaged schedules ran, " << refused << " were refused, seed " << seed
              << "\n";
  }

 private:
  // Which schedules are drawn hangs on the times that were recorded, so a seed does not give one
  // back: what ran is written out.
  void print(const simulator::Schedule& schedule) const {
    std::cout << (ran_ % 2 == 0 ? "planned memory" : "caching") << ", delays " << delay_seed_.load()
              << "\n";
    for (const simulator::Instruction& each : schedule.instructions) {
      const simulator::Stay& stay = schedule.stays[each.stay.index()];
      const std::size_t event = each.anchor.event.index();
      std::cout << simulator::name_of(each.action) << " stay " << each.stay.value
                << (stay.is_made ? " made" : "") << (stay.wraps ? " wraps" : "") << " of "
                << simulator::label(*recorded_.trace, schedule, stay.tenant) << " at host "
                << schedule.tenants[stay.tenant.index()].host_offset << ", modes "
                << static_cast<int>(stay.load_mode) << " " << static_cast<int>(stay.store_mode)
                << (each.anchor.side == simulator::Side::before ? ", before " : ", behind ")
                << name_of(recorded_.trace->events.kind[event]) << " " << event << "\n";
    }
  }

  // Both run the same batches. `as_lowered`: nothing is copied that is not in the schedule, and the
  // arena has no byte too many.
  // Every second one is in planned memory.
  void run_beside_twin(simulator::Schedule schedule, int steps, bool as_lowered = true) {
    as_lowered_ = as_lowered;
    if (ran_++ % 2 == 1) schedule.placement = simulator::PlacementMode::planned;
    executor::PlannedStepOptions options;
    options.older = recorded_.session->step().older_tensors();
    options.optimizer_state = recorded_.session->step().state_maker();
    options.poison_host = true;
    options.poison_device = true;
    const simulator::ReplayResult predicted = simulator::replay(index_, schedule);
    const Bytes resident =
        simulator::replay(index_, simulator::resident_schedule(index_)).peak_requested;
    const auto skipped = simulator::skip_update(index_, schedule);
    const std::string& optimizer = recorded_.trace->run.optimizer;
    const bool updates_behind_backward =
        optimizer != "none" && optimizer.find("update=backward") == std::string::npos;
    ASSERT_EQ(skipped.ok(), updates_behind_backward) << (skipped ? "" : skipped.error().text());
    const std::int64_t first = next_step_;
    Outcome reference = run(*twin_, nullptr, first, Update::taken);
    // A GPU's libraries have all their workspaces, which the recording had, from the first plan on.
    if (first > 0 || device_->torch_device().is_cpu()) {
      ASSERT_EQ(reference.peak, resident);
    }
    auto plan = executor::PlannedStep::create(*device_, recorded_.trace, schedule,
                                              recorded_.session->step().parameters(), options);
    ASSERT_TRUE(plan.ok()) << plan.error().text();
    for (next_step_ = first; next_step_ < first + steps; ++next_step_) {
      SCOPED_TRACE("step " + std::to_string(next_step_ - first));
      const bool skips = steps == 3 && next_step_ == first + 1 && skipped.ok();
      const Update update = skips ? Update::skipped : Update::taken;
      const simulator::Schedule& period = skips ? skipped->schedule : schedule;
      if (next_step_ > first) reference = run(*twin_, nullptr, next_step_, update);
      const Outcome outcome = run(*recorded_.session, plan->get(), next_step_, update);
      if (::testing::Test::HasFailure()) return;
      const Bytes peak =
          skips ? simulator::replay(simulator::StepIndex(skipped->step), period).peak_requested
                : predicted.peak_requested;
      ASSERT_EQ(outcome.peak, peak)
          << testing::offloads_of(schedule).size() << " offloads, "
          << testing::parameters_of(schedule).size() << " parameters, resident " << resident;
      const Bytes reached = (*plan)->host_high_water();
      ASSERT_LE(reached, predicted.host_bytes) << "that copies reached";
      if (as_lowered) {
        ASSERT_EQ(reached, predicted.host_bytes) << "that copies reached";
      }
      ASSERT_EQ(outcome.moved.loaded, moved_state(period).loaded);
      ASSERT_EQ(outcome.moved.stored, moved_state(period).stored);
      ASSERT_EQ(outcome.loss, reference.loss);
      ASSERT_TRUE(outcome.gradients == reference.gradients);
      ASSERT_TRUE(outcome.parameters == reference.parameters);
      ASSERT_TRUE(outcome.optimizer_state == reference.optimizer_state);
      ASSERT_TRUE(outcome.buffers == reference.buffers);
    }
  }

  Outcome run(cli::Session& session, executor::PlannedStep* plan, std::int64_t index,
              Update update) {
    executor::TrainingStep& step = session.step();
    step.prepare(index);
    device_->synchronize();
    device_->reset_peak();
    Outcome outcome;
    if (plan != nullptr) plan->begin_step();
    try {
      outcome.loss = step.step(update);
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
      if (plan != nullptr) plan->abort_step();
      return outcome;
    }
    outcome.peak = device_->memory().peak_requested;
    if (plan != nullptr) {
      const auto report = plan->end_step();
      EXPECT_TRUE(report.ok() && report->on_plan);
      // A store that lies behind the step's end is made ahead of it as well: the host has all bytes
      // between two steps. No lowering puts one there.
      EXPECT_TRUE(report.ok() && (!as_lowered_ || report->unplanned_stored_bytes == 0));
      if (report) outcome.moved = {report->loaded_bytes, report->stored_bytes};
      if (report) outcome.peak = report->memory.peak_requested;
    }
    const std::vector<NamedTensor> gradients = step.gradients();
    outcome.gradients = bits_of(*device_, plan != nullptr ? plan->values(gradients) : gradients);
    outcome.parameters = bits_of(*device_, plan != nullptr ? plan->values() : step.parameters());
    const std::vector<NamedTensor> state = step.optimizer_state();
    outcome.optimizer_state = bits_of(*device_, plan != nullptr ? plan->values(state) : state);
    outcome.buffers = bits_of(*device_, step.model().buffers());
    return outcome;
  }

  int ran_ = 0;
  std::atomic<std::uint64_t> delay_seed_{0};
  // Made ahead of the recording: libraries' workspaces of tests before go then, and not behind it.
  std::unique_ptr<executor::Device> device_;
  std::unique_ptr<cli::Session> twin_;
  testing::RecordedModel recorded_;
  simulator::StepIndex index_;
  std::int64_t next_step_ = 0;
  bool as_lowered_ = true;
};

// 950 in all.
TEST(RandomPlans, AreBitwiseAndExactOnGpt2WithMathAttention) {
  RandomPlans("gpt2:layers=3,width=64,seq=32,vocab=128", 2, "none").try_plans(150, 1);
}

TEST(RandomPlans, AreBitwiseAndExactOnGpt2WithEfficientAttentionAndAdamw) {
  RandomPlans("gpt2:layers=3,width=64,seq=32,vocab=128,attention=efficient", 2, "adamw")
      .try_plans(120, 2);
}

TEST(RandomPlans, AreBitwiseAndExactOnGpt2WithAnUntiedHeadAndSgd) {
  RandomPlans("gpt2:layers=2,width=64,seq=24,vocab=96,tied=false", 3, "sgd").try_plans(80, 3);
}

// Its backward begins at the logits, with a gradient that is a tensor of the step.
TEST(RandomPlans, AreBitwiseAndExactOnLlamaWithOnes) {
  RandomPlans("llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,vocab=128,seq=32", 2,
              "none")
      .try_plans(60, 6);
}

TEST(RandomPlans, AreBitwiseAndExactOnLlamaWithCrossEntropyAndAdamw) {
  RandomPlans(
      "llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,vocab=128,seq=32,"
      "attention=efficient,loss=cross-entropy",
      2, "adamw")
      .try_plans(40, 7);
}

TEST(RandomPlans, AreBitwiseAndExactOnMlpWithAdamw) {
  RandomPlans("mlp:layers=5,width=48", 16, "adamw").try_plans(100, 4);
}

TEST(RandomPlans, AreBitwiseAndExactOnMlpWithSgd) {
  RandomPlans("mlp:layers=4,width=64", 8, "sgd").try_plans(50, 5);
}

TEST(RandomPlans, AreBitwiseAndExactOnMlpWithMomentum) {
  RandomPlans("mlp:layers=4,width=64", 8, "sgd:momentum=0.9").try_plans(50, 8);
}

constexpr const char* kResnet = "resnet50:blocks=1-1-1-1,width=8,image=32,classes=40";
constexpr const char* kVit = "vit:layers=2,width=32,heads=2,patch=8,image=32,classes=40";

TEST(RandomPlans, AreBitwiseAndExactOnResnetWithSgd) {
  RandomPlans(kResnet, 4, "sgd").try_plans(80, 21);
}

TEST(RandomPlans, AreBitwiseAndExactOnResnetInChannelsLastWithAdamw) {
  RandomPlans(std::string(kResnet) + ",channels_last=true", 4, "adamw").try_plans(80, 22);
}

TEST(RandomPlans, AreBitwiseAndExactOnVitWithAdamw) {
  RandomPlans(kVit, 3, "adamw").try_plans(80, 23);
}

TEST(RandomPlans, AreBitwiseAndExactOnVitWithMathAttentionAndSgd) {
  RandomPlans(std::string(kVit) + ",attention=math", 3, "sgd").try_plans(60, 24);
}

// A thousand in all.
TEST(DamagedPlans, ThatAreLetPassAreBitwiseOnMlpWithAdamw) {
  RandomPlans("mlp:layers=4,width=32", 8, "adamw").try_damaged(600, 31);
}

TEST(DamagedPlans, ThatAreLetPassAreBitwiseOnGpt2WithSgd) {
  RandomPlans("gpt2:layers=2,width=64,seq=24,vocab=96", 2, "sgd").try_damaged(400, 32);
}

// 800 in all, with shards.
TEST(RandomShards, AreBitwiseAndExactOnMlpWithAdamw) {
  RandomPlans("mlp:layers=5,width=48", 16, "adamw").try_plans(130, 11, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnMlpWithSgd) {
  RandomPlans("mlp:layers=4,width=64", 8, "sgd").try_plans(80, 12, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnMlpWithMomentumMastersAndAWarmUp) {
  RandomPlans("mlp:layers=4,width=48", 8,
              "sgd:master=fp32,weight_decay=0.01,momentum=0.9,warmup=50")
      .try_plans(80, 18, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnGpt2WithNesterov) {
  RandomPlans("gpt2:layers=2,width=64,seq=24,vocab=96", 2,
              "sgd:weight_decay=0.01,momentum=0.9,nesterov=true")
      .try_plans(60, 19, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnMlpWithMomentumInBackwardAndASchedule) {
  RandomPlans("mlp:layers=4,width=48", 8,
              "sgd:update=backward,lr=0.5,momentum=0.9,warmup=10,decay=linear,total=1000")
      .try_plans(60, 20, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnGpt2WithGradientsThatAreKept) {
  RandomPlans("gpt2:layers=2,width=64,seq=24,vocab=96", 2, "adamw:clip=1,set_to_none=false")
      .try_plans(60, 27, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnMlpWithoutAnOptimizer) {
  RandomPlans("mlp:layers=3,width=32", 8, "none").try_plans(50, 13, Shards::random);
}

// The head is the token embedding.
TEST(RandomShards, AreBitwiseAndExactOnGpt2WithTiedEmbeddingsAndAdamw) {
  RandomPlans("gpt2:layers=3,width=64,seq=32,vocab=128", 2, "adamw")
      .try_plans(110, 14, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnGpt2WithAnUntiedHeadAndSgd) {
  RandomPlans("gpt2:layers=2,width=64,seq=24,vocab=96,tied=false", 3, "sgd")
      .try_plans(50, 15, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnLlamaWithCrossEntropyAndAdamw) {
  RandomPlans(
      "llama3-8b:layers=2,width=256,heads=4,kv_heads=2,hidden=384,vocab=128,seq=16,"
      "attention=efficient,loss=cross-entropy",
      1, "adamw")
      .try_plans(50, 16, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnLlamaWithOnes) {
  RandomPlans("llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,vocab=128,seq=32", 2,
              "none")
      .try_plans(30, 17, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnResnetInChannelsLastWithSgd) {
  RandomPlans(std::string(kResnet) + ",channels_last=true", 4, "sgd")
      .try_plans(50, 25, Shards::random);
}

TEST(RandomShards, AreBitwiseAndExactOnVitWithAdamw) {
  RandomPlans(kVit, 3, "adamw").try_plans(50, 26, Shards::random);
}

}  // namespace
}  // namespace stowage
