// Segments of the real models that run again. A recording of that run has the events of the step
// that unroll() made of the plain recording; run under a plan, loss and gradients are bitwise those
// of the plain step, the peak and the bytes of host memory that copies reached the predicted ones.
//
// STOWAGE_RANDOM_CASES (14) says how many plans of each model are drawn; the seed of one that fails
// is printed, and STOWAGE_RANDOM_SEED begins there. `ctest -C full -L full` runs 5,148 in all.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "executor/chain_call.h"
#include "executor/planned_step.h"
#include "executor/segment_call.h"
#include "profiler/assembly/assemble.h"
#include "profiler/torch/observed_step.h"
#include "simulator/allocator/allocation_sequence.h"
#include "simulator/lowering/lowering.h"
#include "simulator/lowering/skipped_update.h"
#include "simulator/plan/gradient_rules.h"
#include "simulator/replay/replay.h"
#include "simulator/step/device_updates.h"
#include "simulator/step/op_chains.h"
#include "simulator/step/segments.h"
#include "simulator/step/unroll.h"
#include "tests/profiler_torch/recorded_model.h"
#include "tests/profiler_torch/test_device.h"
#include "tests/profiler_torch/twin_sessions.h"
#include "tests/support/or_throw.h"
#include "tests/support/random_modes.h"

namespace stowage {
namespace {

using simulator::SegmentFinder;
using simulator::Structure;
using testing::or_throw;
using testing::RecordedModel;

std::uint64_t setting(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Layer calls that can run again, as a structure names them.
std::vector<std::string> segments_of(const Trace& trace) {
  const SegmentFinder finder(trace);
  std::vector<std::string> names;
  for (std::size_t l = 1; l < trace.layers.size(); ++l) {
    const std::string& layer = trace.string(trace.layers.name[l]);
    for (std::int32_t call = 0; call < trace.layers.calls[l]; ++call) {
      const std::string name =
          trace.layers.calls[l] > 1 ? layer + "@" + std::to_string(call) : layer;
      if (finder.find(name).ok()) names.push_back(name);
    }
  }
  return names;
}

// Runs of layers too: from each layer to a later one of the same parent.
void add_runs(const Trace& trace, std::mt19937& random, std::vector<std::string>& names) {
  const SegmentFinder finder(trace);
  const std::vector<std::string> layers = names;
  for (const std::string& first : layers) {
    const std::string& last = layers[random() % layers.size()];
    const std::string run = first + simulator::kRunOfLayers + last;
    if (first != last && finder.find(run).ok()) names.push_back(run);
  }
}

// Some of them; within each other in half of the cases.
Structure random_structure(const Trace& trace, std::vector<std::string> order,
                           std::mt19937& random) {
  const SegmentFinder finder(trace);
  const int density = static_cast<int>(random() % 90) + 10;
  const bool may_nest = random() % 2 == 0;
  Structure structure;
  std::vector<simulator::Segment> taken;
  add_runs(trace, random, order);
  std::shuffle(order.begin(), order.end(), random);
  for (const std::string& name : order) {
    if (static_cast<int>(random() % 100) >= density) continue;
    const simulator::Segment segment = or_throw(finder.find(name));
    const bool is_free = std::none_of(taken.begin(), taken.end(), [&](const auto& other) {
      return segment.first < other.end && other.first < segment.end;
    });
    if (!is_free) {
      Structure more = structure;
      more.recompute.push_back(name);
      if (!may_nest || !simulator::unroll(trace, more).ok()) continue;
    }
    taken.push_back(segment);
    structure.recompute.push_back(name);
  }
  return structure;
}

// Some of what chains of ops can make again, beside the segments.
void add_ops(const Trace& trace, std::mt19937& random, Structure& structure) {
  const SegmentFinder segments(trace);
  const simulator::ChainFinder chains(trace);
  std::vector<bool> is_owned(trace.saved.size(), false);
  std::vector<simulator::Segment> taken;
  for (const std::string& name : structure.recompute) {
    taken.push_back(or_throw(segments.find(name)));
    for (const SavedId saved : taken.back().saved) is_owned[saved.index()] = true;
  }
  const int density = static_cast<int>(random() % 90) + 10;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    std::vector<std::string> sites;
    bool is_able = true;
    for (std::size_t row = 0; row < trace.saved.size(); ++row) {
      if (trace.saved.storage[row] != StorageId(s)) continue;
      sites.push_back(trace.string(trace.saved.site[row]));
      is_able = is_able && !is_owned[row] && chains.check(SavedId(row)).ok();
    }
    if (sites.empty() || !is_able || static_cast<int>(random() % 100) >= density) continue;
    Structure more = structure;
    more.ops.insert(more.ops.end(), sites.begin(), sites.end());
    // Backward may not ask for it, or its ops may be of a segment.
    if (simulator::unroll(trace, more).ok()) structure = std::move(more);
  }
}

std::string text_of(const Structure& structure) {
  std::string text = "structure";
  for (const std::string& name : structure.recompute) text += " " + name;
  text += "; by ops";
  for (const std::string& site : structure.ops) text += " " + site;
  text += "; " + std::to_string(structure.host_updates.size()) + " updates on the host";
  return text;
}

std::string text_of(const Trace& trace, std::size_t event) {
  const EventKind kind = trace.events.kind[event];
  const auto ref = static_cast<std::size_t>(std::max(trace.events.ref[event], 0));
  std::string text = name_of(kind);
  switch (kind) {
    case EventKind::alloc:
      return text + " " + std::to_string(trace.storages.bytes[ref]);
    case EventKind::pack:
      return text + " " + trace.string(trace.saved.site[ref]) + " storage " +
             std::to_string(trace.saved.storage_index[ref]) + " version " +
             std::to_string(trace.saved.version[ref]);
    case EventKind::unpack:
      return text + " of pack " + std::to_string(trace.unpacks.saved[ref].value);
    case EventKind::op_begin:
    case EventKind::op_end: {
      const PhaseKind phase = trace.phases.kind[trace.ops.phase[ref].index()];
      text += " " + trace.string(trace.ops.name[ref]) + " phase " + name_of(phase);
      // Nobody tells a recorder whose the ops of a chain are.
      return phase == PhaseKind::recompute
                 ? text
                 : text + " layer " + trace.string(trace.layers.name[trace.ops.layer[ref].index()]);
    }
    case EventKind::layer_forward_begin:
    case EventKind::layer_forward_end:
    case EventKind::layer_backward_begin:
    case EventKind::layer_backward_end:
    case EventKind::recompute_begin:
    case EventKind::recompute_end:
      return text + " " + trace.string(trace.layers.name[ref]);
    default:
      return text;
  }
}

// One line an event; the frees of a gap, of which only the bytes count, as one line.
std::vector<std::string> lines_of(const Trace& trace) {
  std::vector<std::string> lines;
  std::vector<Bytes> freed;
  const auto close = [&] {
    if (freed.empty()) return;
    std::sort(freed.begin(), freed.end());
    std::string line = "free";
    for (const Bytes bytes : freed) line += " " + std::to_string(bytes);
    lines.push_back(line);
    freed.clear();
  };
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (trace.events.kind[e] == EventKind::free) {
      freed.push_back(trace.storages.bytes[static_cast<std::size_t>(trace.events.ref[e])]);
      continue;
    }
    close();
    lines.push_back(text_of(trace, e));
  }
  return lines;
}

Trace record_under(RecordedModel& model, const simulator::Step& step, std::int64_t index) {
  const profiler::RecordOptions again = {
      .again = {executor::segment_specs(step.trace(), step.segments()),
                executor::chain_specs(step.trace(), step.segments())}};
  const profiler::StepFunctions functions = model.session->functions();
  profiler::RawRecording raw;
  raw.structure = or_throw(profiler::observe(model.session->device(), functions,
                                             profiler::RecordMode::keep, index, again));
  raw.offload_all = or_throw(profiler::observe(
      model.session->device(), functions, profiler::RecordMode::offload_all, index + 1, again));
  raw.clean.peak_requested = raw.structure.peak_requested;
  raw.run = model.session->run();
  raw.env = model.session->environment();
  return or_throw(profiler::assemble(raw));
}

void expect_same_lines(const Trace& predicted, const Trace& recorded) {
  const std::vector<std::string> expected = lines_of(predicted);
  const std::vector<std::string> lines = lines_of(recorded);
  const std::size_t common = std::min(expected.size(), lines.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (expected[i] == lines[i]) continue;
    std::string context;
    for (std::size_t k = i > 6 ? i - 6 : 0; k < std::min(i + 3, common); ++k) {
      context += "\n  " + expected[k] + "   |   " + lines[k];
    }
    FAIL() << "line " << i << ": predicted '" << expected[i] << "', recorded '" << lines[i] << "'"
           << context;
  }
  EXPECT_EQ(expected.size(), lines.size());
}

struct ModelCase {
  const char* spec;
  std::int64_t batch;
  const char* optimizer;
  const char* dtype = "fp32";
  const char* segment = nullptr;  // runs in parts
  std::int32_t parts = 1;
  const char* autocast = "";

  [[nodiscard]] testing::Precision precision() const { return {dtype, autocast}; }
  [[nodiscard]] cli::Parts micro_batches() const {
    return segment == nullptr ? cli::Parts() : cli::Parts{{segment, parts}};
  }
};

class RecomputedModel : public ::testing::TestWithParam<ModelCase> {};

TEST_P(RecomputedModel, IsRecordedAsItWasUnrolled) {
  RecordedModel model =
      testing::record_model(GetParam().spec, GetParam().batch, GetParam().optimizer,
                            GetParam().precision(), GetParam().micro_batches());
  const std::vector<std::string> names = segments_of(*model.trace);
  ASSERT_FALSE(names.empty());
  std::size_t again = 0;
  std::size_t by_ops = 0;
  const std::uint64_t first = setting("STOWAGE_RANDOM_SEED", 19);
  const std::uint64_t cases = setting("STOWAGE_RANDOM_CASES", 14) / 2;
  std::int64_t batch = 100;
  for (std::uint64_t k = 0; k < cases; ++k) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(first + k));
    Structure structure;
    if (k % 3 != 0) structure = random_structure(*model.trace, names, random);
    if (k % 3 != 1) add_ops(*model.trace, random, structure);
    if (structure.empty()) continue;
    again += structure.recompute.size();
    by_ops += structure.ops.size();
    SCOPED_TRACE("STOWAGE_RANDOM_SEED=" + std::to_string(first + k) + " " + text_of(structure));
    const simulator::Step step = or_throw(simulator::unroll(*model.trace, structure));
    const Trace recorded = record_under(model, step, batch);
    batch += 2;
    expect_same_lines(step.trace(), recorded);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(again, 0U);
  EXPECT_GT(by_ops, 0U);
}

bool host_can_update(const simulator::StepIndex& recorded) {
  if (testing::test_device_name() != "cpu") return false;  // another arithmetic
  const simulator::DeviceUpdates on_device(recorded);
  const std::vector<StorageId> parameters = on_device.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [&](StorageId each) { return on_device.reason_to_stay(each).empty(); });
}

// Any parameters that the host can update.
void draw_host_updates(const simulator::StepIndex& recorded, std::mt19937& random,
                       Structure& structure) {
  if (random() % 2 == 0 || !host_can_update(recorded)) return;
  const simulator::DeviceUpdates on_device(recorded);
  const int density = 1 + static_cast<int>(random() % 100);
  for (const StorageId parameter : on_device.parameters()) {
    if (on_device.reason_to_stay(parameter).empty() && static_cast<int>(random() % 100) < density) {
      structure.host_updates.push_back(parameter);
    }
  }
}

// What the step is without, the host does; the state of that does not stream.
void add_host_updates(const simulator::StepIndex& index, simulator::Decisions& decisions) {
  const Trace& trace = index.trace();
  const std::vector<StorageId>& on_host = index.step().host_updates();
  if (on_host.empty()) return;
  const auto is_on_host = [&](StorageId parameter) {
    return parameter.valid() &&
           std::count(on_host.begin(), on_host.end(), index.step().origin(parameter).row) > 0;
  };
  decisions.optimizer.updated_on_host.assign(trace.storages.size(), false);
  decisions.optimizer.state_streams.resize(trace.storages.size(), false);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) {
      decisions.optimizer.updated_on_host[s] = is_on_host(StorageId(s));
    } else if (is_on_host(trace.storages.parameter[s])) {
      decisions.optimizer.state_streams[s] = false;
    }
  }
}

// What a segment is given, and what is saved outside of segments, leaves or stays at random; so do
// gradients and the optimizer's state.
simulator::Decisions random_decisions(const simulator::StepIndex& index, std::mt19937& random) {
  const Trace& trace = index.trace();
  simulator::Decisions decisions;
  decisions.saved.resize(trace.saved.size());
  const int density = static_cast<int>(random() % 101);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    const auto saved = index.saved_of(StorageId(s));
    const bool is_made = trace.storages.alloc_event[s].valid();
    if (!is_made || static_cast<int>(random() % 100) >= density) continue;
    for (const SavedId each : saved) {
      simulator::SavedDecision& decision = decisions.saved[each.index()];
      decision.decision = simulator::Decision::offload;
      if (random() % 2 == 0) decision.reload.kind = simulator::ReloadPoint::Kind::unpack;
    }
  }
  if (random() % 2 == 0) {
    for (const StorageClass each : trace.storages.storage_class) {
      decisions.optimizer.state_streams.push_back(each == StorageClass::optimizer_state &&
                                                  random() % 4 != 0);
    }
  }
  if (random() % 2 == 0) {
    const int leaving = static_cast<int>(random() % 101);
    for (const LayerId layer : simulator::layers_of_gradients(trace)) {
      decisions.gradients.at_home.push_back(layer.valid() &&
                                            static_cast<int>(random() % 100) < leaving);
    }
  }
  add_host_updates(index, decisions);
  if (random() % 3 != 0) return decisions;
  // A layer's parameters in one shard.
  decisions.parameters.stream = testing::random_modes(trace.layers.size(), random());
  if (random() % 2 == 0) decisions.parameters.prefetch = static_cast<std::int32_t>(random() % 3);
  decisions.parameters.shard_of.assign(trace.storages.size(), -1);
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] != StorageClass::parameter) continue;
    decisions.parameters.shard_of[s] = trace.storages.layer[s].value;
  }
  return decisions;
}

// All that the last step allocated lay where the plan's placement has it; a first step makes, and
// loads, what is there from then on. Returns how many were served so far.
std::int64_t expect_served(executor::PlannedStep& plan, const simulator::StepIndex& index,
                           const simulator::Schedule& schedule, std::int64_t before) {
  const simulator::HandOutReport report = plan.memory()->report();
  EXPECT_EQ(report.unforeseen, 0);
  EXPECT_EQ(report.conflicts, 0);
  std::int64_t hand_outs = 0;
  for (const auto& each : simulator::allocation_sequence(index, schedule).period) {
    if (!each.free) ++hand_outs;
  }
  if (before == 0) {
    EXPECT_GE(report.served, hand_outs);
  } else {
    EXPECT_EQ(report.served - before, hand_outs);
  }
  return report.served;
}

TEST_P(RecomputedModel, RunsUnderAPlanBitwise) {
  testing::TwinSessions twins(GetParam().spec, GetParam().batch, GetParam().optimizer,
                              GetParam().precision(), GetParam().micro_batches());
  const std::vector<std::string> names = segments_of(twins.trace());
  const std::uint64_t cases = setting("STOWAGE_RANDOM_CASES", 14);
  const std::uint64_t first = setting("STOWAGE_RANDOM_SEED", 1);
  std::cout << "seeds " << first << " to " << first + cases - 1 << "\n";
  std::int64_t batch = 50;
  std::int64_t again = 0;
  std::size_t by_ops = 0;
  std::size_t on_host = 0;
  const std::string_view optimizer = GetParam().optimizer;
  const bool behind_backward =
      optimizer != "none" && optimizer.find("update=backward") == std::string_view::npos;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
    const auto k = seed % 4;
    Structure structure;
    if (k != 0) structure = random_structure(twins.trace(), names, random);
    if (k != 1) add_ops(twins.trace(), random, structure);
    by_ops += structure.ops.size();
    draw_host_updates(twins.index(), random, structure);
    on_host += structure.host_updates.size();
    SCOPED_TRACE("STOWAGE_RANDOM_SEED=" + std::to_string(seed) + " " + text_of(structure));
    const simulator::Step step = or_throw(simulator::unroll(twins.trace(), structure));
    const simulator::StepIndex index(step);
    simulator::Lowering lowered =
        or_throw(simulator::lower(index, random_decisions(index, random)));
    const bool is_placed = seed % 2 == 0;
    if (is_placed) lowered.schedule.placement = simulator::PlacementMode::planned;
    const simulator::ReplayResult predicted = simulator::replay(index, lowered.schedule);
    if (behind_backward && structure.host_updates.empty()) {
      const auto skipped = simulator::skip_update(index, lowered.schedule);
      EXPECT_TRUE(skipped.ok()) << skipped.error().text();
    }
    const auto plan = twins.plan(lowered.schedule, executor::OffPlan::refuse, structure);
    ASSERT_EQ(plan->memory() != nullptr, is_placed);
    std::int64_t served = 0;
    for (int s = 0; s < 3; ++s) {
      const auto result = twins.expect_same_step(*plan, batch++);
      ASSERT_EQ(result.error, "");
      if (is_placed) served = expect_served(*plan, index, lowered.schedule, served);
      EXPECT_TRUE(result.report.on_plan) << result.report.first_difference;
      EXPECT_EQ(result.peak, predicted.peak_requested);
      EXPECT_EQ(plan->host_high_water(), predicted.host_bytes);
    }
    if (HasFailure()) return;
    again += static_cast<std::int64_t>(structure.recompute.size());
  }
  EXPECT_GT(again, 0);
  EXPECT_GT(by_ops, 0U);
  EXPECT_EQ(on_host > 0, host_can_update(twins.index()));
}

constexpr const char* kAutocast = "plugin:" STOWAGE_PLUGIN_DIR "/autocast.so";

// A weight's cast that autocast cached in another layer is gone when the layer would run again.
TEST(RecomputedAutocast, ACastOfAnotherLayerIsRefusedUnlessThatRunsAgainWithIt) {
  const RecordedModel model = testing::record_model(kAutocast, 8, "sgd");
  const SegmentFinder finder(*model.trace);
  for (const char* name : {"own.0", "own.1", "shared.0", "shared.1", "shared.0..shared.2"}) {
    const auto segment = finder.find(name);
    EXPECT_TRUE(segment.ok()) << name << ": " << segment.error().text();
  }
  const auto refused = finder.find("shared.2");
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().text().find("a cast of a parameter that was made outside of it"),
            std::string::npos)
      << refused.error().text();
}

// The first of them casts the weight again, and the last finds that.
TEST(RecomputedAutocast, ARunOfLayersThatShareACastRunsAgain) {
  testing::TwinSessions twins(kAutocast, 8, "sgd");
  Structure structure;
  structure.recompute = {"own.1", "shared.0..shared.2"};
  const simulator::Step step = or_throw(simulator::unroll(twins.trace(), structure));
  const simulator::StepIndex index(step);
  simulator::Decisions keep;
  keep.saved.resize(step.trace().saved.size());
  const simulator::Lowering lowered = or_throw(simulator::lower(index, keep));
  const auto plan = twins.plan(lowered.schedule, executor::OffPlan::refuse, structure);
  for (std::int64_t batch = 0; batch < 3; ++batch) {
    const auto result = twins.expect_same_step(*plan, batch);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.peak, simulator::replay(index, lowered.schedule).peak_requested);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, RecomputedModel,
    ::testing::Values(
        ModelCase{"mlp:layers=3,width=32", 4, "sgd:momentum=0.9"},
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,"
                  "dropout=0.2",
                  2, "adamw"},
        ModelCase{"llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,"
                  "vocab=128,seq=32",
                  2, "none"},
        ModelCase{"resnet50:blocks=1-1-1-1,width=8,image=32,"
                  "classes=40",
                  2, "sgd:momentum=0.9,nesterov=true"},
        ModelCase{"vit:layers=2,width=32,heads=2,patch=8,image=32,classes=40", 2, "adamw:clip=1"},
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,dropout=0.2", 2, "adamw", "bf16"},
        ModelCase{"llama3-8b:layers=1,width=64,heads=4,kv_heads=2,hidden=96,vocab=128,seq=32", 2,
                  "adamw:master=fp32", "bf16"},
        ModelCase{"llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,"
                  "vocab=128,seq=32",
                  2, "adamw:master=fp32,update=backward", "bf16"},
        ModelCase{"mlp:layers=3,width=32", 4, "adam:set_to_none=false"},
        ModelCase{kAutocast, 8, "sgd"},
        // In parts: uneven ones, of a head whose weight is the embedding's; of a root with a
        // gradient; all of the step.
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,dropout=0.2", 2, "adamw", "fp32", "head",
                  3},
        ModelCase{"llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,"
                  "vocab=128,seq=32",
                  2, "none", "bf16", "head", 4},
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,dropout=0.2", 3, "sgd", "fp32", "*", 2},
        ModelCase{"vit:layers=2,width=32,heads=2,patch=8,image=32,classes=40", 3, "none", "fp32",
                  "*", 3},
        // Under autocast, whose casts of parameters are cached.
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,dropout=0.2", 2, "adamw", "fp32", nullptr,
                  1, "bf16"},
        ModelCase{"llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=96,vocab=128,seq=32", 2,
                  "none", "fp32", nullptr, 1, "bf16"},
        ModelCase{"vit:layers=2,width=32,heads=2,patch=8,image=32,classes=40", 2, "sgd", "fp32",
                  nullptr, 1, "bf16"},
        ModelCase{"gpt2:layers=2,width=32,seq=8,vocab=64,dropout=0.2", 2, "sgd", "fp32", "head", 3,
                  "bf16"}));

}  // namespace
}  // namespace stowage
