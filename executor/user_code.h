// Runs code of the user's (a plugin, a script): whatever it throws becomes one kind of exception
// that says whose it is.
#pragma once

#include <c10/util/Exception.h>

#include <new>
#include <string>

namespace stowage::executor {

// For catch (...): what was thrown, in one line.
[[nodiscard]] std::string thrown_text();

// Returns what `body` returns. PyTorch's errors (a planned step's among them) and memory that ran
// out pass through, for the caller to translate; anything else comes out as c10::Error "WHO threw:
// WHAT".
template <class Body>
auto run_user_code(const std::string& who, Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const c10::Error&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    C10_THROW_ERROR(Error, who + " threw: " + thrown_text());
  }
}

}  // namespace stowage::executor
