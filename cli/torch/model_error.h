// An error of a run of a model, with the model's name in front: PyTorch's own words name none.
#pragma once

#include <string>

#include "executor/model_spec.h"
#include "traces/result.h"

namespace stowage::cli {

// `written` is the model as the user wrote it. Of bad input that names neither a file nor the model
// it becomes the place; of a script, whose inputs are the user's, a hint says how to change them.
// Other errors stay as they are.
[[nodiscard]] Error of_model(Error error, const std::string& written,
                             const executor::ModelSpec& spec);

}  // namespace stowage::cli
