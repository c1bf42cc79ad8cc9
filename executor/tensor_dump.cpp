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
#include <string_view>
#include <unordered_map>
#include <utility>

#include "executor/device/needed_wait.h"

namespace stowage::executor {

namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;
constexpr std::uint32_t kMagic = 0x53544744;  // "STGD"

constexpr std::int64_t kMostTensorBytes = std::int64_t{1} << 60;

enum class Form : std::int32_t { bytes, digests };

struct Header {
  std::uint32_t magic = kMagic;
  std::uint32_t name_bytes = 0;
  std::int32_t scalar_type = 0;
  Form form = Form::bytes;
  std::int64_t bytes = 0;  // of the tensor
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

// What follows a header and its name.
std::int64_t payload_bytes(const Header& header) {
  return header.form == Form::bytes
             ? header.bytes
             : pieces_of(header.bytes) * static_cast<std::int64_t>(sizeof(PieceDigest));
}

Status write_header(int descriptor, const std::string& name, at::ScalarType type,
                    std::int64_t bytes, Form form = Form::bytes) {
  Header header;
  header.name_bytes = static_cast<std::uint32_t>(name.size());
  header.scalar_type = static_cast<std::int32_t>(type);
  header.form = form;
  header.bytes = bytes;
  if (Status status = write_all(descriptor, &header, sizeof header); !status) return status;
  return write_all(descriptor, name.data(), name.size());
}

// Of a tensor of zeros that has no memory.
Status write_zeros(int descriptor, std::int64_t bytes, Form form) {
  const std::vector<std::byte> zeros(static_cast<std::size_t>(std::min(bytes, kPieceBytes)));
  for (std::int64_t at = 0; at < bytes; at += kPieceBytes) {
    const std::int64_t part = std::min(kPieceBytes, bytes - at);
    const PieceDigest digest = digest_of(zeros.data(), part);
    Status status = form == Form::digests
                        ? write_all(descriptor, digest.data(), digest.size())
                        : write_all(descriptor, zeros.data(), static_cast<std::size_t>(part));
    if (!status) return status;
  }
  return Unit{};
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
      record.header.bytes > kMostTensorBytes || record.header.name_bytes > kChunk ||
      (record.header.form != Form::bytes && record.header.form != Form::digests)) {
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
                   double rtol, TensorDifference& tensor, DumpDifference& difference) {
  for (std::size_t i = 0; i < bytes / item_bytes(type); ++i) {
    const double x = value_at(type, a, i);
    const double y = value_at(type, b, i);
    double apart = std::abs(x - y);
    if (x == y || (std::isnan(x) && std::isnan(y))) apart = 0;  // equal infinities as well
    if (std::isnan(apart)) apart = std::numeric_limits<double>::infinity();
    tensor.max_abs_diff = std::max(tensor.max_abs_diff, apart);
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
  const Form form = digests_ ? Form::digests : Form::bytes;
  if (Status status = write_header(descriptor_, name, tensor.tensor.scalar_type(), bytes, form);
      !status) {
    return status;
  }
  // Such is the gradient of `sgn`.
  if (tensor.tensor._is_zerotensor()) return write_zeros(descriptor_, bytes, form);
  const auto* const data = static_cast<const std::byte*>(tensor.tensor.const_data_ptr());
  if (digests_) {
    if (!hasher_) {
      Result<PieceHasher> hasher = PieceHasher::create(device_);
      if (!hasher) return hasher.error();
      hasher_ = std::move(hasher).value();
    }
    const std::vector<PieceDigest> digests = hasher_->digests(data, bytes);
    return write_all(descriptor_, digests.data(), digests.size() * sizeof(PieceDigest));
  }
  constexpr Bytes kMost = Bytes{16} << 20;
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
  const auto differ = [&](TensorDifference tensor) {
    ++difference.differing;
    difference.bitwise = false;
    difference.max_abs_diff = std::max(difference.max_abs_diff, tensor.max_abs_diff);
    if (difference.first.empty()) difference.first = tensor.name;
    difference.each.push_back(std::move(tensor));
  };
  for (;;) {
    Result<std::optional<Record>> x = read_record(a);
    if (!x) return x.error();
    Result<std::optional<Record>> y = read_record(b);
    if (!y) return y.error();
    if (!*x && !*y) {
      if (!difference.magnitude_known) difference.forget_magnitude();
      return difference;
    }
    ++difference.tensors;
    if (!*x || !*y || (*x)->name != (*y)->name || (*x)->header.bytes != (*y)->header.bytes ||
        (*x)->header.scalar_type != (*y)->header.scalar_type) {
      // Another set of tensors: no numbers to compare.
      differ({*x ? (*x)->name : (*y)->name, std::numeric_limits<double>::infinity()});
      difference.within_tolerance = false;
      return difference;
    }
    const Form form = (*x)->header.form;
    if (form != (*y)->header.form) {
      return Error{ErrorCode::internal,
                   "one run wrote the values of " + (*x)->name + " and the other one digests", "",
                   "", ""};
    }
    if (form == Form::digests) ++difference.by_digest;
    bool same = true;
    TensorDifference tensor{(*x)->name};
    for (std::int64_t left = payload_bytes((*x)->header); left > 0;) {
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
        if (form == Form::digests) {
          difference.magnitude_known = false;
          tensor.max_abs_diff = std::numeric_limits<double>::quiet_NaN();
        } else {
          compare_chunk(static_cast<at::ScalarType>((*x)->header.scalar_type), chunk_a.data(),
                        chunk_b.data(), want, rtol, tensor, difference);
        }
      }
      left -= static_cast<std::int64_t>(want);
    }
    if (!same) differ(std::move(tensor));
  }
}

Status check_dump(int descriptor) {
  if (::lseek(descriptor, 0, SEEK_SET) < 0) return io_error("seeking");
  std::vector<char> chunk(kChunk);
  for (std::int64_t records = 0;; ++records) {
    Result<std::optional<Record>> record = read_record(descriptor);
    if (!record) return record.error();
    if (!*record) {
      if (records > 0) return Unit{};
      return Error{ErrorCode::internal, "the results of the steps are empty", "", "", ""};
    }
    for (std::int64_t left = payload_bytes((*record)->header); left > 0;) {
      const auto want = static_cast<std::size_t>(std::min<std::int64_t>(left, kChunk));
      Result<std::size_t> got = read_up_to(descriptor, chunk.data(), want);
      if (!got) return got.error();
      if (*got != want) {
        return Error{ErrorCode::internal, "the results of a step are cut short", "", "", ""};
      }
      left -= static_cast<std::int64_t>(want);
    }
  }
}

namespace {

// Without the step: "step 1 gradient w" -> "gradient w".
std::string_view in_any_step(std::string_view name) {
  for (int words = 0; words < 2; ++words)
    name.remove_prefix(std::min(name.find(' ') + 1, name.size()));
  return name;
}

}  // namespace

const TensorDifference* beyond(const DumpDifference& difference, const DumpDifference& noise) {
  std::unordered_map<std::string_view, double> apart;
  for (const TensorDifference& each : noise.each) {
    double& most = apart[in_any_step(each.name)];
    most = std::max(most, each.max_abs_diff);
  }
  for (const TensorDifference& each : difference.each) {
    const auto found = apart.find(in_any_step(each.name));
    // Two runs that are infinitely apart say nothing.
    if (found == apart.end() || !std::isfinite(found->second) ||
        !(each.max_abs_diff <= found->second)) {
      return &each;
    }
  }
  return nullptr;
}

}  // namespace stowage::executor
