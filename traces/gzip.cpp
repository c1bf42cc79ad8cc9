#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "traces/file_io.h"
#include "traces/size_text.h"

namespace stowage {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 32 KiB window, gzip header
constexpr std::size_t kFirstChunk = std::size_t{1} << 16;

// Frees zlib's state on every way out.
struct Inflater {
  z_stream stream{};
  bool ready = inflateInit2(&stream, kGzipWindow) == Z_OK;
  Inflater() = default;
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream); }
};

uInt clamp(std::size_t size) {
  return static_cast<uInt>(std::min<std::size_t>(size, std::numeric_limits<uInt>::max()));
}

Error bad(const std::string& name, std::string message, std::string hint) {
  Error error;
  error.code = ErrorCode::bad_input;
  error.file = name;
  error.message = std::move(message);
  error.hint = std::move(hint);
  return error;
}

// What the file says that it unpacks to, as far as gzip can pack at all, and one byte more to see
// the end without growing. Of several members it is the last one's.
std::size_t first_size(std::string_view packed) {
  constexpr std::size_t kTrailer = 4;
  constexpr std::size_t kMostRatio = 1032;
  std::size_t size = 0;
  for (std::size_t i = 0; i < std::min(kTrailer, packed.size()); ++i) {
    size = size << 8U | static_cast<unsigned char>(packed[packed.size() - 1 - i]);
  }
  return std::max(std::min(size, packed.size() * kMostRatio) + 1, kFirstChunk);
}

}  // namespace

Result<std::string> gunzip(std::string_view packed, const std::string& name,
                           std::int64_t max_bytes) {
  const char* hint = "the file was not copied or downloaded completely, or is damaged";
  Inflater inflater;
  if (!inflater.ready) {
    Error error = bad(name, "cannot start unpacking: out of memory", "");
    error.code = ErrorCode::environment;
    return error;
  }
  z_stream& stream = inflater.stream;
  std::string out;
  std::size_t used = 0;  // bytes of `packed` consumed
  std::size_t made = 0;  // bytes of `out` that are data
  const auto limit = static_cast<std::size_t>(std::max<std::int64_t>(max_bytes, 0));
  for (;;) {
    if (made == out.size()) {
      if (made > limit) {
        return bad(name, "unpacks to more than " + format_bytes(max_bytes, ByteUnits::binary),
                   "this is no file that Stowage writes");
      }
      // One byte above the limit is enough to know that it is exceeded.
      grow(out, std::min(made == 0 ? first_size(packed) : made * 2, limit + 1));
    }
    // zlib's interface predates const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + used));
    stream.avail_in = clamp(packed.size() - used);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = clamp(out.size() - made);
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    const int code = inflate(&stream, Z_NO_FLUSH);
    used += in_before - stream.avail_in;
    made += out_before - stream.avail_out;
    if (code == Z_STREAM_END) {
      if (used == packed.size()) break;
      // A further member, as `cat a.gz b.gz` makes; anything else is not gzip.
      if (inflateReset(&stream) != Z_OK) return bad(name, "corrupt gzip", hint);
      continue;
    }
    if (code == Z_OK) continue;
    if (code == Z_BUF_ERROR && made == out.size()) continue;  // wants more room
    if (code == Z_BUF_ERROR && used == packed.size()) return bad(name, "truncated gzip", hint);
    const std::string detail = stream.msg != nullptr ? std::string(": ") + stream.msg : "";
    return bad(name, "corrupt gzip" + detail, hint);
  }
  if (made > limit) {
    return bad(name, "unpacks to more than " + format_bytes(max_bytes, ByteUnits::binary),
               "this is no file that Stowage writes");
  }
  out.resize(made);
  return out;
}

std::string gzip(std::string_view data) {
  z_stream stream{};
  STOWAGE_ASSERT(deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out;
  out.resize(deflateBound(&stream, static_cast<uLong>(data.size())));
  std::size_t used = 0;
  std::size_t made = 0;
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (made == out.size()) out.resize(out.size() + kFirstChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data() + used));
    stream.avail_in = clamp(data.size() - used);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + made);
    stream.avail_out = clamp(out.size() - made);
    const uInt in_before = stream.avail_in;
    const uInt out_before = stream.avail_out;
    const bool all = used + in_before == data.size();
    code = deflate(&stream, all ? Z_FINISH : Z_NO_FLUSH);
    STOWAGE_ASSERT(code == Z_OK || code == Z_STREAM_END || code == Z_BUF_ERROR);
    used += in_before - stream.avail_in;
    made += out_before - stream.avail_out;
  }
  deflateEnd(&stream);
  out.resize(made);
  return out;
}

}  // namespace stowage
