// What plans and simulations remark, for people.
#pragma once

#include <string>
#include <vector>

namespace stowage::report {

// Notes that tell of several things that they stay, or that they free nothing, each for the same
// reason, as one in the place of the first: "head.weight stays: ..", twice more, is "head.weight
// (and 2 more) stays: ..". All other notes as they are. Cost: O(notes log notes).
[[nodiscard]] std::vector<std::string> note_lines(const std::vector<std::string>& notes);

}  // namespace stowage::report
