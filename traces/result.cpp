#include "traces/result.h"

#include <cstdio>
#include <cstdlib>

namespace stowage {

std::string Error::text() const {
  std::string out;
  if (!file.empty()) out += file + ": ";
  if (!pointer.empty()) out += pointer + ": ";
  out += message;
  if (!hint.empty()) out += " (" + hint + ")";
  return out;
}

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "stowage: internal error: %s:%d: assertion failed: %s\n", file, line,
               condition);
  std::abort();
}

}  // namespace stowage
