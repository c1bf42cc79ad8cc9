// A driver runs every layer of a model itself, and calls each one's function again in backward,
// from the unpack hook of the first of its saved tensors that is asked for: what a recompute does.
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "executor/kept_tensor.h"
#include "executor/layer.h"
#include "executor/step_driver.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

using Tensors = std::vector<at::Tensor>;

class RunsAgain final : public StepDriver {
 public:
  struct Call {
    std::string path;
    LayerFn fn;
    Tensors inputs;  // detached
    at::Tensor generator;
    Tensors outputs;  // of the first run, copied
    bool ran_again = false;
  };

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override {
    return std::make_unique<Hooks>(*this, again_ ? nullptr : innermost());
  }
  Tensors run_layer(std::string_view path, const LayerFn& fn, Tensors inputs) override {
    if (again_) return StepDriver::run_layer(path, fn, std::move(inputs));
    auto call = std::make_shared<Call>();
    call->path = path;
    call->fn = fn;
    for (const at::Tensor& input : inputs) call->inputs.push_back(input.detach());
    call->generator = at::globalContext().defaultGenerator(at::kCPU).get_state();
    calls_.push_back(call);
    open_.push_back(call);
    Tensors outputs = StepDriver::run_layer(path, fn, std::move(inputs));
    open_.pop_back();
    for (const at::Tensor& output : outputs) call->outputs.push_back(output.detach().clone());
    return outputs;
  }
  void layer_event(LayerEvent, std::string_view) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(UpdateEvent, const at::Tensor&) override {}

  [[nodiscard]] const std::vector<std::shared_ptr<Call>>& calls() const { return calls_; }
  [[nodiscard]] int packs_again() const { return packs_again_; }

 private:
  class Hooks final : public torch::autograd::SavedVariableHooks {
   public:
    Hooks(RunsAgain& driver, std::shared_ptr<Call> call)
        : driver_(driver), call_(std::move(call)) {}
    void call_pack_hook(const at::Tensor& tensor) override {
      kept_ = KeptTensor(tensor);
      if (driver_.again_) ++driver_.packs_again_;
    }
    at::Tensor call_unpack_hook() override {
      if (call_ != nullptr && !call_->ran_again) driver_.run_again(*call_);
      return kept_.get();
    }

   private:
    RunsAgain& driver_;
    std::shared_ptr<Call> call_;
    KeptTensor kept_;
  };

  [[nodiscard]] std::shared_ptr<Call> innermost() const {
    return open_.empty() ? nullptr : open_.back();
  }

  void run_again(Call& call) {
    call.ran_again = true;
    at::Generator generator = at::globalContext().defaultGenerator(at::kCPU);
    const at::Tensor now = generator.get_state();
    generator.set_state(call.generator);
    again_ = true;
    {
      const at::AutoGradMode with_grad(true);
      Tensors inputs = call.inputs;
      for (at::Tensor& input : inputs) {
        input = input.detach();
        if (input.is_floating_point()) input.requires_grad_();
      }
      const Tensors outputs = call.fn(inputs);
      ASSERT_EQ(outputs.size(), call.outputs.size()) << call.path;
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        EXPECT_TRUE(at::equal(outputs[i], call.outputs[i])) << call.path;
        EXPECT_TRUE(outputs[i].requires_grad()) << call.path;
      }
    }
    again_ = false;
    generator.set_state(now);
  }

  std::vector<std::shared_ptr<Call>> calls_;
  std::vector<std::shared_ptr<Call>> open_;
  bool again_ = false;
  int packs_again_ = 0;
};

class RunLayer : public ::testing::TestWithParam<const char*> {};

TEST_P(RunLayer, IsRunAgainFromAnUnpackHook) {
  TrainingStep plain = make_test_step(GetParam());
  TrainingStep step = make_test_step(GetParam());
  const double loss = plain.run(0);
  RunsAgain driver;
  step.prepare(0);
  {
    const InstalledDriver installed(driver);
    EXPECT_EQ(step.step(), loss);
  }
  const auto gradients = step.gradients();
  const auto expected = plain.gradients();
  ASSERT_EQ(gradients.size(), expected.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[i].tensor, expected[i].tensor)) << gradients[i].name;
  }
  EXPECT_GE(driver.calls().size(), 3u);
  std::size_t again = 0;
  for (const auto& call : driver.calls()) again += call->ran_again ? 1 : 0;
  EXPECT_GE(again, driver.calls().size() / 2);  // the others' tensors are saved by layers in them
  EXPECT_GE(driver.packs_again(), static_cast<int>(again));
}

INSTANTIATE_TEST_SUITE_P(
    EachModel, RunLayer,
    ::testing::Values("mlp:layers=2,width=16,batch=4",
                      "gpt2:layers=2,width=16,heads=2,seq=8,vocab=23,batch=2,dropout=0.2",
                      "llama3-8b:layers=2,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,"
                      "batch=2"),
    [](const auto& each) {
      return std::string(each.param).substr(0, std::string(each.param).find_first_of(":-"));
    });

TEST(RunningALayer, MayEndItsStep) {
  class Ends final : public StepDriver {
   public:
    std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
    void layer_event(LayerEvent event, std::string_view) override { events.push_back(event); }
    void backward_begin() override {}
    void backward_end() override {}
    void parameter_update(UpdateEvent, const at::Tensor&) override {}
    std::vector<LayerEvent> events;
  };
  static_cast<void>(test_device());
  Ends driver;
  InstalledDriver installed(driver);
  const at::Tensor out = layer("last",
                               [&](const Tensors& in) {
                                 installed.remove();
                                 return in[0] + 1;
                               },
                               {at::ones({2})});
  EXPECT_EQ(out.sum().item<float>(), 4);
  EXPECT_EQ(driver.events, (std::vector<LayerEvent>{LayerEvent::forward_begin}));
}

}  // namespace
}  // namespace stowage::executor
