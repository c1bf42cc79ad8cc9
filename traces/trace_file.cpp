#include "traces/trace_file.h"

#include <new>
#include <utility>

#include "traces/file_io.h"
#include "traces/sha256.h"
#include "traces/trace_json.h"

namespace stowage {

Result<LoadedTrace> load_trace(const std::string& path) {
  Result<std::string> text = read_file(path);
  if (!text) return std::move(text).error();
  const std::string name = path == "-" ? "<stdin>" : path;
  try {
    Result<Trace> trace = trace_from_json(*text, name);
    if (!trace) return std::move(trace).error();
    return LoadedTrace{std::move(trace).value(), sha256_of(*text)};
  } catch (const std::bad_alloc&) {
    Error error;
    error.code = ErrorCode::environment;
    error.file = name;
    error.message = "does not fit into this machine's memory";
    return error;
  }
}

Status save_trace(const std::string& path, const Trace& trace) {
  return write_file(path, trace_to_json(trace));
}

}  // namespace stowage
