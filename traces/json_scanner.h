// A strict JSON (RFC 8259) scanner for large numeric files: iterative, one pass, no copies of
// numbers. Stands in for the library's parser where that is too slow (tests compare the two on
// thousands of damaged files). Feeds TraceReader, which limits the depth.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "traces/trace_reader.h"

namespace stowage {

class JsonScanner {
 public:
  JsonScanner(std::string_view text, TraceReader& reader);

  // One JSON value and nothing after it. False at the first error, which is then in
  // reader.error(). Cost: O(text).
  bool scan();

 private:
  bool value();
  bool key();
  bool number();
  bool numbers();
  bool string();
  bool escape();
  bool code_unit(unsigned& out);
  bool utf8();
  bool literal(std::string_view word);
  bool after_value(bool& more);
  void skip_space();
  bool bad(const char* what);
  [[nodiscard]] bool at_end() const { return at_ == end_; }

  const char* begin_;
  const char* at_;
  const char* end_;
  TraceReader& reader_;
  std::vector<char> open_;  // closing brackets that are due
  std::string string_;      // the last string, unescaped
};

}  // namespace stowage
