// What several *_json files write alike. Included by *_json.cpp only.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "report/moment.h"
#include "report/simulation.h"
#include "report/storage_uses.h"
#include "simulator/replay/replay.h"
#include "simulator/step/step.h"
#include "traces/result.h"

namespace stowage::report {

using Json = nlohmann::ordered_json;

// Two-space indent, a newline at the end; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string dump(const Json& json);

// Empty becomes null.
[[nodiscard]] Json text_or_null(const std::string& text);

// -1 becomes null.
[[nodiscard]] Json bytes_or_null(Bytes bytes);

// {"event","time_ns","op","op_name","layer","phase"}
[[nodiscard]] Json moment_json(const Moment& moment);

// {"dead_bytes","saved_bytes","idle_bytes","needed_bytes"}
[[nodiscard]] Json by_use_json(const BytesByUse& by_use);

// {"code","exit_code","message","where","hint"}
[[nodiscard]] Json error_member(const Error& error);

// Which step an answer is of: "model", "batch", "seq", "dtype", "autocast", "optimizer",
// "grad_scaler", "device"; null for what it has not; "quick", as is_quick() says.
void add_step(const Trace& trace, Json& json);

// What a replay comes to; `compute`: also how long compute is busy.
[[nodiscard]] Json replay_json(const simulator::ReplayResult& result, bool compute);

// What a step that replays to `result` computes again, into "recomputed" and "recomputed_layers".
void add_recomputed(const simulator::Step& step, const simulator::ReplayResult& result, Json& json);

// What it reserves in either memory, into "planned_memory" and "caching_allocator"; null where that
// is not known.
void add_reserved(const std::optional<Reserved>& reserved, Json& json);

}  // namespace stowage::report
