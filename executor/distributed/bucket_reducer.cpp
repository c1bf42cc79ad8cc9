#include "executor/distributed/bucket_reducer.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>

namespace stowage::executor {

namespace {

constexpr std::int64_t kFirstBucket = std::int64_t{1} << 20;
constexpr std::int64_t kBucket = std::int64_t{25} << 20;

}  // namespace

// In the first step of a static graph c10d counts how often each gradient is added to, from that
// step's first backward on, whether that is to be reduced or not; in later steps from
// prepare_for_backward() on.
class BucketReducer::StaticReducer final : public c10d::Reducer {
 public:
  using Reducer::Reducer;
  void count_from_here() {
    for (auto& [parameter, additions] : numGradHooksTriggeredMap_) additions = 0;
  }
  // A bucket waits for gradients that did not come in this backward: c10d asks only ahead of a
  // forward, which is behind the update.
  [[nodiscard]] bool waits_for_gradients() const { return require_finalize_; }
};

BucketReducer::BucketReducer(const RankGroup& group, const std::vector<NamedTensor>& parameters)
    : group_(group) {
  std::vector<at::Tensor> tensors;
  std::unordered_map<std::size_t, std::string> names;
  for (const NamedTensor& each : parameters) {
    if (!each.tensor.requires_grad()) continue;
    names[tensors.size()] = each.name;
    tensors.push_back(each.tensor);
  }
  c10d::verify_params_across_processes(group.group(), tensors, std::nullopt);
  // In the order of parameters; gradients come the other way round.
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      tensors, {static_cast<std::size_t>(kFirstBucket), static_cast<std::size_t>(kBucket)}, {}, {},
      std::nullopt);
  std::reverse(buckets.begin(), buckets.end());
  const std::vector<bool> sparse(tensors.size(), false);
  reducer_ = std::make_unique<StaticReducer>(
      std::move(tensors), std::move(buckets), group.group(), sparse, kBucket,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false, std::move(names),
      kFirstBucket, /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
      std::vector<std::int64_t>{});
  reducer_->set_static_graph();
}

BucketReducer::~BucketReducer() = default;

void BucketReducer::between_steps() {
  if (has_settled_) return;
  has_settled_ = reducer_->rebuild_buckets();
  group_.settle();
}

void BucketReducer::begin_step() {
  reducer_->prepare_for_forward();
}

void BucketReducer::begin_last_backward() {
  if (!has_reduced_) reducer_->count_from_here();
  reducer_->prepare_for_backward({});
  begun_with_ = group_.collectives();
}

void BucketReducer::end_backward() {
  if (!std::exchange(has_reduced_, true)) return reducer_->delay_all_reduce();
  TORCH_CHECK(!reducer_->waits_for_gradients() && group_.collectives() > begun_with_,
              "stowage: gradients of this step were not reduced over the ranks: it uses fewer "
              "parameters, or one less often, than the first step did");
}

}  // namespace stowage::executor
