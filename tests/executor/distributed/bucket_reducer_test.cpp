#include "executor/distributed/bucket_reducer.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/executor/distributed/ranks.h"

namespace stowage::executor {
namespace {

constexpr int kRanks = 2;

constexpr const char* kTestsRank = "STOWAGE_TEST_IS_RANK";

// Runs the current test once more for each rank; false in these runs.
bool starts_ranks() {
  if (std::getenv(kTestsRank) != nullptr) return false;
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  cli_tests::Command command;
  command.program = "/proc/self/exe";
  command.environment = {std::string(kTestsRank) + "=1"};
  command.args = {std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name()};
  for (const cli_tests::Outcome& rank : run_ranks({command, command})) {
    EXPECT_EQ(rank.code, 0) << rank.out << rank.err;
    EXPECT_NE(rank.out.find("[  PASSED  ] 1 test"), std::string::npos) << rank.out;
  }
  return true;
}

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

struct Rank {
  std::unique_ptr<RankStore> store =
      value_of(RankStore::connect(value_of(rendezvous_from_environment()), RankStore::Beats::yes));
  std::unique_ptr<RankGroup> group = value_of(RankGroup::join(*store, "test"));
};

// Two weights, one of which is used twice, and one that nobody uses.
struct Net {
  at::Tensor twice = at::arange(9, at::kFloat).reshape({3, 3}).div(10).set_requires_grad(true);
  at::Tensor once = at::arange(3, at::kFloat).div(7).set_requires_grad(true);
  at::Tensor unused = at::ones({5}).set_requires_grad(true);

  [[nodiscard]] std::vector<NamedTensor> parameters() const {
    return {{"twice", twice}, {"once", once}, {"unused", unused}};
  }
  [[nodiscard]] at::Tensor loss(const at::Tensor& x) const {
    return (at::linear(at::linear(x, twice).relu(), twice, once)).pow(2).sum();
  }
  void zero() const {
    for (const NamedTensor& each : parameters()) each.tensor.mutable_grad().reset();
  }
};

at::Tensor batch(std::int64_t rank, std::int64_t step, std::int64_t part) {
  return at::arange(6, at::kFloat)
      .reshape({2, 3})
      .sub(3)
      .mul(static_cast<double>(1 + rank))
      .add(static_cast<double>(step) + 0.5 * static_cast<double>(part));
}

// Of all ranks' batches, each rank's added up alone: as each accumulates, halved, then summed.
std::vector<at::Tensor> mean_gradients(std::int64_t step, std::int64_t parts) {
  std::vector<at::Tensor> mean(2);
  for (std::int64_t rank = 0; rank < kRanks; ++rank) {
    const Net net;
    for (std::int64_t part = 0; part < parts; ++part) net.loss(batch(rank, step, part)).backward();
    const at::Tensor gradients[] = {net.twice.grad() / kRanks, net.once.grad() / kRanks};
    for (std::size_t i = 0; i < 2; ++i) {
      mean[i] = mean[i].defined() ? mean[i] + gradients[i] : gradients[i];
    }
  }
  return mean;
}

TEST(BucketReducer, GradientsAreTheMeanOfAllRanksInEachStep) {
  if (starts_ranks()) return;
  const Rank rank;
  const Net net;
  BucketReducer reducer(*rank.group, net.parameters());
  for (std::int64_t step = 0; step < 5; ++step) {
    net.zero();
    reducer.between_steps();
    const std::int64_t before = rank.group->collectives();
    reducer.begin_step();
    reducer.begin_last_backward();
    net.loss(batch(rank.store->rank(), step, 0)).backward();
    reducer.end_backward();
    const std::vector<at::Tensor> mean = mean_gradients(step, 1);
    EXPECT_TRUE(at::equal(net.twice.grad(), mean[0])) << step;
    EXPECT_TRUE(at::equal(net.once.grad(), mean[1])) << step;
    EXPECT_FALSE(net.unused.grad().defined());
    // The first one asks which gradients there are.
    EXPECT_EQ(rank.group->collectives() - before, step == 0 ? 2 : 1);
  }
}

// A bucket that waits for ever for one of its gradients has reduced none of them.
TEST(BucketReducer, AStepThatUsesFewerParametersIsNotTrainedOn) {
  if (starts_ranks()) return;
  const Rank rank;
  const Net net;
  BucketReducer reducer(*rank.group, net.parameters());
  for (std::int64_t step = 0; step < 5; ++step) {
    net.zero();
    reducer.between_steps();
    reducer.begin_step();
    reducer.begin_last_backward();
    const at::Tensor x = batch(rank.store->rank(), step, 0);
    if (step < 4) {
      net.loss(x).backward();
      EXPECT_NO_THROW(reducer.end_backward());
      continue;
    }
    at::linear(at::linear(x, net.twice).relu(), net.twice).pow(2).sum().backward();  // without once
    EXPECT_THROW(reducer.end_backward(), c10::Error);
  }
}

// Gradients of the second bucket are ready while the first is reduced.
TEST(BucketReducer, SeveralBucketsHaveTheMeanToo) {
  if (starts_ranks()) return;
  const Rank rank;
  constexpr std::int64_t kLarge = std::int64_t{7} << 20;  // fp32: 28 MiB
  const at::Tensor large = at::ones({kLarge}).set_requires_grad(true);
  const at::Tensor small = at::ones({std::int64_t{400} << 10}).set_requires_grad(true);
  const at::Tensor last = at::ones({5}).set_requires_grad(true);
  BucketReducer reducer(*rank.group, {{"large", large}, {"small", small}, {"last", last}});
  for (std::int64_t step = 0; step < 4; ++step) {
    for (const at::Tensor& each : {large, small, last}) each.mutable_grad().reset();
    reducer.between_steps();
    const std::int64_t before = rank.group->collectives();
    reducer.begin_step();
    reducer.begin_last_backward();
    const auto factor = static_cast<double>(1 + 2 * rank.store->rank() + step);
    (large.sum() * factor + small.pow(2).sum() * factor + last.sum() * factor).backward();
    reducer.end_backward();
    const auto mean = static_cast<double>(2 + step);
    EXPECT_TRUE(at::equal(large.grad(), at::full_like(large, mean))) << step;
    EXPECT_TRUE(at::equal(small.grad(), at::full_like(small, 2 * mean))) << step;
    EXPECT_TRUE(at::equal(last.grad(), at::full_like(last, mean))) << step;
    EXPECT_GE(rank.group->collectives() - before, 2) << "so many buckets at least";
  }
}

TEST(BucketReducer, PartsOfAStepAreReducedOnceBehindTheLast) {
  if (starts_ranks()) return;
  const Rank rank;
  const Net net;
  BucketReducer reducer(*rank.group, net.parameters());
  constexpr std::int64_t kParts = 3;
  for (std::int64_t step = 0; step < 5; ++step) {
    net.zero();
    reducer.between_steps();
    const std::int64_t before = rank.group->collectives();
    reducer.begin_step();
    for (std::int64_t part = 0; part < kParts; ++part) {
      EXPECT_EQ(rank.group->collectives(), before);
      if (part + 1 == kParts) reducer.begin_last_backward();
      net.loss(batch(rank.store->rank(), step, part)).backward();
    }
    reducer.end_backward();
    const std::vector<at::Tensor> mean = mean_gradients(step, kParts);
    EXPECT_TRUE(at::equal(net.twice.grad(), mean[0])) << step;
    EXPECT_TRUE(at::equal(net.once.grad(), mean[1])) << step;
    EXPECT_EQ(rank.group->collectives() - before, step == 0 ? 2 : 1);
  }
}

TEST(BucketReducer, RefusesOtherParametersThanTheFirstRanks) {
  if (starts_ranks()) return;
  const Rank rank;
  const std::int64_t size = rank.store->rank() == 0 ? 3 : 4;
  const std::vector<NamedTensor> other = {{"w", at::ones({size}).set_requires_grad(true)}};
  if (rank.store->rank() == 0) {
    EXPECT_NO_THROW(BucketReducer(*rank.group, other));  // what the others are compared with
  } else {
    EXPECT_THROW(BucketReducer(*rank.group, other), std::exception);
  }
}

TEST(RankStore, GathersInTheOrderOfRanks) {
  if (starts_ranks()) return;
  const Rank rank;
  EXPECT_EQ(value_of(rank.store->gather("names", rank.store->rank() == 0 ? "a" : "b")),
            (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(rank.store->check_same("same", "x", "the word").ok());
  const Status other =
      rank.store->check_same("other", std::to_string(rank.store->rank()), "the word");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().message, "the word of rank 1 is not that of rank 0: 1 and 0");
}

TEST(RankStore, WhoWaitsHearsOfTheFirstFailure) {
  if (starts_ranks()) return;
  const Rank rank;
  if (rank.store->rank() == 1) {
    EXPECT_EQ(rank.store->tell_failure("it broke"), "rank 1: it broke");
    EXPECT_EQ(rank.store->tell_failure("and again"), "rank 1: it broke");
    return;
  }
  const auto never = rank.store->gather("never", "");
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().message, "another rank failed: rank 1: it broke");
  EXPECT_EQ(rank.store->tell_failure("so does this"), "rank 1: it broke");
}

TEST(Rendezvous, NamesWhatIsMissing) {
  for (const char* each : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(each);
  const Result<Rendezvous> none = rendezvous_from_environment();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::usage);
  EXPECT_NE(none.error().message.find("WORLD_SIZE is not set"), std::string::npos);
  ::setenv("WORLD_SIZE", "2", 1);
  ::setenv("RANK", "2", 1);
  const Result<Rendezvous> beyond = rendezvous_from_environment();
  ASSERT_FALSE(beyond.ok());
  EXPECT_EQ(beyond.error().message, "RANK=2 is not a number from 0 to 1");
  ::unsetenv("WORLD_SIZE");
  ::unsetenv("RANK");
}

TEST(RankGroup, KnowsTheWordsOfALostRank) {
  EXPECT_TRUE(tells_of_lost_rank(
      "[../third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [::1]:1"));
  EXPECT_FALSE(tells_of_lost_rank("Connection closed by peer"));
  EXPECT_FALSE(tells_of_lost_rank("out of memory"));
}

}  // namespace
}  // namespace stowage::executor
