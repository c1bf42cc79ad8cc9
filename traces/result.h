// Errors as values. Bad input and environment are `Error`s inside a `Result<T>`; expected outcomes
// (an infeasible budget, a stopped search) are values of their own; bugs are STOWAGE_ASSERT.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace stowage {

// The process exit code that an error leads to (docs/cli.md).
enum class ErrorCode : int {
  condition = 1,    // asked for and not met: infeasible, verification failed, regression
  usage = 2,        // the command line or an API argument is wrong
  bad_input = 3,    // a file or a model that cannot be used
  environment = 4,  // not built, no GPU, no space, no permission
  internal = 70,
  interrupted = 130,
};

struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;  // what is wrong, one line, no full stop
  std::string file;     // the file, or empty
  std::string pointer;  // JSON pointer inside the file, or empty for "no place in a file"
  std::string hint;     // what to do about it, or empty

  // "FILE: /json/pointer: what is wrong (what to do)"; absent parts are left out.
  [[nodiscard]] std::string text() const;
};

// Either a value or an Error. Warnings travel in the value's own type.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] T& value() & { return std::get<T>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<T>(state_); }
  [[nodiscard]] T&& value() && { return std::get<T>(std::move(state_)); }
  [[nodiscard]] const Error& error() const& { return std::get<Error>(state_); }
  [[nodiscard]] Error&& error() && { return std::get<Error>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

// Prints the condition and aborts: for bugs only, cheap checks, on in release builds too.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace stowage

#define STOWAGE_ASSERT(condition)                      \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::stowage::assertion_failed(#condition, __FILE__, __LINE__))
