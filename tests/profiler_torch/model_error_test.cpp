// Errors of a run, with the model in front and, for a script's inputs, what to change.
#include "cli/torch/model_error.h"

#include <gtest/gtest.h>

#include <string>

namespace stowage {
namespace {

// What the user reads of an error with that message in a run of that model.
std::string told(const std::string& model, const std::string& message, const std::string& hint = "",
                 ErrorCode code = ErrorCode::bad_input) {
  const auto spec = executor::parse_model_spec(model);
  EXPECT_TRUE(spec.ok()) << spec.error().text();
  return cli::of_model({code, message, "", "", hint}, model, *spec).text();
}

TEST(ModelError, NamesTheModelAsItWasWritten) {
  EXPECT_EQ(told("mlp:layers=2", "two steps peaked at 1 and 2", "more warm-up"),
            "mlp:layers=2: two steps peaked at 1 and 2 (more warm-up)");
  EXPECT_EQ(told("plugin:a/net.so", "size mismatch"), "plugin:a/net.so: size mismatch");
}

TEST(ModelError, OfAScriptSaysHowItsInputsAreChanged) {
  const std::string model = "script:a/net.pt:shape=4x8";
  const std::string hint =
      " (shape= says the shapes of its inputs, and input=int:N makes them whole numbers from 0 to "
      "N-1)";
  for (const std::string message :
       {"Expected tensor of type Long (while checking arguments)", "index out of range in self",
        "mat1 and mat2 shapes cannot be multiplied (4x9 and 8x8)"}) {
    EXPECT_EQ(told(model, message), model + ": " + message + hint);
  }
  EXPECT_EQ(told(model, "not four"), model + ": not four");
  EXPECT_EQ(told(model, "Expected something", "do that"), model + ": Expected something (do that)");
}

TEST(ModelError, NamesNothingTwice) {
  EXPECT_EQ(told("mlp:layers=2", "mlp:bias=true,layers=2: size mismatch"),
            "mlp:bias=true,layers=2: size mismatch");
  EXPECT_EQ(told("script:net.pt:shape=4x8", "net.pt: the script threw: size"),
            "net.pt: the script threw: size");
  const auto spec = executor::parse_model_spec("mlp");
  ASSERT_TRUE(spec.ok());
  const Error named{ErrorCode::bad_input, "is no plan", "p.json", "", ""};
  EXPECT_EQ(cli::of_model(named, "mlp", *spec).text(), "p.json: is no plan");
}

TEST(ModelError, LeavesWhatIsNotTheModelsAlone) {
  EXPECT_EQ(told("mlp", "out of memory", "", ErrorCode::condition), "out of memory");
  EXPECT_EQ(told("mlp", "no temporary file", "", ErrorCode::environment), "no temporary file");
}

}  // namespace
}  // namespace stowage
