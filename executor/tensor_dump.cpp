#include "executor/tensor_dump.h"

#include <c10/core/ScalarType.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>

#include "executor/device/needed_wait.h"

namespace stowage::executor {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::uint32_t kMagic = 0x53544744;  // "STGD"

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t name_bytes = 0;
  std::int32_t scalar_type = 0;
  std::int32_t padding = 0;
  std::int64_t bytes = 0;
};

Error io_error(const char* what) {
  return {ErrorCode::environment, std::string(what) + " failed: " + std::strerror(errno), "", "",
          "is there space in the folder for temporary files (TMPDIR)?"};
}

Status write_all(int descriptor, const void* data, std::size_t bytes) {
  const auto* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, next, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return io_error("writing results of a step");
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return Unit{};
}

// Bytes read; fewer than asked for only at the end of the file.
Result<std::size_t> read_up_to(int descriptor, void* data, std::size_t bytes) {
  auto* next = static_cast<char*>(data);
  std::size_t total = 0;
  while (total < bytes) {
    const ssize_t got = ::read(descriptor, next + total, bytes - total);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return io_error("reading results of a step");
    if (got == 0) break;
    total += static_cast<std::size_t>(got);
  }
  return total;
}

Status write_header(int descriptor, const std::string& name, at::ScalarType type,
                    std::int64_t bytes) {
  Header header;
  header.name_bytes = static_cast<std::uint32_t>(name.size());
  header.scalar_type = static_cast<std::int32_t>(type);
  header.bytes = bytes;
  if (Status status = write_all(descriptor, &header, sizeof header); !status) return status;
  return write_all(descriptor, name.data(), name.size());
}

struct Record {
  Header header;
  std::string name;
};

Result<std::optional<Record>> read_record(int descriptor) {
  Record record;
  Result<std::size_t> got = read_up_to(descriptor, &record.header, sizeof record.header);
  if (!got) return got.error();
  if (*got == 0) return std::optional<Record>();
  const auto damaged = [] {
    return Error{ErrorCode::internal, "the results of a step are damaged", "", "", ""};
  };
  if (*got != sizeof record.header || record.header.magic != kMagic || record.header.bytes < 0 ||
      record.header.name_bytes > kChunk) {
    return damaged();
  }
  record.name.resize(record.header.name_bytes);
  got = read_up_to(descriptor, record.name.data(), record.name.size());
  if (!got) return got.error();
  if (*got != record.name.size()) return damaged();
  return std::optional<Record>(std::move(record));
}

double value_at(at::ScalarType type, const char* data, std::size_t index) {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, data + index * sizeof(T), sizeof(T));
    return static_cast<double>(value);
  };
  switch (type) {
    case at::kFloat:
      return as(float{});
    case at::kDouble:
      return as(double{});
    case at::kBFloat16:
      return as(c10::BFloat16{});
    case at::kHalf:
      return as(c10::Half{});
    default:
      return as(std::uint8_t{});  // compared byte by byte
  }
}

std::size_t item_bytes(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return 4;
    case at::kDouble:
      return 8;
    case at::kBFloat16:
    case at::kHalf:
      return 2;
    default:
      return 1;
  }
}

void compare_chunk(at::ScalarType type, const char* a, const char* b, std::size_t bytes,
                   double rtol, DumpDifference& difference) {
  for (std::size_t i = 0; i < bytes / item_bytes(type); ++i) {
    const double x = value_at(type, a, i);
    const double y = value_at(type, b, i);
    double apart = std::abs(x - y);
    if (x == y || (std::isnan(x) && std::isnan(y))) apart = 0;  // equal infinities as well
    if (std::isnan(apart)) apart = std::numeric_limits<double>::infinity();
    difference.max_abs_diff = std::max(difference.max_abs_diff, apart);
    if (!(apart <= rtol * std::abs(y))) difference.within_tolerance = false;
  }
}

}  // namespace

Status TensorDumpWriter::add_loss(std::int64_t step, double loss) {
  const std::string name = "step " + std::to_string(step) + " loss";
  if (Status status = write_header(descriptor_, name, at::kDouble, sizeof loss); !status) {
    return status;
  }
  return write_all(descriptor_, &loss, sizeof loss);
}

Status TensorDumpWriter::add(std::int64_t step, const std::string& kind,
                             const NamedTensor& tensor) {
  const std::string name = "step " + std::to_string(step) + " " + kind + " " + tensor.name;
  if (!tensor.tensor.defined()) return write_header(descriptor_, name, at::kByte, 0);
  // Gradients and parameters are dense; a permuted one is compared in its memory order, which both
  // runs share.
  if (!tensor.tensor.is_non_overlapping_and_dense()) {
    return Error{ErrorCode::bad_input, kind + " " + tensor.name + " is not dense in memory", "", "",
                 "verification compares dense tensors only"};
  }
  const auto bytes = static_cast<Bytes>(tensor.tensor.nbytes());
  if (Status status = write_header(descriptor_, name, tensor.tensor.scalar_type(), bytes);
      !status) {
    return status;
  }
  constexpr Bytes kMost = Bytes{16} << 20;
  const auto* const data = static_cast<const std::byte*>(tensor.tensor.const_data_ptr());
  for (Bytes at = 0; at < bytes; at += kMost) {
    const Bytes part = std::min(kMost, bytes - at);
    chunk_.resize(static_cast<std::size_t>(std::max<Bytes>(part, std::ssize(chunk_))));
    device_.copy_on_compute(chunk_.data(), data + at, part);
    if (needed(Wait::dump)) device_.synchronize_compute();
    if (Status status = write_all(descriptor_, chunk_.data(), static_cast<std::size_t>(part));
        !status) {
      return status;
    }
  }
  return Unit{};
}

Result<DumpDifference> compare_dumps(int a, int b, double rtol) {
  if (::lseek(a, 0, SEEK_SET) < 0 || ::lseek(b, 0, SEEK_SET) < 0) return io_error("seeking");
  DumpDifference difference;
  std::vector<char> chunk_a(kChunk);
  std::vector<char> chunk_b(kChunk);
  const auto differ = [&](const std::string& name) {
    ++difference.differing;
    difference.bitwise = false;
    if (difference.first.empty()) difference.first = name;
  };
  for (;;) {
    Result<std::optional<Record>> x = read_record(a);
    if (!x) return x.error();
    Result<std::optional<Record>> y = read_record(b);
    if (!y) return y.error();
    if (!*x && !*y) return difference;
    ++difference.tensors;
    if (!*x || !*y || (*x)->name != (*y)->name || (*x)->header.bytes != (*y)->header.bytes ||
        (*x)->header.scalar_type != (*y)->header.scalar_type) {
      // Another set of tensors: no numbers to compare.
      differ(*x ? (*x)->name : (*y)->name);
      difference.within_tolerance = false;
      difference.max_abs_diff = std::numeric_limits<double>::infinity();
      return difference;
    }
    bool same = true;
    for (std::int64_t left = (*x)->header.bytes; left > 0;) {
      const auto want = static_cast<std::size_t>(std::min<std::int64_t>(left, kChunk));
      Result<std::size_t> got_a = read_up_to(a, chunk_a.data(), want);
      if (!got_a) return got_a.error();
      Result<std::size_t> got_b = read_up_to(b, chunk_b.data(), want);
      if (!got_b) return got_b.error();
      if (*got_a != want || *got_b != want) {
        return Error{ErrorCode::internal, "the results of a step are cut short", "", "", ""};
      }
      if (std::memcmp(chunk_a.data(), chunk_b.data(), want) != 0) {
        same = false;
        compare_chunk(static_cast<at::ScalarType>((*x)->header.scalar_type), chunk_a.data(),
                      chunk_b.data(), want, rtol, difference);
      }
      left -= static_cast<std::int64_t>(want);
    }
    if (!same) differ((*x)->name);
  }
}

}  // namespace stowage::executor
