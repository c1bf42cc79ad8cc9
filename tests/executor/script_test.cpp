// TorchScript modules as models; the scripts are compiled here, so no Python is needed.
#include "executor/models/script.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/zeros.h>
#include <caffe2/serialize/inline_container.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <string>

#include "tests/executor/layer_log.h"
#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

using torch::jit::Module;
using Rows = std::vector<std::string>;

constexpr std::int64_t kWidth = 8;

at::Tensor weight(double value) {
  return at::full({kWidth, kWidth}, value).requires_grad_();
}

// A submodule class: every call of make() is an object of it.
class ModuleClass {
 public:
  ModuleClass(std::shared_ptr<torch::jit::CompilationUnit> unit, const std::string& name,
              const std::string& forward, bool parameter)
      : module_(c10::QualifiedName("__torch__." + name), std::move(unit)), parameter_(parameter) {
    if (parameter) module_.register_parameter("w", weight(0.1), /*is_buffer=*/false);
    module_.define("def forward(self, x):\n  " + forward + "\n");
  }
  [[nodiscard]] Module make(double value) const {
    Module made(module_._ivalue()->type()->compilation_unit(), module_.type());
    if (parameter_) made.setattr("w", weight(value));
    return made;
  }

 private:
  Module module_;
  bool parameter_;
};

struct Script {
  std::shared_ptr<torch::jit::CompilationUnit> unit =
      std::make_shared<torch::jit::CompilationUnit>();
  Module net{c10::QualifiedName("__torch__.Net"), unit};

  Script() { test_device(); }

  void add(const std::string& name, const std::string& forward, double value = 0.1,
           bool parameter = true) {
    net.register_module(name, ModuleClass(unit, "C" + name, forward, parameter).make(value));
  }
  // Saves it; the spec's beginning.
  [[nodiscard]] std::string save(const std::string& forward) {
    net.define("def forward(self, x):\n" + forward);
    const std::string file = ::testing::TempDir() + "/script_test_" +
                             ::testing::UnitTest::GetInstance()->current_test_info()->name() +
                             ".pt";
    net.save(file);
    return "script:" + file;
  }
};

const std::string kShape = ":shape=4x8";

Result<std::unique_ptr<Model>> make_script(const std::string& text) {
  const auto spec = parse_model_spec(text);
  EXPECT_TRUE(spec.ok()) << text;
  return make_model(*spec, test_device().torch_device(), /*seed=*/1);
}

Rows rows_of(const std::string& text) {
  TrainingStep step = make_test_step(text);
  step.run(0);
  LayerLog log(/*bytes=*/0);
  step.run(1);
  return log.rows;
}

std::string thrown_by(const std::string& text) {
  TrainingStep step = make_test_step(text);
  try {
    step.run(0);
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "nothing";
}

const std::string kLinear = "return torch.tanh(torch.mm(x, self.w))";

TEST(Script, SubmodulesWithParametersAreLayers) {
  Script script;
  script.add("a", kLinear);
  script.add("act", "return torch.relu(x)", 0, /*parameter=*/false);
  Module block(c10::QualifiedName("__torch__.Block"), script.unit);
  block.register_module("inner", ModuleClass(script.unit, "Inner", kLinear, true).make(0.2));
  block.define("def forward(self, x):\n  return self.inner.forward(x) + x\n");
  script.net.register_module("b", block);
  const std::string text =
      script.save("  x = self.act.forward(self.a.forward(x))\n  return self.b.forward(x)\n");
  EXPECT_EQ(rows_of(text + kShape),
            (Rows{"<a", ">a", "<b", "<b.inner", ">b.inner", ">b", "<loss", ">loss", "[loss",
                  "]loss", "[b", "[b.inner", "]b.inner", "]b", "[a"}));
}

// One class, two objects, called in a loop and in a branch: names are the objects'.
TEST(Script, NamesBelongToObjectsAndControlFlowStays) {
  Script script;
  const ModuleClass linear(script.unit, "Lin", kLinear, true);
  script.net.register_module("a", linear.make(0.1));
  script.net.register_module("b", linear.make(0.2));
  const std::string text = script.save(
      "  for i in range(2):\n    x = self.a.forward(x)\n"
      "  if x.size(0) > 3:\n    x = self.b.forward(x)\n  return x\n");
  EXPECT_EQ(rows_of(text + kShape), (Rows{"<a", ">a", "<a", ">a", "<b", ">b", "<loss", ">loss",
                                          "[loss", "]loss", "[b", "]b", "[a", "]a", "[a"}));
  EXPECT_EQ(rows_of(text + ":shape=2x8"),
            (Rows{"<a", ">a", "<a", ">a", "<loss", ">loss", "[loss", "]loss", "[a", "]a", "[a"}));
}

TEST(Script, ABoundaryThatIsWrittenInPlaceIsNone) {
  Script script;
  const std::string plain = "return torch.mm(x, self.w)";  // does not save its result
  script.add("a", plain);
  script.add("b", plain, 0.2);
  script.add("c", kLinear, 0.3);
  script.add("act", "return torch.relu_(x)", 0, /*parameter=*/false);
  const std::string text = script.save(
      "  x = self.act.forward(self.a.forward(x))\n"
      "  y = self.b.forward(x)\n  y.view(-1).add_(1)\n  return self.c.forward(y)\n");
  EXPECT_EQ(rows_of(text + kShape),
            (Rows{"<c", ">c", "<loss", ">loss", "[loss", "]loss", "[c", "]c"}));
}

TEST(Script, TuplesPassALayer) {
  Script script;
  script.add("a", "y = torch.mm(x, self.w)\n  return 3, torch.tanh(y), y.sum()");
  script.add("b", kLinear);
  const std::string text =
      script.save("  n, y, s = self.a.forward(x)\n  return {\"out\": self.b.forward(y) * n + s}\n");
  EXPECT_EQ(rows_of(text + kShape),
            (Rows{"<a", ">a", "<b", ">b", "<loss", ">loss", "[loss", "]loss", "[b", "[a", "]b"}))
      << "the gradient of s comes to a ahead of that of y, with which b ends";
}

// Each tensor of a tuple is an output, not the first alone: its gradient begins the backward of
// "a". A tuple whose tensor is written in place behind it is no boundary.
TEST(Script, EveryTensorOfATuplePassesTheBoundary) {
  for (const bool written : {false, true}) {
    Script script;
    script.add("a", "y = torch.mm(x, self.w)\n  return torch.tanh(y), 3, y * 2");
    const std::string text =
        script.save("  y, n, z = self.a.forward(x)\n" +
                    std::string(written ? "  z.add_(1)\n" : "") + "  return z * n\n");
    EXPECT_EQ(rows_of(text + kShape),
              written ? (Rows{"<loss", ">loss", "[loss", "]loss"})
                      : (Rows{"<a", ">a", "<loss", ">loss", "[loss", "]loss", "[a"}));
  }
}

TEST(Script, LossAndGradientsAreThoseOfTheSameOpsInEager) {
  Script script;
  script.add("a", kLinear, 0.1);
  script.add("b", kLinear, 0.2);
  const std::string text = script.save("  return self.b.forward(self.a.forward(x))\n");
  TrainingStep step = make_test_step(text + ":shape=4x8,loss=sum");
  const double loss = step.run(0);
  const at::Tensor x = step.model().inputs().front().tensor;
  const at::Tensor a = weight(0.1);
  const at::Tensor b = weight(0.2);
  const at::Tensor eager = at::tanh(at::mm(at::tanh(at::mm(x, a)), b)).sum();
  eager.backward();
  EXPECT_EQ(loss, static_cast<double>(*eager.const_data_ptr<float>()));
  ASSERT_EQ(step.gradients().size(), 2U);
  EXPECT_EQ(step.gradients()[0].name, "a.w");
  EXPECT_TRUE(at::equal(step.gradients()[0].tensor, a.grad()));
  EXPECT_TRUE(at::equal(step.gradients()[1].tensor, b.grad()));
}

// The profiling executor would change ops in its second and third run.
TEST(Script, EveryStepTakesTheSameMemoryFromTheSecondOn) {
  Script script;
  script.add("a", kLinear);
  script.add("b", kLinear, 0.2);
  const std::string text = script.save("  return self.b.forward(self.a.forward(x)) * 2 + 1\n");
  TrainingStep step = make_test_step(text + kShape);
  step.run(0);
  std::vector<Bytes> peaks;
  std::vector<std::int64_t> allocations;
  for (std::int64_t k = 1; k < 6; ++k) {
    test_device().reset_peak();
    const std::int64_t before = test_device().memory().allocations;
    step.run(k);
    peaks.push_back(test_device().memory().peak_requested);
    allocations.push_back(test_device().memory().allocations - before);
  }
  EXPECT_EQ(peaks, std::vector<Bytes>(5, peaks.front()));
  EXPECT_EQ(allocations, std::vector<std::int64_t>(5, allocations.front()));
}

TEST(Script, TiedAndFrozenParametersAndBuffers) {
  Script script;
  const at::Tensor shared = weight(0.1);
  const at::Tensor frozen = at::full({kWidth, kWidth}, 0.5);
  script.net.register_parameter("first", shared, false);
  script.net.register_parameter("second", shared, false);
  script.net.register_parameter("fixed", frozen, false);
  script.net.register_buffer("count", at::zeros({1}, at::kLong));
  const std::string text = script.save(
      "  self.count.add_(1)\n"
      "  return torch.mm(torch.mm(torch.mm(x, self.first), self.fixed), self.second)\n");
  auto model = make_script(text + ":shape=4x8,dtype=bf16");
  ASSERT_TRUE(model.ok()) << model.error().text();
  ASSERT_EQ((*model)->parameters().size(), 1U);
  EXPECT_EQ((*model)->parameters()[0].name, "first");
  EXPECT_EQ((*model)->parameters()[0].tensor.scalar_type(), at::kBFloat16);
  ASSERT_EQ((*model)->buffers().size(), 2U);
  const at::Tensor count = (*model)->buffers()[1].tensor;
  EXPECT_EQ(count.scalar_type(), at::kLong);
  TrainingStep step(test_device(), std::move(model).value(), {.seed = 1});
  step.run(0);
  step.run(1);
  EXPECT_EQ(*count.const_data_ptr<std::int64_t>(), 2);
  EXPECT_EQ(step.gradients().size(), 1U);
}

TEST(Script, WholeNumbersSeveralInputsAndTheOnesLoss) {
  Script script;
  script.net.register_parameter("table", at::rand({10, 4}).requires_grad_(), false);
  script.net.define(
      "def forward(self, ids, x):\n  return torch.embedding(self.table, ids).sum(1) * x\n");
  const std::string file = ::testing::TempDir() + "/script_test_ids.pt";
  script.net.save(file);
  TrainingStep step =
      make_test_step("script:" + file + ":shape=6x3+6x4,input=int:10+normal,loss=ones");
  step.run(0);
  const auto inputs = step.model().inputs();
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_EQ(inputs[0].tensor.scalar_type(), at::kLong);
  EXPECT_GE(inputs[0].tensor.min().const_data_ptr<std::int64_t>()[0], 0);
  EXPECT_LT(inputs[0].tensor.max().const_data_ptr<std::int64_t>()[0], 10);
  EXPECT_EQ(inputs[1].tensor.sizes(), (std::vector<std::int64_t>{6, 4}));
  EXPECT_EQ(step.gradients().size(), 1U);
}

TEST(Script, SpecsAreCompletedAndChecked) {
  const auto complete = [](const std::string& text) -> std::string {
    const auto spec = parse_model_spec(text);
    EXPECT_TRUE(spec.ok()) << text;
    const auto result = complete_model_spec(*spec);
    if (result) return result->text() + " batch " + std::to_string(result->batch);
    EXPECT_EQ(result.error().code, ErrorCode::usage) << text;
    return result.error().text();
  };
  const auto has = [&](const std::string& text, const std::string& words) {
    EXPECT_NE(complete(text).find(words), std::string::npos) << complete(text);
  };
  EXPECT_EQ(complete("script:a.pt:shape=8x3,batch=8"),
            "script:a.pt:input=normal,loss=mean,mode=train,shape=8x3 batch 8");
  has("script:a.pt", "needs the shape");
  has("script:a.pt:shape=8x", "shape=8x is not allowed");
  has("script:a.pt:shape=8x-3", "not allowed");
  has("script:a.pt:shape=0x3", "not allowed");
  has("script:a.pt:shape=8x3+", "not allowed");
  has("script:a.pt:shape=8x3,batch=4", "batch 4 contradicts shape=8x3");
  has("script:a.pt:shape=8x3,input=int", "input=int is not allowed");
  has("script:a.pt:shape=8x3,input=int:0", "not allowed");
  has("script:a.pt:shape=8x3,input=normal+normal", "is for 2 inputs, its shape for 1");
  has("script:a.pt:shape=8x3,loss=men", "did you mean 'mean'?");
  has("script:a.pt:shape=8x3,shap=3", "did you mean 'shape'?");
  has("script:a.pt:shape=8x3,dtype=fp8", "unknown dtype");
}

TEST(Script, BadFilesAreNamed) {
  const auto expect_error = [](const std::string& text, const std::string& words) {
    const auto model = make_script(text + kShape);
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.error().code, ErrorCode::bad_input);
    const std::string said = model.error().text();
    EXPECT_NE(said.find(words), std::string::npos) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  };
  test_device();
  expect_error("script:nowhere/a.pt", "nowhere/a.pt: cannot open it");
  expect_error("script:" + ::testing::TempDir(), "not a file");
  const std::string text = ::testing::TempDir() + "/no_script.pt";
  std::ofstream(text) << "import torch\n";
  expect_error("script:" + text, "it is not TorchScript");
  // As torch.save() writes them, now and before PyTorch 1.6.
  const std::string saved = ::testing::TempDir() + "/saved.pt";
  {
    caffe2::serialize::PyTorchStreamWriter writer(saved);
    writer.writeRecord("data.pkl", "x", 1);
    writer.writeEndOfFile();
  }
  expect_error("script:" + saved, "saved.pt: it is torch.save()'s, not TorchScript");
  std::ofstream(saved, std::ios::binary) << "\x80\x02\x8a\x0al";
  expect_error("script:" + saved, "saved.pt: it is torch.save()'s, not TorchScript");
  Script script;
  expect_error(script.save("  return x * 2\n"), "no trainable parameter");
}

TEST(Script, WhatGoesWrongInAStepIsOneClearError) {
  const auto has = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  Script shapes;
  shapes.add("a", kLinear);
  has(thrown_by(shapes.save("  return self.a.forward(x)\n") + ":shape=4x9"),
      "shapes cannot be multiplied (4x9 and 8x8)");
  Script raises;
  raises.add("a", kLinear);
  has(thrown_by(raises.save("  assert x.size(0) != 4, \"not four\"\n"
                            "  return self.a.forward(x)\n") +
                kShape),
      "not four");
  Script number;
  number.add("a", kLinear);
  has(thrown_by(number.save("  y = self.a.forward(x)\n  return 3\n") + kShape),
      "the script returned no tensor");
  Script constant;
  constant.add("a", kLinear);
  has(thrown_by(constant.save("  y = self.a.forward(x)\n  return x\n") + kShape),
      "depends on no parameter");
}

TEST(Script, OutOfMemoryInsideAScriptStaysOutOfMemory) {
  Script script;
  script.add("a", kLinear);
  TrainingStep step = make_test_step(script.save("  return self.a.forward(x)\n") + kShape);
  step.run(0);
  test_device().set_memory_limit(test_device().memory().requested + 100);
  EXPECT_THROW(step.run(1), c10::OutOfMemoryError);
  test_device().set_memory_limit(0);
  step.run(2);
  EXPECT_EQ(step.gradients().size(), 1U);
}

}  // namespace
}  // namespace stowage::executor
