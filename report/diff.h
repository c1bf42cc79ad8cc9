// What changed between two traces, two plans or two results: each is reduced to named facts, and
// facts of one name are compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "simulator/plan/plan.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::report {

enum class FactUnit : std::uint8_t { bytes, nanoseconds, rate, number, text };  // rate: bytes/s
[[nodiscard]] const char* name_of(FactUnit value);

// "1.20 GB", "3.4 ms", "2.10 GB/s", "1,234"
[[nodiscard]] std::string number_text(std::int64_t number, FactUnit unit);

// `section` groups facts of one kind ("layers"); empty: of the whole. Names are unique.
struct Fact {
  std::string section;
  std::string name;  // "layers.3.mlp.forward_ns", "peak_active_bytes"
  FactUnit unit = FactUnit::number;
  std::variant<std::int64_t, double, std::string> value;
};

// Whole and unchanging order. Cost: that of inspect().
[[nodiscard]] Result<std::vector<Fact>> facts_of(const Trace& trace);
[[nodiscard]] std::vector<Fact> facts_of(const simulator::Plan& plan);

struct Change {
  std::string section;
  std::string name;
  FactUnit unit = FactUnit::number;
  // At least one of the two; both when the fact is in both, with other values.
  std::optional<std::variant<std::int64_t, double, std::string>> before;
  std::optional<std::variant<std::int64_t, double, std::string>> after;
  // Of numbers that both have.
  [[nodiscard]] std::optional<double> difference() const;
  // difference / before; none when `before` is 0.
  [[nodiscard]] std::optional<double> relative() const;
  [[nodiscard]] std::string relative_text() const;  // "-3.2 %", empty where there is none
};

struct Diff {
  std::string kind;  // "trace", "plan", or of results the verb: "verify"
  std::vector<Change>
      changes;  // in the order of the facts of the first, then those only in the second
  std::int64_t unchanged = 0;  // facts
};

// Cost: O((n + m) log n).
[[nodiscard]] Diff compare(const std::vector<Fact>& before, const std::vector<Fact>& after);

// Reads both texts, whatever of the three they are; `file_a` and `file_b` are what errors name.
// Errors: usage when they are not of one kind, bad_input for anything else that is wrong with them.
// Total: any bytes give a Diff or an Error.
[[nodiscard]] Result<Diff> diff_texts(const std::string& a, const std::string& file_a,
                                      const std::string& b, const std::string& file_b);

}  // namespace stowage::report
