// Losses and distances.
#include <ATen/Functions.h>
#include <ATen/core/Reduction.h>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

// 1 and -1, as some losses want their targets.
T signs(const T& like, at::IntArrayRef shape) {
  return at::where(mask(like, shape), 1, -1).to(like.scalar_type());
}

std::vector<Op> of_classes() {
  return {
      op("nn.functional.cross_entropy", {of({2, 3, 4, 5})},
         [](const T& a) {
           return at::cross_entropy_loss(a, numbers(a, {2, 4, 5}, 3), {}, at::Reduction::Mean, -100,
                                         0.1);
         })
          .not_as("empty scalar"),
      op("nn.functional.nll_loss", {of({2, 3, 4, 5})},
         [](const T& a) {
           return at::nll_loss_nd(a, numbers(a, {2, 4, 5}, 3));
         })
          .not_as("channels_last empty scalar transposed"),
      op("nn.functional.multi_margin_loss", {of({6, 4})},
         [](const T& a) { return at::multi_margin_loss(a, numbers(a, {6}, 4)); })
          .not_as("empty scalar"),
      op("nn.functional.multilabel_margin_loss", {of({6, 4})},
         [](const T& a) {
           return at::multilabel_margin_loss(a, numbers(a, {6, 4}, 4));
         })
          .not_as("empty scalar"),
      op("nn.functional.ctc_loss", {of({9, 2, 5})},
         [](const T& a) {
           const T targets = numbers(a, {2, 3}, 4) + 1;
           const T probabilities = at::log_softmax(a, 2);
           return at::ctc_loss(probabilities, targets, at::IntArrayRef{9, 8},
                               at::IntArrayRef{3, 2});
         })
          .not_as("empty scalar"),
  };
}

std::vector<Op> of_pairs() {
  return {
      op("nn.functional.binary_cross_entropy", {grid(kUnit), grid(kUnit)},
         [](const T& a, const T& b) { return at::binary_cross_entropy(a, b); }),
      op("nn.functional.binary_cross_entropy_with_logits", {grid(), grid(kUnit)},
         [](const T& a, const T& b) { return at::binary_cross_entropy_with_logits(a, b); }),
      op("nn.functional.huber_loss", {grid(), grid()},
         [](const T& a, const T& b) { return at::huber_loss(a, b); }),
      op("nn.functional.kl_div", {grid(), grid(kUnit)},
         [](const T& a, const T& b) { return at::kl_div(a, b, at::Reduction::Sum); }),
      op("nn.functional.l1_loss", {grid(), grid()},
         [](const T& a, const T& b) { return at::l1_loss(a, b); }),
      op("nn.functional.mse_loss", {grid(), grid()},
         [](const T& a, const T& b) { return at::mse_loss(a, b, at::Reduction::None); }),
      op("nn.functional.poisson_nll_loss", {grid(), grid(kPositive)},
         [](const T& a, const T& b) {
           return at::poisson_nll_loss(a, b, true, true, 1e-8, at::Reduction::Mean);
         }),
      op("nn.functional.smooth_l1_loss", {grid(), grid()},
         [](const T& a, const T& b) { return at::smooth_l1_loss(a, b); }),
      op("nn.functional.soft_margin_loss", {grid()},
         [](const T& a) { return at::soft_margin_loss(a, signs(a, a.sizes())); }),
      op("nn.functional.hinge_embedding_loss", {grid()},
         [](const T& a) { return at::hinge_embedding_loss(a, signs(a, a.sizes())); }),
      op("nn.functional.margin_ranking_loss", {of({9}), of({9})},
         [](const T& a, const T& b) {
           return at::margin_ranking_loss(a, b, signs(a, a.sizes()), 0.2);
         }),
      op("nn.functional.cosine_embedding_loss", {of({6, 5}), of({6, 5})},
         [](const T& a, const T& b) {
           return at::cosine_embedding_loss(a, b, signs(a, {a.size(0)}), 0.2);
         })
          .not_as("scalar"),
      op("nn.functional.triplet_margin_loss", {of({6, 5}), of({6, 5}), of({6, 5})},
         [](const T& a, const T& b, const T& c) {
           return at::triplet_margin_loss(a, b, c, 1, 2, 1e-6, true);
         }),
  };
}

std::vector<Op> distances() {
  return {
      op("nn.functional.pairwise_distance", {of({6, 5}), of({6, 5})},
         [](const T& a, const T& b) { return at::pairwise_distance(a, b); }),
      op("nn.functional.cosine_similarity", {grid(), grid()},
         [](const T& a, const T& b) { return at::cosine_similarity(a, b); }),
      op("nn.functional.pdist", {of({6, 5})}, [](const T& a) { return at::pdist(a, 1.5); })
          .not_as("scalar")
          .crashes_as("empty"),
      op("cdist", {of({2, 6, 5}), of({2, 4, 5})},
         [](const T& a, const T& b) { return at::cdist(a, b); })
          .not_as("scalar"),
  };
}

}  // namespace

std::vector<Op> loss_ops() {
  std::vector<Op> all = of_classes();
  for (auto* const more : {&of_pairs, &distances}) {
    for (Op& each : more()) all.push_back(std::move(each));
  }
  return all;
}

}  // namespace stowage::ops
