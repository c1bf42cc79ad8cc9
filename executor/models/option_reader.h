// Reads the options of a model spec against what the model declares. The first mistake is kept and
// the values that follow are defaults, so a model reads all its options and asks for the error
// once. Every error is a usage error that names the option, the value and what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/model_spec.h"
#include "traces/result.h"

namespace stowage::executor {

class OptionReader {
 public:
  // Both must outlive the reader. An option that `info` does not declare is an error with the
  // nearest name; an absent one has its declared default. Defaults are written as users write
  // values.
  OptionReader(const ModelInfo& info, const ModelSpec& spec);

  [[nodiscard]] std::int64_t integer(const std::string& name, std::int64_t least,
                                     std::int64_t most);
  // `fallback` stands for the declared default, where that is a formula of other options.
  [[nodiscard]] std::int64_t integer_or(const std::string& name, std::int64_t fallback,
                                        std::int64_t least, std::int64_t most);
  // `count` whole numbers joined by "-".
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& name, std::size_t count,
                                                   std::int64_t least, std::int64_t most);
  // In [least, below).
  [[nodiscard]] double number(const std::string& name, double least, double below);
  [[nodiscard]] bool boolean(const std::string& name);
  [[nodiscard]] std::string choice(const std::string& name,
                                   const std::vector<std::string>& allowed);

  // The model's name.
  [[nodiscard]] const std::string& model() const { return info_.name; }
  // Adds a mistake that concerns several options, such as "does not divide".
  void fail(const std::string& message, const std::string& hint);
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  [[nodiscard]] std::string written(const std::string& name) const;
  void fail_value(const std::string& name, const std::string& value, const std::string& allowed);
  [[nodiscard]] std::int64_t parse_integer(const std::string& name, const std::string& value,
                                           std::int64_t least, std::int64_t most);

  const ModelInfo& info_;
  const ModelSpec& spec_;
  std::optional<Error> error_;
};

// A usage error with an optional hint.
[[nodiscard]] Error usage_error(std::string message, std::string hint = {});
// "did you mean 'x'?" when something is near, else "one of: a, b, c".
[[nodiscard]] std::string suggestion(const std::string& word,
                                     const std::vector<std::string>& candidates);

}  // namespace stowage::executor
