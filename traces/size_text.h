// Sizes and times as people write them, on the command line and in plans. Integer arithmetic
// throughout: the same text gives the same number on every machine.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/result.h"
#include "traces/units.h"

namespace stowage {

// "24GiB" (1024-based), "24GB" (1000-based), "1.5MiB", "4096" or "4096B", or "60%" of
// `percent_base`; K, M, G, T prefixes in any case, a space before the unit is allowed. Fractions of
// a byte are cut off. The result is at least 1. Errors (usage): empty, zero, negative, not a
// number, an unknown unit (with the likely one), above 2^63-1, or a percentage where `percent_base`
// is absent.
[[nodiscard]] Result<Bytes> parse_size(std::string_view text,
                                       std::optional<Bytes> percent_base = std::nullopt);

// "1.5ms", "20us", "300ns", "2s"; the unit is required, 0 is allowed. Errors (usage) as above.
[[nodiscard]] Result<Nanoseconds> parse_time(std::string_view text);

// In which units an answer is said.
enum class ByteUnits { decimal, binary };
// Those that a person wrote: binary for "24GiB" and the like.
[[nodiscard]] ByteUnits units_of(std::string_view text);

// Three significant digits, 1000-based: "512 B", "96.5 MB", "1.20 GB", "-3.00 kB".
[[nodiscard]] std::string format_bytes(Bytes bytes);
// In binary units "512 B", "92.0 MiB", "24.0 GiB".
[[nodiscard]] std::string format_bytes(Bytes bytes, ByteUnits units);

// Three significant digits: "850 ns", "12.3 us", "1.50 ms", "2.00 s"; seconds are the largest unit.
[[nodiscard]] std::string format_time(Nanoseconds time);

}  // namespace stowage
