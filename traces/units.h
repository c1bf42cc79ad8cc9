// Units used everywhere inside Stowage: int64 bytes and int64 nanoseconds. Output says which
// prefix it uses: KiB, MiB, GiB are 1024-based, GB is 1000-based.
#pragma once

#include <cstdint>

namespace stowage {

using Bytes = std::int64_t;
using Nanoseconds = std::int64_t;

// For products of two of them that are divided again.
__extension__ using Wide = __int128;

// Factors such as duplex and interference are integers in parts per million, so that the simulator
// gives the same answer on every machine.
using Ppm = std::int64_t;
inline constexpr Ppm kPpm = 1'000'000;

}  // namespace stowage
