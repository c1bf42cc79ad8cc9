// Addresses for blocks that come and go: the lowest gap that is large enough, in one range that
// grows at its end.
#pragma once

#include <map>

#include "traces/units.h"

namespace stowage::report {

class AddressMap {
 public:
  // `bytes` > 0. O(gaps).
  [[nodiscard]] Bytes take(Bytes bytes);
  // What take() gave, with the same bytes. O(log gaps).
  void give_back(Bytes address, Bytes bytes);
  // The end of the range: all that was ever taken lies below it.
  [[nodiscard]] Bytes end() const { return end_; }

 private:
  std::map<Bytes, Bytes> gaps_;  // address -> bytes; none touches another or the end
  Bytes top_ = 0;                // behind the last block that is taken
  Bytes end_ = 0;
};

}  // namespace stowage::report
