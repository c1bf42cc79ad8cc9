// What stands for a large tensor in a dump: the 128-bit XXH3 digest of each 16 MiB of its bytes.
// Equal digests are taken for equal bytes: tensors that differ by accident agree with probability
// 2^-128 a piece (it is no cryptographic hash). How far apart two tensors are they do not tell.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "executor/device/device.h"

namespace stowage::executor {

inline constexpr Bytes kPieceBytes = Bytes{16} << 20;

using PieceDigest = std::array<std::byte, 16>;  // in xxHash's canonical order

// Pieces of so many bytes; the last one may be short. 0 for none.
[[nodiscard]] constexpr Bytes pieces_of(Bytes bytes) {
  return (bytes + kPieceBytes - 1) / kPieceBytes;
}

// Of `bytes` on the host.
[[nodiscard]] PieceDigest digest_of(const std::byte* data, Bytes bytes);

// Digests of the device's memory. It holds 128 MiB of the device's host arena: four pieces are
// copied while four threads hash those before.
class PieceHasher {
 public:
  // `device` outlives it. Errors: Device::host_arena().
  [[nodiscard]] static Result<PieceHasher> create(Device& device);

  // One for each piece, in order. Copies on the compute stream and waits for it; nothing is
  // allocated on the device. Cost: what copying to the host takes, on a GPU.
  [[nodiscard]] std::vector<PieceDigest> digests(const std::byte* data, Bytes bytes);

 private:
  PieceHasher(Device& device, HostArena staging) : device_(&device), staging_(std::move(staging)) {}

  Device* device_;
  HostArena staging_;
};

}  // namespace stowage::executor
