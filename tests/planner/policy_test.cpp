// planner/policies: what each moves, when, and how, on a hand-made trace.
#include "planner/policy.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "simulator/replay/replay.h"
#include "tests/support/micro_trace.h"
#include "tests/support/schedule_parts.h"

namespace stowage::planner {
namespace {

using simulator::Action;
using simulator::CopyMode;
using simulator::Decision;
using simulator::Decisions;
using simulator::StepIndex;
using testing::MicroTrace;

// A parameter and four storages of 4000, 2048, 1000 and 400 bytes; that of 2048 is saved as two
// halves.
struct Example {
  Trace trace;
  std::vector<StorageId> storages;
};

Example example() {
  MicroTrace m;
  Example out;
  const StorageId weight = m.existing(4096, StorageClass::parameter);
  std::vector<SavedId> saved;
  m.begin_layer("net");
  const char* ops[] = {"aten::mm", "aten::split", "aten::_softmax", "aten::gelu"};
  const Bytes sizes[] = {4000, 2048, 1000, 400};
  for (int i = 0; i < 4; ++i) {
    m.begin_op(ops[i]);
    m.run(1000);
    const StorageId storage = m.alloc(sizes[i]);
    if (i == 0) saved.push_back(m.pack(m.view(weight)));
    if (i == 1) {
      saved.push_back(m.pack(m.view(storage, 0, 256)));
      saved.push_back(m.pack(m.view(storage, 256, 256)));
    } else {
      saved.push_back(m.pack(m.view(storage)));
    }
    m.end_op();
    m.let_go(storage);
    out.storages.push_back(storage);
  }
  m.end_layer("net");
  m.backward();
  m.begin_op("aten::backward");
  for (std::size_t i = saved.size(); i-- > 0;) {
    const UnpackId unpack = m.unpack(saved[i]);
    m.run(1000);
    m.drop(unpack);
  }
  m.end_op();
  for (const StorageId storage : out.storages) m.free(storage);
  out.trace = m.finish();
  return out;
}

Decisions decisions_of(const StepIndex& index, const std::string& spec) {
  const auto rules = policy_rules(index, spec);
  EXPECT_TRUE(rules.ok()) << rules.error().text();
  simulator::Plan plan;
  if (rules.ok()) {
    plan.saved = rules->saved;
    plan.parameters = rules->parameters;
    plan.budget.automatic = rules->automatic;
  }
  const auto decisions = simulator::resolve(index.trace(), plan);
  EXPECT_TRUE(decisions.ok()) << decisions.error().text();
  return decisions.ok() ? decisions.value() : Decisions{};
}

std::string leaving(const Decisions& decisions) {
  std::string out;
  for (const auto& d : decisions.saved) out += d.decision == Decision::offload ? 'x' : '.';
  return out;
}

TEST(Policies, AreListed) {
  std::vector<std::string> names;
  for (const PolicyInfo& info : policies()) {
    names.push_back(info.name);
    EXPECT_FALSE(info.summary.empty());
    for (const PolicyOption& option : info.options) EXPECT_FALSE(option.help.empty());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"resident", "save_on_cpu", "layerwise", "torchtune",
                                             "thunder", "fairscale", "zero_offload", "checkpoint",
                                             "selective", "tail_accumulation", "captum", "auto"}));
  EXPECT_EQ(policy_name("torchtune:stash=5"), "torchtune");
}

// Saved tensors in pack order: weight, 4000, two halves of 2048, 1000, 400.
TEST(Policies, WhatLeaves) {
  const Example e = example();
  const StepIndex index(e.trace);
  EXPECT_EQ(leaving(decisions_of(index, "resident")), "......");
  EXPECT_EQ(leaving(decisions_of(index, "save_on_cpu")), "xxxxxx");
  EXPECT_EQ(leaving(decisions_of(index, "torchtune")), ".xxx..");  // 1000 < 1 KiB
  EXPECT_EQ(leaving(decisions_of(index, "torchtune:min_bytes=500")), ".xxxx.");
  EXPECT_EQ(leaving(decisions_of(index, "torchtune:min_bytes=1GB")), "......");
  EXPECT_EQ(leaving(decisions_of(index, "thunder")), ".xxxxx");
  EXPECT_EQ(leaving(decisions_of(index, "thunder:op=aten::*softmax")), "....x.");
  EXPECT_EQ(leaving(decisions_of(index, "thunder:fraction=0.5")), ".x....");
  EXPECT_EQ(leaving(decisions_of(index, "thunder:fraction=80%")), ".xxx..");
  EXPECT_EQ(leaving(decisions_of(index, "thunder:op=*,fraction=1")), ".xxxxx");
}

// Everything is copied by itself and waited for: out 4096 + 4000 + 1024 + 1024 + 1000 + 400 bytes
// at 1 byte/ns, the same back, and 4 + 6 us of work.
TEST(Policies, SaveOnCpuNeverOverlaps) {
  const Example e = example();
  const StepIndex index(e.trace);
  const Decisions decisions = decisions_of(index, "save_on_cpu");
  EXPECT_EQ(decisions.saved[0].copy_out, CopyMode::blocking);
  EXPECT_EQ(decisions.saved[0].copy_in, CopyMode::compute);
  const auto lowering = simulator::lower(index, decisions);
  ASSERT_TRUE(lowering.ok());
  EXPECT_EQ(lowering->schedule.tenants.size(), 6U);
  EXPECT_EQ(testing::reloads(lowering->schedule).size(), 6U);
  const auto result = simulator::replay(index, lowering->schedule);
  EXPECT_EQ(result.d2h_bytes, 11'544);
  EXPECT_EQ(result.step_ns, 10'000 + 2 * 11'544);
  EXPECT_EQ(result.stall_ns, 2 * 11'544);
}

TEST(Policies, TorchtuneHoldsAStash) {
  const Example e = example();
  const StepIndex index(e.trace);
  for (const int stash : {0, 1, 2, 5}) {
    const auto lowering = simulator::lower(
        index, decisions_of(index, "torchtune:min_bytes=1,stash=" + std::to_string(stash)));
    ASSERT_TRUE(lowering.ok());
    const auto& schedule = lowering->schedule;
    ASSERT_EQ(schedule.tenants.size(), 5U);
    for (const auto& instruction : schedule.instructions) {
      const simulator::Stay& stay = schedule.stays[instruction.stay.index()];
      if (instruction.action != Action::evict || !stay.is_made) continue;
      const auto later = stay.tenant.index() + 1 + static_cast<std::size_t>(stash);
      if (later < 6) {  // saved tensors 1..5 leave; the parameter (0) stays
        EXPECT_EQ(instruction.anchor.event, e.trace.saved.event[later]);
      } else {
        EXPECT_LE(instruction.anchor.event, index.first_unpack_event());
      }
    }
  }
}

TEST(Policies, ThunderSharesAndWaits) {
  const Example e = example();
  const StepIndex index(e.trace);
  const auto lowering = simulator::lower(index, decisions_of(index, "thunder"));
  ASSERT_TRUE(lowering.ok());
  EXPECT_EQ(lowering->schedule.tenants.size(), 4U);  // the halves together
  const auto result = simulator::replay(index, lowering->schedule);
  EXPECT_EQ(result.step_ns, 10'000 + 2 * 7'448);
  // Beside the parameter only one storage is there at any time.
  EXPECT_EQ(result.peak_requested, 4096 + 4000);
}

TEST(Policies, RefuseWhatTheyDoNotKnow) {
  const Example e = example();
  const StepIndex index(e.trace);
  const auto error_of = [&](const std::string& spec) {
    const auto rules = policy_rules(index, spec);
    EXPECT_FALSE(rules.ok()) << spec;
    return rules.ok() ? Error{} : rules.error();
  };
  EXPECT_EQ(error_of("torchtun").hint, "did you mean 'torchtune'?");
  EXPECT_EQ(error_of("torchtune:stahs=5").hint, "did you mean 'stash'?");
  for (const char* spec :
       {"", "nonsense", "torchtune:stash", "torchtune:stash=", "torchtune:stash=-1",
        "torchtune:stash=x", "torchtune:stash=5,stash=6", "torchtune:stash=99999999999",
        "torchtune:min_bytes=12XB", "thunder:fraction=0", "thunder:fraction=2",
        "thunder:fraction=a", "thunder:fraction=", "thunder:op=[", "resident:a=1", "auto"}) {
    EXPECT_EQ(error_of(spec).code, ErrorCode::usage) << spec;
    EXPECT_FALSE(error_of(spec).hint.empty()) << spec;
  }
}

}  // namespace
}  // namespace stowage::planner
