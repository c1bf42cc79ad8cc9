// Errors of the library as exceptions of the package (python/src/stowage/_errors.py).
#pragma once

#include <nanobind/nanobind.h>
#include <stowage/result.h>

#include <exception>
#include <utility>

namespace stowage::python {

// An Error on its way to Python; may be thrown without the GIL.
class Raised : public std::exception {
 public:
  explicit Raised(Error error) : error_(std::move(error)) {}
  [[nodiscard]] const Error& error() const { return error_; }
  [[nodiscard]] const char* what() const noexcept override { return error_.message.c_str(); }

 private:
  Error error_;
};

// The value, or its error raised.
template <class T>
[[nodiscard]] T take(Result<T> result) {
  if (!result) throw Raised(std::move(result).error());
  return std::move(result).value();
}
void check(const Status& status);

// The exception that an Error is in Python, not raised.
[[nodiscard]] nanobind::object exception_of(const Error& error);

// What `work` returns, made while other Python threads run: it touches no object of Python's.
template <class Work>
[[nodiscard]] auto without_gil(Work&& work) {
  const nanobind::gil_scoped_release released;
  return std::forward<Work>(work)();
}

void define_errors(nanobind::module_& module);

}  // namespace stowage::python
