#include "executor/model_spec.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/executor/model_support.h"

namespace stowage::executor {
namespace {

std::string error_of(const std::string& text, std::int64_t batch = 0) {
  auto spec = parse_model_spec(text);
  if (!spec) {
    EXPECT_EQ(spec.error().code, ErrorCode::usage) << text;
    return spec.error().text();
  }
  if (batch != 0) spec->batch = batch;
  const auto complete = complete_model_spec(*spec);
  const auto model = make_model(*spec, test_device().torch_device(), 0);
  EXPECT_FALSE(complete.ok()) << text;
  EXPECT_FALSE(model.ok()) << text;
  if (complete.ok() || model.ok()) return "no error";
  EXPECT_EQ(model.error().code, ErrorCode::usage) << text;
  EXPECT_EQ(model.error().text(), complete.error().text());
  return model.error().text();
}

TEST(ModelSpec, ParsesNameOptionsBatchAndDtype) {
  const auto spec = parse_model_spec("gpt2:width=256,layers=6,batch=8,dtype=bf16");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->name, "gpt2");
  EXPECT_EQ(spec->batch, 8);
  EXPECT_EQ(spec->dtype, "bf16");
  EXPECT_EQ(spec->text(), "gpt2:layers=6,width=256") << "keys sorted, without batch and dtype";
  const auto again = parse_model_spec(spec->text());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->options, spec->options);
  EXPECT_EQ(again->dtype, "fp32");
  EXPECT_EQ(again->batch, 0);
  const auto bare = parse_model_spec("mlp");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(bare->text(), "mlp");
}

TEST(ModelSpec, SyntaxErrors) {
  for (const char* const text :
       {"", ":layers=3", "gpt2:", "gpt2:layers", "gpt2:=3", "gpt2:layers=", "gpt2:layers=1,",
        "gpt2:,layers=1", "gpt2:layers=1,layers=1", "gpt2:batch=1,batch=1",
        "gpt2:dtype=fp32,dtype=fp32", "gpt2:batch=0", "gpt2:batch=-1", "gpt2:batch=x",
        "gpt2:batch=99999999999999999999"}) {
    const auto spec = parse_model_spec(text);
    ASSERT_FALSE(spec.ok()) << text;
    EXPECT_EQ(spec.error().code, ErrorCode::usage) << text;
    EXPECT_FALSE(spec.error().message.empty());
  }
}

TEST(ModelSpec, OfAPythonProgramIsRefusedInWords) {
  const auto spec = parse_model_spec("python:Net");
  ASSERT_FALSE(spec.ok());
  EXPECT_NE(spec.error().text().find("a model of a Python program"), std::string::npos);
  EXPECT_NE(spec.error().text().find("stowage.attach("), std::string::npos);
}

TEST(ModelSpec, CompleteWritesEveryOption) {
  const auto spec = parse_model_spec("gpt2:width=256,layers=6,dropout=0.10");
  ASSERT_TRUE(spec.ok());
  const auto complete = complete_model_spec(*spec);
  ASSERT_TRUE(complete.ok());
  EXPECT_EQ(complete->text(),
            "gpt2:attention=math,dropout=0.1,heads=4,layers=6,seq=1024,tied=true,vocab=50257,"
            "width=256");
  EXPECT_EQ(complete->batch, 4);
  const auto twice = complete_model_spec(*complete);
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice->text(), complete->text());
  const auto llama = complete_model_spec(*parse_model_spec("llama3-8b:width=1024,heads=8"));
  ASSERT_TRUE(llama.ok());
  EXPECT_EQ(llama->text(),
            "llama3-8b:attention=math,heads=8,hidden=3584,kv_heads=2,layers=32,loss=ones,seq=1024,"
            "vocab=128256,width=1024");
  EXPECT_EQ(llama->batch, 8);
  const auto mlp = complete_model_spec(*parse_model_spec("mlp:width=10"));
  ASSERT_TRUE(mlp.ok());
  EXPECT_EQ(mlp->text(), "mlp:hidden=40,layers=6,loss=mse,width=10");
  EXPECT_EQ(mlp->batch, 64);
  const auto resnet = complete_model_spec(*parse_model_spec("resnet50:blocks=3-8-36-3"));
  ASSERT_TRUE(resnet.ok());
  EXPECT_EQ(resnet->text(),
            "resnet50:blocks=3-8-36-3,channels_last=false,classes=1000,image=224,"
            "loss=cross-entropy,width=64");
  EXPECT_EQ(resnet->batch, 32);
  const auto vit = complete_model_spec(*parse_model_spec("vit:width=128"));
  ASSERT_TRUE(vit.ok());
  EXPECT_EQ(vit->text(),
            "vit:attention=efficient,classes=1000,heads=2,image=224,layers=12,"
            "loss=cross-entropy,mlp=512,patch=16,width=128");
  EXPECT_EQ(vit->batch, 32);
}

TEST(ModelSpec, MistypedNamesGetTheNearestOne) {
  EXPECT_NE(error_of("gtp2").find("did you mean 'gpt2'?"), std::string::npos);
  EXPECT_NE(error_of("gpt2:layer=3").find("did you mean 'layers'?"), std::string::npos);
  EXPECT_NE(error_of("gpt2:attention=eficient").find("did you mean 'efficient'?"),
            std::string::npos);
  EXPECT_NE(error_of("gpt2:dtype=bf15").find("did you mean 'bf16'?"), std::string::npos);
  EXPECT_NE(error_of("mlp:loss=crossentropy").find("did you mean 'cross-entropy'?"),
            std::string::npos);
  EXPECT_NE(error_of("llama3").find("did you mean 'llama3-8b'?"), std::string::npos);
  EXPECT_NE(error_of("llama3-8b:kvheads=8").find("did you mean 'kv_heads'?"), std::string::npos);
  EXPECT_NE(error_of("quicksort").find("one of: gpt2, llama3-8b, mlp, resnet50, vit"),
            std::string::npos);
}

TEST(ModelSpec, TextNeedsTokensEnoughAndTargets) {
  for (const char* const text :
       {"gpt2:vocab=128,data=text", "llama3-8b:loss=cross-entropy,data=text"}) {
    EXPECT_TRUE(complete_model_spec(*parse_model_spec(text)).ok()) << text;
  }
  EXPECT_NE(error_of("gpt2:data=text,vocab=127").find("vocab=127 are too few"), std::string::npos);
  const std::string ones = error_of("llama3-8b:data=text");
  EXPECT_NE(ones.find("loss=ones, which has no targets to learn"), std::string::npos) << ones;
  EXPECT_NE(ones.find("add loss=cross-entropy"), std::string::npos) << ones;
}

// Plans and baselines of before name the same model.
TEST(ModelSpec, DataIsWrittenOutWhereItIsText) {
  const auto text_of = [](const char* text) {
    return complete_model_spec(*parse_model_spec(text))->text();
  };
  EXPECT_EQ(text_of("gpt2:data=random"), text_of("gpt2"));
  EXPECT_EQ(text_of("gpt2").find("data"), std::string::npos);
  EXPECT_NE(text_of("gpt2:data=text").find("data=text,"), std::string::npos);
}

TEST(ModelSpec, AbsurdValuesAreUsageErrors) {
  for (const char* const text : {"gpt2:layers=0",
                                 "gpt2:layers=-1",
                                 "gpt2:layers=1000000000000",
                                 "gpt2:layers=1e12",
                                 "gpt2:layers=two",
                                 "gpt2:layers=2.5",
                                 "gpt2:layers=0x10",
                                 "gpt2:layers=+3",
                                 "gpt2:layers= 3",
                                 "gpt2:layers=99999999999999999999",
                                 "gpt2:width=0",
                                 "gpt2:heads=0",
                                 "gpt2:width=256,heads=3",
                                 "gpt2:width=100,heads=101",
                                 "gpt2:seq=0",
                                 "gpt2:vocab=0",
                                 "gpt2:vocab=-5",
                                 "gpt2:dropout=1",
                                 "gpt2:dropout=-0.1",
                                 "gpt2:dropout=nan",
                                 "gpt2:dropout=inf",
                                 "gpt2:dropout=x",
                                 "gpt2:tied=maybe",
                                 "gpt2:data=poem",
                                 "gpt2:attention=flash9",
                                 "mlp:layers=0",
                                 "mlp:width=-1",
                                 "mlp:hidden=0",
                                 "mlp:loss=none",
                                 "mlp:heads=2",
                                 "llama3-8b:layers=0",
                                 "llama3-8b:width=256,heads=3",
                                 "llama3-8b:width=30,heads=6",
                                 "llama3-8b:heads=32,kv_heads=5",
                                 "llama3-8b:kv_heads=64",
                                 "llama3-8b:kv_heads=0",
                                 "llama3-8b:hidden=0",
                                 "llama3-8b:seq=0",
                                 "llama3-8b:vocab=0",
                                 "llama3-8b:attention=flash",
                                 "llama3-8b:loss=mean",
                                 "llama3-8b:tied=true",
                                 "resnet50:blocks=3-4-6",
                                 "resnet50:blocks=3-4-6-3-",
                                 "resnet50:blocks=3-4-6-3-1",
                                 "resnet50:blocks=-3-4-6",
                                 "resnet50:blocks=3-0-6-3",
                                 "resnet50:blocks=3--6-3",
                                 "resnet50:blocks=3-4-6-x",
                                 "resnet50:width=0",
                                 "resnet50:image=0",
                                 "resnet50:image=32,batch=1",
                                 "resnet50:classes=0",
                                 "resnet50:channels_last=maybe",
                                 "resnet50:loss=ones",
                                 "vit:patch=0",
                                 "vit:image=224,patch=15",
                                 "vit:width=100,heads=3",
                                 "vit:mlp=0",
                                 "vit:attention=flash",
                                 "vit:seq=5",
                                 "gpt2:dtype=amp",
                                 "gpt2:dtype=fp8"}) {
    EXPECT_NE(error_of(text), "no error") << text;
  }
  EXPECT_NE(error_of("mlp", -3), "no error");
  EXPECT_NE(error_of("mlp", std::int64_t{1} << 40), "no error");
  EXPECT_NE(error_of("gpt2:dtype=amp").find("not supported yet"), std::string::npos);
  // Known, and refused where there is no such arithmetic.
  const auto tf32 = parse_model_spec("gpt2:dtype=tf32");
  ASSERT_TRUE(tf32.ok());
  EXPECT_TRUE(complete_model_spec(*tf32).ok());
  const auto model = make_model(*tf32, test_device().torch_device(), 0);
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::usage);
  EXPECT_NE(model.error().text().find("needs a CUDA device"), std::string::npos);
}

TEST(ModelSpec, TooLargeForTheMachineIsAnEnvironmentError) {
  for (const char* const text :
       {"gpt2:layers=10000,width=1048576,heads=64", "mlp:layers=10000,width=1048576,hidden=4194304",
        "llama3-8b:layers=10000", "llama3-8b:layers=1,batch=1000000000", "gpt2:batch=1000000000",
        "mlp:batch=1000000000", "resnet50:batch=1000000000", "vit:batch=1000000000",
        "resnet50:blocks=10000-10000-10000-10000,width=16384"}) {
    const auto model = make_model(*parse_model_spec(text), test_device().torch_device(), 0);
    ASSERT_FALSE(model.ok()) << text;
    EXPECT_EQ(model.error().code, ErrorCode::environment) << text;
    EXPECT_NE(model.error().message.find("does not fit"), std::string::npos);
  }
}

TEST(ModelSpec, EveryModelIsListedWithItsOptions) {
  std::vector<std::string> names;
  for (const ModelInfo& info : models()) {
    names.push_back(info.name);
    EXPECT_FALSE(info.summary.empty());
    EXPECT_GT(info.default_batch, 0);
    const auto complete = complete_model_spec({.name = info.name, .options = {}});
    ASSERT_TRUE(complete.ok()) << info.name;
    std::size_t silent = 0;
    for (const ModelOption& option : info.options) {
      EXPECT_FALSE(option.help.empty()) << option.name;
      if (option.is_silent_by_default) {
        EXPECT_EQ(complete->options.count(option.name), 0u) << option.name;
        ++silent;
        continue;
      }
      ASSERT_EQ(complete->options.count(option.name), 1u) << option.name;
      // A default that is a formula, such as 4*width, comes out as a number.
      if (option.default_value.find_first_of("*/") == std::string::npos) {
        EXPECT_EQ(complete->options.at(option.name), option.default_value);
      }
    }
    EXPECT_EQ(complete->options.size() + silent, info.options.size());
  }
  EXPECT_EQ(names, (std::vector<std::string>{"gpt2", "llama3-8b", "mlp", "resnet50", "vit"}));
}

TEST(ModelSpec, AScriptIsNotAttributed) {
  const auto spec = parse_model_spec("script:net.pt:attribute=layers.*");
  ASSERT_TRUE(spec.ok());
  const auto complete = complete_model_spec(*spec);
  ASSERT_FALSE(complete.ok());
  EXPECT_EQ(complete.error().code, ErrorCode::usage);
  EXPECT_NE(complete.error().message.find("TorchScript"), std::string::npos);
}

}  // namespace
}  // namespace stowage::executor
