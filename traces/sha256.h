// SHA-256 (FIPS 180-4), for fingerprints and for naming a file's content; not for secrets.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stowage {

class Sha256 {
 public:
  void update(std::string_view data);
  // The digest as 64 lower-case hex digits. Call once, last.
  [[nodiscard]] std::string hex();

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> buffer_{};
  std::size_t buffered_ = 0;
  std::uint64_t total_ = 0;
};

// "sha256:" and the hex digest, the form in which files name content.
[[nodiscard]] std::string sha256_of(std::string_view data);

}  // namespace stowage
