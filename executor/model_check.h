// What every model of a user's must be before a step of it is run.
#pragma once

#include <optional>
#include <string>

#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

// What is wrong with the model, if anything: no trainable parameter, one that is listed twice
// under one name or two, undefined, not a leaf that needs a gradient, or not on the device; a
// buffer or an input that is undefined. One line, without the model's name. Calls parameters(),
// buffers() and inputs(); throws what they throw.
[[nodiscard]] std::optional<Error> check_model(const Model& model, c10::Device device);

}  // namespace stowage::executor
