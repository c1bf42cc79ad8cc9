// BucketReducer: c10d's Reducer, which DistributedDataParallel is made of, behind the gradients of
// a step. Sums over ranks in buckets while backward goes on, divides by the number of ranks, and
// has the mean in every gradient when backward ends.
//
// Buckets are as DistributedDataParallel has them: 1 MiB for the first and 25 MiB for each other
// one, in the order in which gradients were ready in the second step. They are made anew once,
// ahead of the third step and outside of it, so that a recording and a plan see one set of buckets.
// Every step has to add to each gradient as often as the first one does: end_backward() throws
// c10::Error where one does not, ahead of any update.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "executor/distributed/rank_group.h"
#include "executor/gradient_reduction.h"
#include "executor/model.h"

namespace stowage::executor {

class BucketReducer final : public GradientReduction {
 public:
  // `group` outlives it. Throws what c10d throws: these are not the first rank's parameters (not on
  // that rank); a rank is gone.
  BucketReducer(const RankGroup& group, const std::vector<NamedTensor>& parameters);
  ~BucketReducer() override;

  void between_steps() override;
  void begin_step() override;
  void begin_last_backward() override;
  void end_backward() override;

 private:
  class StaticReducer;
  std::unique_ptr<StaticReducer> reducer_;
  const RankGroup& group_;
  std::int64_t begun_with_ = 0;  // collectives ahead of the last backward
  bool has_reduced_ = false;
  bool has_settled_ = false;  // buckets are those of all steps from here on
};

}  // namespace stowage::executor
