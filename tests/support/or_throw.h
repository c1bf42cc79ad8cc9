// For what a test cannot go on without, where ASSERT cannot stand: in functions that return values.
#pragma once

#include <stdexcept>
#include <utility>

#include "traces/result.h"

namespace stowage::testing {

// The value, or a std::runtime_error with the error's text: the test fails with it.
template <class T>
T or_throw(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().text());
  return std::move(result).value();
}

}  // namespace stowage::testing
