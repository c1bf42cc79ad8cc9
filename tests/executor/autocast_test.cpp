#include "executor/autocast.h"

#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

TEST(Autocast, Names) {
  for (const char* const name : {"none", "bf16", "fp16"}) {
    const auto autocast = parse_autocast(name);
    ASSERT_TRUE(autocast.ok());
    EXPECT_EQ(to_string(*autocast), name);
  }
  EXPECT_EQ(recorded_text(Autocast::none), "");
  EXPECT_EQ(recorded_text(Autocast::fp16), "fp16");
  const auto wrong = parse_autocast("bf61");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, ErrorCode::usage);
  EXPECT_NE(wrong.error().text().find("did you mean 'bf16'?"), std::string::npos)
      << wrong.error().text();
}

TEST(AutocastScope, IsAsItWasBehindIt) {
  static_cast<void>(test_device());
  const at::Tensor weight = at::ones({4, 4}).set_requires_grad(true);
  const at::Tensor x = at::ones({2, 4});
  const auto product_type = [&] { return at::matmul(x, weight).scalar_type(); };
  {
    const AutocastScope none(at::kCPU, Autocast::none);
    EXPECT_EQ(product_type(), at::kFloat);
  }
  {
    const AutocastScope outer(at::kCPU, Autocast::bf16);
    EXPECT_EQ(product_type(), at::kBFloat16);
    // The cast of a parameter is made once.
    weight.detach().fill_(2);
    EXPECT_EQ(at::matmul(x, weight)[0][0].item<float>(), 4);
    {
      const AutocastScope inner(at::kCPU, Autocast::fp16);
      EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kHalf);
    }
    EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), at::kBFloat16);
    EXPECT_EQ(product_type(), at::kBFloat16);
  }
  EXPECT_EQ(at::matmul(x, weight)[0][0].item<float>(), 8);
  EXPECT_EQ(product_type(), at::kFloat);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(at::autocast::increment_nesting(), 1);
  at::autocast::decrement_nesting();
}

// What torch.autocast around the model's forward gives, backward behind it.
TEST(TrainingStepUnderAutocast, IsForwardInLessAndBackwardOutside) {
  for (const char* const model :
       {"mlp:layers=2,width=16,batch=4", "gpt2:layers=1,width=16,heads=2,seq=8,vocab=23,batch=2",
        "llama3-8b:layers=1,width=32,heads=4,kv_heads=2,hidden=24,seq=8,vocab=23,batch=2",
        "vit:layers=1,width=16,heads=2,patch=8,image=16,classes=5,batch=2"}) {
    SCOPED_TRACE(model);
    TrainingStep step(test_device(), make_test_model(model),
                      {.seed = 1, .autocast = Autocast::bf16});
    const double loss = step.run(0);
    const std::unique_ptr<Model> by_hand = make_test_model(model);
    by_hand->load_batch(1);
    BackwardRoot root;
    at::autocast::set_autocast_enabled(at::kCPU, true);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
    root = by_hand->forward();
    at::autocast::decrement_nesting();
    at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
    root.tensor.backward(root.gradient);
    EXPECT_EQ(loss, root.tensor.flatten()[0].item<double>());
    const std::vector<NamedTensor> gradients = step.gradients();
    const std::vector<NamedTensor> parameters = by_hand->parameters();
    ASSERT_EQ(gradients.size(), parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      EXPECT_EQ(gradients[i].tensor.scalar_type(), at::kFloat);
      EXPECT_TRUE(at::equal(gradients[i].tensor, parameters[i].tensor.grad()))
          << parameters[i].name;
    }
    // It is another computation than that in fp32.
    TrainingStep plain = make_test_step(model);
    static_cast<void>(plain.run(0));
    EXPECT_FALSE(at::equal(plain.gradients()[0].tensor, gradients[0].tensor));
  }
}

// A forward that throws leaves the thread as it was.
TEST(TrainingStepUnderAutocast, IsLeftWhereForwardThrows) {
  TrainingStep step(test_device(), make_test_model("mlp:layers=2,width=16,batch=4"),
                    {.seed = 1, .autocast = Autocast::bf16});
  step.prepare(0);
  test_device().set_memory_limit(1);
  EXPECT_THROW(static_cast<void>(step.step()), c10::Error);
  test_device().set_memory_limit(0);
  EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
  EXPECT_EQ(at::autocast::increment_nesting(), 1);
  at::autocast::decrement_nesting();
}

}  // namespace
}  // namespace stowage::executor
