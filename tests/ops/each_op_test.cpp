// Every differentiable op of PyTorch's operator database, in every dtype and layout that it takes,
// under plans that move all that it saves: results and gradients are bitwise those of the plain
// step, with the dtypes, sizes and strides that they have there. Nothing of it is refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "simulator/lowering/lowering.h"
#include "tests/ops/op.h"
#include "tests/ops/op_names.h"
#include "tests/ops/op_step.h"
#include "tests/profiler_torch/hand_step.h"
#include "tests/support/schedule_parts.h"
#include "tests/support/slowdown.h"

namespace stowage::ops {

void PrintTo(const Op& op, std::ostream* out) {  // NOLINT(readability-identifier-naming)
  *out << op.name;
}

namespace {

std::vector<Op> all_ops() {
  std::vector<Op> all;
  for (auto* const table : {&unary_ops, &binary_ops, &reduction_ops, &shape_ops, &join_ops,
                            &index_ops, &product_ops, &linear_algebra_ops, &activation_ops,
                            &norm_ops, &image_ops, &loss_ops, &fourier_ops, &random_ops}) {
    for (Op& each : table()) all.push_back(std::move(each));
  }
  return all;
}

TEST(OpTables, HaveEveryOpOfPyTorchsDatabaseOrSayWhyNot) {
  std::set<std::string> names;
  for (const Op& each : all_ops()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name << " is there twice";
    EXPECT_TRUE(differentiable_ops().contains(each.name)) << each.name;
    EXPECT_FALSE(left_out_ops().contains(each.name)) << each.name;
  }
  for (const auto& [name, why] : left_out_ops()) {
    EXPECT_TRUE(differentiable_ops().contains(name)) << name;
  }
  for (const auto& [name, dtypes] : differentiable_ops()) {
    EXPECT_TRUE(names.contains(name) || left_out_ops().contains(name)) << name;
    if (left_out_ops().contains(name)) continue;
    EXPECT_FALSE(dtypes.empty()) << name;
  }
  EXPECT_GE(names.size(), 150U);
  std::cout << names.size() << " ops, " << left_out_ops().size() << " are left out\n";
}

struct Totals {
  std::size_t ops = 0;
  std::size_t combinations = 0;
  std::size_t refused = 0;  // by PyTorch
  std::size_t saved = 0;    // tensors that moved
};

class OpTest : public ::testing::TestWithParam<Op> {
 protected:
  static void TearDownTestSuite() {
    std::cout << g_totals.ops << " ops, " << g_totals.combinations
              << " combinations of dtype and layout, " << g_totals.refused
              << " more refused by PyTorch; " << g_totals.saved << " saved tensors moved\n";
    g_totals = {};
  }

  static void count(const OpStep& step, std::size_t saved) {
    ++g_totals.ops;
    g_totals.combinations += step.names().size();
    g_totals.refused += step.refused().size();
    g_totals.saved += saved;
  }

 private:
  static inline Totals g_totals;
};
class EachOp : public OpTest {};
class SecondDerivative : public OpTest {};

// As in Op::refused.
std::set<std::string> refused_by_pytorch(const OpStep& step) {
  std::set<std::string> all;
  const std::vector<std::string> runs = step.names();
  for (const auto& [name, why] : step.refused()) {
    const std::string layout = name.substr(0, name.find('.') + 1);
    const bool for_some = std::any_of(runs.begin(), runs.end(), [&](const std::string& each) {
      return each.starts_with(layout);
    });
    all.insert(for_some ? name : layout.substr(0, layout.size() - 1));
  }
  return all;
}

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::set<std::string> all;
  for (std::string word; stream >> word;) all.insert(word);
  return all;
}

std::string texts(const std::map<std::string, std::string>& refused) {
  std::string all;
  for (const auto& [name, why] : refused) all += name + ": " + why.substr(0, why.find('\n')) + "\n";
  return all;
}

std::size_t moved(const simulator::Schedule& schedule) {
  return static_cast<std::size_t>(std::count_if(schedule.tenant_of.begin(),
                                                schedule.tenant_of.end(),
                                                [](TenantId tenant) { return tenant.valid(); }));
}

// What the step made and saved, but for tensors without elements.
void expect_all_moved(const Trace& trace, const simulator::Schedule& schedule) {
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    const StorageId storage = trace.saved.storage[s];
    if (!storage.valid() || !trace.storages.alloc_event[storage.index()].valid()) continue;
    if (trace.storages.bytes[storage.index()] == 0) continue;
    EXPECT_TRUE(schedule.tenant_of[s].valid()) << trace.string(trace.saved.site[s]);
  }
}

// Runs come in pairs, the plain one first.
void expect_same_pairs(const std::vector<Observations>& runs) {
  ASSERT_FALSE(runs.empty());
  for (std::size_t r = 0; r + 1 < runs.size(); r += 2) {
    const Observations& plain = runs[r];
    const Observations& planned = runs[r + 1];
    ASSERT_EQ(plain.size(), planned.size());
    for (std::size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(plain[i].what, planned[i].what);
      EXPECT_TRUE(plain[i].look == planned[i].look) << plain[i].what;
    }
  }
}

// Under two plans that move all that can move, one of them at once and back on demand, the other
// of a style that each op has of its own. `check` looks at each schedule.
void expect_bitwise(const Op& op, OpStep& body,
                    const std::function<void(const Trace&, const simulator::Schedule&)>& check) {
  testing::HandStep step(body.parameters(), {}, [&] { return body.run(); });
  const auto& styles = testing::styles();
  for (const testing::Style& style : {styles[1], styles[op.name.size() % styles.size()]}) {
    SCOPED_TRACE(style.name);
    static_cast<void>(body.take_runs());
    const auto lowering =
        testing::expect_exact(step, testing::offload_made(step.trace(), style.decision));
    expect_same_pairs(body.take_runs());
    check(step.trace(), lowering.schedule);
    if (testing::offloads_of(lowering.schedule).empty()) break;  // every style is the same
  }
}

TEST_P(EachOp, IsBitwiseWhereAllThatItSavesMoves) {
  const Op& op = GetParam();
  OpStep body(op, differentiable_ops().at(op.name));
  EXPECT_EQ(refused_by_pytorch(body), words(op.refused)) << texts(body.refused());
  if (HasFailure()) return;
  std::size_t saved = 0;
  expect_bitwise(op, body, [&](const Trace& trace, const simulator::Schedule& schedule) {
    expect_all_moved(trace, schedule);
    saved = moved(schedule);
    EXPECT_EQ(saved == 0, op.moves_nothing);
  });
  count(body, saved);
}

// Not all can move: what backward saves again stays. Linear ops have nothing to show.
TEST_P(SecondDerivative, IsBitwiseWhereAllMovesThatCan) {
  const Op& op = GetParam();
  OpStep body(op, differentiable_ops().at(op.name), Derivative::second);
  if (body.names().empty()) return;
  std::size_t saved = 0;
  expect_bitwise(op, body, [&](const Trace&, const simulator::Schedule& schedule) {
    saved = moved(schedule);
  });
  count(body, saved);
}

// CI draws every eighth; all of them: ctest --preset release -C full -R ops.in_full.
std::vector<Op> ops_that_save() {
  std::vector<Op> all = all_ops();
  std::erase_if(all, [](const Op& each) { return each.moves_nothing; });
  if (testing::stride() == 1) return all;
  std::vector<Op> drawn;
  for (std::size_t i = 0; i < all.size(); i += 8) drawn.push_back(all[i]);
  return drawn;
}

// CI draws every third of a table.
std::vector<Op> drawn(std::vector<Op> table) {
  if (testing::stride() == 1) return table;
  std::vector<Op> some;
  for (std::size_t i = 0; i < table.size(); i += 3) some.push_back(std::move(table[i]));
  return some;
}

std::string test_name(const ::testing::TestParamInfo<Op>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](char each) { return std::isalnum(each) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Unary, EachOp, ::testing::ValuesIn(drawn(unary_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Binary, EachOp, ::testing::ValuesIn(drawn(binary_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Reduction, EachOp, ::testing::ValuesIn(drawn(reduction_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Shape, EachOp, ::testing::ValuesIn(drawn(shape_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Join, EachOp, ::testing::ValuesIn(drawn(join_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Index, EachOp, ::testing::ValuesIn(drawn(index_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Product, EachOp, ::testing::ValuesIn(drawn(product_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(LinearAlgebra, EachOp, ::testing::ValuesIn(drawn(linear_algebra_ops())),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Activation, EachOp, ::testing::ValuesIn(drawn(activation_ops())),
                         test_name);
INSTANTIATE_TEST_SUITE_P(Norm, EachOp, ::testing::ValuesIn(drawn(norm_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Image, EachOp, ::testing::ValuesIn(drawn(image_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Loss, EachOp, ::testing::ValuesIn(drawn(loss_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Fourier, EachOp, ::testing::ValuesIn(drawn(fourier_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(Random, EachOp, ::testing::ValuesIn(drawn(random_ops())), test_name);
INSTANTIATE_TEST_SUITE_P(All, SecondDerivative, ::testing::ValuesIn(ops_that_save()), test_name);

}  // namespace
}  // namespace stowage::ops
