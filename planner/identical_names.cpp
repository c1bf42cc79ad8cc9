#include "planner/identical_names.h"

#include <algorithm>

namespace stowage::planner {

std::string without_numbers(const std::string& site) {
  std::string out;
  const std::size_t end = std::min(site.rfind('#'), site.size());
  for (std::size_t i = 0; i < site.size(); ++i) {
    const bool digit = i < end && site[i] >= '0' && site[i] <= '9';
    if (!digit) {
      out += site[i];
    } else if (out.empty() || out.back() != '#') {
      out += '#';
    }
  }
  return out;
}

}  // namespace stowage::planner
