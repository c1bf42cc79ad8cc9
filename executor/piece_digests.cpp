#include "executor/piece_digests.h"

#define XXH_INLINE_ALL  // the header is all that is needed of it
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "executor/device/needed_wait.h"

namespace stowage::executor {

namespace {

constexpr Bytes kAtOnce = 4;

}  // namespace

PieceDigest digest_of(const std::byte* data, Bytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, static_cast<std::size_t>(bytes));
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  PieceDigest digest;
  static_assert(sizeof digest == sizeof canonical);
  std::memcpy(digest.data(), &canonical, sizeof digest);
  return digest;
}

Result<PieceHasher> PieceHasher::create(Device& device) {
  Result<HostArena> staging = device.host_arena(2 * kAtOnce * kPieceBytes);
  if (!staging) return staging.error();
  return PieceHasher(device, std::move(staging).value());
}

std::vector<PieceDigest> PieceHasher::digests(const std::byte* data, Bytes bytes) {
  std::vector<PieceDigest> digests(static_cast<std::size_t>(pieces_of(bytes)));
  std::vector<std::jthread> hashing;  // the half that is not copied into
  std::byte* half = staging_.data();
  std::byte* other = half + kAtOnce * kPieceBytes;
  for (Bytes begin = 0; begin < bytes; begin += kAtOnce * kPieceBytes) {
    const Bytes end = std::min(bytes, begin + kAtOnce * kPieceBytes);
    device_->copy_on_compute(half, data + begin, end - begin);
    if (needed(Wait::dump_digests)) device_->synchronize_compute();
    hashing.clear();  // waits for them
    for (Bytes at = begin; at < end; at += kPieceBytes) {
      hashing.emplace_back([source = half + (at - begin), size = std::min(kPieceBytes, end - at),
                            digest = &digests[static_cast<std::size_t>(at / kPieceBytes)]] {
        *digest = digest_of(source, size);
      });
    }
    std::swap(half, other);
  }
  hashing.clear();
  return digests;
}

}  // namespace stowage::executor
