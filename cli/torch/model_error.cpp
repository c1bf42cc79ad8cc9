#include "cli/torch/model_error.h"

#include <algorithm>
#include <string_view>

namespace stowage::cli {

namespace {

// Words of PyTorch's complaints about a tensor's shape, type or values.
bool is_about_an_input(const std::string& message) {
  constexpr std::string_view kWords[] = {"xpected", "shape",    "size",
                                         "type",    "imension", "out of range"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return message.find(word) != message.npos; });
}

}  // namespace

Error of_model(Error error, const std::string& written, const executor::ModelSpec& spec) {
  if (error.code != ErrorCode::bad_input || !error.file.empty()) return error;
  // A child process has put it there already, or the executor a plugin's or script's file.
  if (error.message.starts_with(spec.name)) return error;
  const std::string file = spec.file();
  if (!file.empty() && error.message.starts_with(file + ": ")) return error;
  error.file = written;
  if (spec.is_script() && error.hint.empty() && is_about_an_input(error.message)) {
    error.hint =
        "shape= says the shapes of its inputs, and input=int:N makes them whole numbers "
        "from 0 to N-1";
  }
  return error;
}

}  // namespace stowage::cli
