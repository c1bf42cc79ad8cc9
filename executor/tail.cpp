#include "executor/tail.h"

#include <ATen/ScalarOps.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "executor/gradient_reduction.h"
#include "executor/loss_scale.h"
#include "executor/step_driver.h"

namespace stowage {

namespace {

using executor::BackwardRoot;
using torch::autograd::variable_list;

// The rest's backward begins here, with what the parts have collected.
class DividedTail final : public torch::autograd::Node {
 public:
  // `gradients`: by input, undefined where it needs none. `root_gradient` is 1.
  DividedTail(std::string segment, variable_list gradients, at::Tensor root_gradient)
      : segment_(std::move(segment)),
        gradients_(std::move(gradients)),
        root_gradient_(std::move(root_gradient)) {}

  variable_list apply(variable_list&& incoming) override {
    TORCH_CHECK(!at::GradMode::is_enabled(), segment_,
                " ran in parts, whose backward cannot be differentiated again (create_graph)");
    TORCH_CHECK(root_gradient_.defined(), segment_,
                " ran in parts, whose gradients are there for one backward");
    const at::Tensor one = std::exchange(root_gradient_, {});
    const at::Tensor gradient = std::move(incoming.front());
    if (!gradient.is_same(one)) {
      const at::RecordFunctionGuard no_observer(/*is_enabled=*/false);
      TORCH_CHECK(gradient.defined() && gradient.item<double>() == 1, segment_,
                  " ran in parts, whose gradients have accumulated already: backward through its "
                  "loss has to begin with a gradient of 1, so scale inside of the tail");
    }
    return std::move(gradients_);
  }
  [[nodiscard]] std::string name() const override { return "stowage::DividedTail"; }
  void release_variables() override {
    root_gradient_.reset();
    gradients_.clear();
  }

 private:
  std::string segment_;
  variable_list gradients_;
  at::Tensor root_gradient_;
};

// autocast(enabled=False) for the device and the CPU.
class WithoutAutocast {
 public:
  explicit WithoutAutocast(at::DeviceType device) : devices_{device, at::kCPU} {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      was_[i] = at::autocast::is_autocast_enabled(devices_[i]);
      at::autocast::set_autocast_enabled(devices_[i], false);
    }
  }
  ~WithoutAutocast() {
    for (std::size_t i = devices_.size(); i-- > 0;) {
      at::autocast::set_autocast_enabled(devices_[i], was_[i]);
    }
  }
  WithoutAutocast(const WithoutAutocast&) = delete;
  WithoutAutocast& operator=(const WithoutAutocast&) = delete;

 private:
  std::array<at::DeviceType, 2> devices_;
  std::array<bool, 2> was_{};
};

class Parts {
 public:
  Parts(const std::string& segment, const TailFn& fn, std::vector<at::Tensor> inputs,
        const TailBatch& batch, std::int64_t parts)
      : segment_(segment), fn_(fn), inputs_(std::move(inputs)), batch_(batch), parts_(parts) {}

  BackwardRoot run() {
    prepare();
    std::int64_t first = 0;
    for (std::int64_t part = 0; part < parts_; ++part) {
      const std::int64_t samples = samples_ / parts_ + (part < samples_ % parts_ ? 1 : 0);
      first_ = first;
      run_part(first, samples);
      first += samples;
    }
    return root();
  }

 private:
  void prepare() {
    const at::AutoGradMode no_grad(false);
    TORCH_CHECK(!inputs_.empty() && batch_.dimensions >= 1, segment_,
                ": a tail needs inputs, and a dimension of samples");
    for (const at::Tensor& input : inputs_) {
      TORCH_CHECK(input.defined() && input.dim() >= batch_.dimensions, segment_,
                  " runs in parts: its inputs need ", batch_.dimensions, " dimensions of samples");
      const at::Tensor flat = input.detach().flatten(0, batch_.dimensions - 1);
      TORCH_CHECK(flat_.empty() || flat.size(0) == samples_, segment_,
                  " runs in parts: its inputs have ", samples_, " and ", flat.size(0), " samples");
      samples_ = flat.size(0);
      flat_.push_back(flat);
      gradients_.push_back(input.requires_grad() ? at::empty(input.sizes(), input.options())
                                                 : at::Tensor());
    }
    TORCH_CHECK(parts_ <= samples_, segment_, " cannot run in ", parts_, " parts: it has ",
                samples_, " samples");
    if (batch_.weight) weight_ = batch_.weight(flat_);
  }

  void run_part(std::int64_t first, std::int64_t samples) {
    std::vector<at::Tensor> leaves;
    for (std::size_t i = 0; i < flat_.size(); ++i) {
      const at::AutoGradMode no_grad(false);
      at::Tensor leaf = flat_[i].narrow(0, first, samples);
      if (gradients_[i].defined()) leaf.set_requires_grad(true);
      leaves.push_back(std::move(leaf));
    }
    at::Tensor share;
    if (weight_.defined()) {
      const at::AutoGradMode no_grad(false);
      share = batch_.weight(leaves) / weight_;
    }
    {
      BackwardRoot part = fn_(leaves);
      if (!part.gradient.defined()) {
        part.gradient = share_of(part.tensor, share, samples);
        add(part.tensor, part.gradient);
      } else if (!total_.defined()) {
        const at::AutoGradMode no_grad(false);
        total_ = part.tensor.flatten()[0].clone();
      }
      share.reset();
      if (executor::LossScale* const scale = executor::LossScale::declared()) {
        part.gradient = scale->of(part.tensor, part.gradient);
      }
      // As backward runs elsewhere: not in the autocast of who calls the tail.
      const WithoutAutocast without(flat_.front().device().type());
      if (first + samples == samples_) begin_last_backward();
      part.tensor.backward(part.gradient);
    }
    collect(leaves, first, samples);
  }

  // What ranks reduce behind the step they reduce from the last part on.
  static void begin_last_backward() {
    if (executor::LastBackward* const last = executor::LastBackward::declared()) last->begin();
  }

  // The gradient that the loss of a part has.
  [[nodiscard]] at::Tensor share_of(const at::Tensor& loss, const at::Tensor& weighed,
                                    std::int64_t samples) const {
    const at::AutoGradMode no_grad(false);
    TORCH_CHECK(loss.dim() == 0, segment_, " runs in parts: its loss has to be a scalar");
    if (batch_.reduction == Reduction::sum) return at::ones({}, loss.options());
    if (weighed.defined()) return weighed.to(loss.options());
    // So that what is rounded adds up to 1, whatever the dtype of the loss.
    const double ahead = rounded(first_, loss.scalar_type());
    return at::full({}, rounded(first_ + samples, loss.scalar_type()) - ahead, loss.options());
  }

  // Of all samples.
  [[nodiscard]] double rounded(std::int64_t samples, at::ScalarType dtype) const {
    const double share = static_cast<double>(samples) / static_cast<double>(samples_);
    switch (dtype) {
      case at::kBFloat16:
        return static_cast<float>(c10::BFloat16(static_cast<float>(share)));
      case at::kHalf:
        return static_cast<float>(c10::Half(static_cast<float>(share)));
      case at::kFloat:
        return static_cast<float>(share);
      default:
        return share;
    }
  }

  // In float at least: the sum of many parts.
  void add(const at::Tensor& loss, const at::Tensor& share) {
    const at::AutoGradMode no_grad(false);
    dtype_ = loss.scalar_type();
    const at::ScalarType wide = dtype_ == at::kDouble ? at::kDouble : at::kFloat;
    const at::Tensor part = loss.to(wide) * share.to(wide);
    total_ = total_.defined() ? total_ + part : part;
  }

  void collect(std::vector<at::Tensor>& leaves, std::int64_t first, std::int64_t samples) {
    const at::AutoGradMode no_grad(false);
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!gradients_[i].defined()) continue;
      const at::Tensor to =
          gradients_[i].flatten(0, batch_.dimensions - 1).narrow(0, first, samples);
      const at::Tensor& gradient = leaves[i].grad();
      gradient.defined() ? to.copy_(gradient) : to.zero_();
      leaves[i].reset();
    }
  }

  BackwardRoot root() {
    flat_.clear();
    if (dtype_ != at::ScalarType::Undefined) {
      const at::AutoGradMode no_grad(false);
      total_ = total_.to(dtype_);
    }
    at::Tensor one = at::ones({}, total_.options());
    const auto node = std::make_shared<DividedTail>(segment_, std::move(gradients_), one);
    node->set_next_edges(torch::autograd::collect_next_edges(inputs_));
    inputs_.clear();
    if (executor::LossScale* const scale = executor::LossScale::declared()) scale->take_by_parts();
    torch::autograd::set_history(total_, node);
    return {.tensor = std::move(total_), .gradient = std::move(one)};
  }

  const std::string& segment_;
  const TailFn& fn_;
  std::vector<at::Tensor> inputs_;
  const TailBatch& batch_;
  const std::int64_t parts_;
  std::int64_t samples_ = 0;
  std::vector<at::Tensor> flat_;                      // the inputs, their samples in one dimension
  variable_list gradients_;                           // by input; undefined where it needs none
  at::Tensor weight_;                                 // of all parts; undefined: samples
  std::int64_t first_ = 0;                            // of the samples of the part that runs
  at::ScalarType dtype_ = at::ScalarType::Undefined;  // of the loss
  at::Tensor total_;
};

// One divided tail within another would be given a gradient that is not 1.
thread_local bool t_is_divided = false;

}  // namespace

BackwardRoot tail(const std::string& segment, const TailFn& fn, std::vector<at::Tensor> inputs,
                  const TailBatch& batch) {
  const std::int32_t parts = at::GradMode::is_enabled() ? executor::parts_of(segment) : 1;
  if (parts <= 1) return fn(std::move(inputs));
  TORCH_CHECK(!std::exchange(t_is_divided, true), segment,
              " cannot run in parts: it lies in another tail that does");
  struct Reset {
    ~Reset() { t_is_divided = false; }
  } const reset;
  return Parts(segment, fn, std::move(inputs), batch, parts).run();
}

}  // namespace stowage
