// Joining two passes of one recording: their common events must be the same sequence.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

[[nodiscard]] constexpr bool is_common(RawKind kind) {
  return kind != RawKind::free && kind != RawKind::released && kind != RawKind::hook_gone;
}

// Where things ended in the other pass, as event rows of the first.
struct Ends {
  // By allocation serial of the *first* pass: row of the last common event before the free.
  std::unordered_map<std::int64_t, std::int32_t> freed_after;
  // By row of unpacks: row of the last common event before the release; -1 = never released.
  std::vector<std::int32_t> released_after;
};

// By event row of the structure pass: the row of the same event in another pass of it, -1 = none.
// Common events are all found; the frees between two of them when both passes have as many there.
// Views are compared unless one pass is light. Packs and unpacks have no counterpart in a pass that
// was not hooked. Error (bad_input): as join().
[[nodiscard]] Result<std::vector<std::int32_t>> align(const RawPass& structure,
                                                      const RawPass& other);

// Walks both passes side by side. Error (bad_input): names the first common event that differs.
[[nodiscard]] Result<Ends> join(const RawPass& structure, const RawPass& offload_all);

// "op_begin aten::mm", "alloc 4096 B", for messages.
[[nodiscard]] std::string describe(const RawPass& pass, const RawEvent& event);

}  // namespace stowage::profiler
