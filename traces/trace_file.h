// A trace in a file: JSON or gzipped JSON (docs/trace-format.md).
#pragma once

#include <string>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage {

struct LoadedTrace {
  Trace trace;
  std::string sha256;  // "sha256:.." of the JSON text after unpacking
};

// Reads, parses and validates; `path` "-" is stdin. Total: any bytes give a trace or an error
// (bad_input) that names the file and the JSON pointer. Cost: O(size), about 0.1 s for a trace of
// 50,000 ops.
[[nodiscard]] Result<LoadedTrace> load_trace(const std::string& path);

// Writes atomically (traces/file_io.h). The same trace gives the same bytes.
[[nodiscard]] Status save_trace(const std::string& path, const Trace& trace);

}  // namespace stowage
