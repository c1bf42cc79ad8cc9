#include "traces/nearest.h"

#include <algorithm>
#include <cstddef>

namespace stowage {
namespace {

constexpr std::size_t kMostSteps = 100'000'000;  // of edit_distance()

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Levenshtein distance with one row of the table.
std::size_t edit_distance(std::string_view a, std::string_view b, std::vector<std::size_t>& row) {
  row.resize(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0U : 1U);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  if (word.size() > kLongestNearest) return {};
  std::vector<std::size_t> row;
  std::size_t left = kMostSteps;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(word.size(), candidate.size());
    const std::size_t limit = (longer + 2) / 3;
    const std::size_t shorter = std::min(word.size(), candidate.size());
    if (longer - shorter > limit) continue;
    const std::size_t steps = word.size() * candidate.size();
    if (steps > left) break;
    left -= steps;
    const std::size_t distance = edit_distance(word, candidate, row);
    if (distance > limit || distance >= longer) continue;
    if (best == nullptr || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best == nullptr ? std::string() : *best;
}

}  // namespace stowage
