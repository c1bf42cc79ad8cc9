// Whole files in, whole files out. Reading unpacks gzip; writing is atomic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/result.h"

namespace stowage {

// No file that Stowage reads is larger; a gzip that unpacks to more is refused. A trace has about
// 140 bytes an op.
inline constexpr std::int64_t kMaxFileBytes = std::int64_t{512} << 20;

// The content of `path` ("-" = stdin), unpacked when it begins with the gzip magic, whatever its
// name. Errors (bad_input): no such file, a directory, not readable, truncated or corrupt gzip,
// more than `max_bytes` before or after unpacking. Memory: the packed file and `max_bytes`, or up
// to three times that where the size is not told (several members; a pipe).
[[nodiscard]] Result<std::string> read_file(const std::string& path,
                                            std::int64_t max_bytes = kMaxFileBytes);

// Replaces `path` by `data` ("-" = stdout): a temporary file beside it, fsync, rename. On any
// failure nothing is left behind and the old file is as it was. A name ending in ".gz" compresses,
// deterministically (no name, no time in the header). Symbolic links are followed; devices and
// pipes are written in place. Errors (environment): cannot be created or written, disk full.
[[nodiscard]] Status write_file(const std::string& path, std::string_view data);

// What write_file would refuse before it writes anything; a full disk it cannot know.
[[nodiscard]] Status check_writable(const std::string& path);

// gzip in memory, as the two above use it. `name` is the file that an error names.
[[nodiscard]] Result<std::string> gunzip(std::string_view packed, const std::string& name,
                                         std::int64_t max_bytes = kMaxFileBytes);
[[nodiscard]] std::string gzip(std::string_view data);

// `text` made longer by zeros, to exactly `size` bytes of memory: std::string's own growth is at
// least to twice what it has.
void grow(std::string& text, std::size_t size);

// Deletes the temporary files of every write_file() in flight. For signal handlers that end the
// process: async-signal-safe (unlink on fixed arrays, no lock, no allocation).
void remove_unfinished_files() noexcept;

}  // namespace stowage
