#include "report/answers/note_lines.h"

#include <cstddef>
#include <map>
#include <string_view>
#include <utility>

namespace stowage::report {

namespace {

// Where what is told of a thing begins, "stays: ..", or npos.
std::size_t reason_at(std::string_view note) {
  for (const std::string_view told : {" stays: ", " frees nothing: "}) {
    const std::size_t at = note.find(told);
    if (at != std::string_view::npos) return at + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::vector<std::string> note_lines(const std::vector<std::string>& notes) {
  std::map<std::string_view, int> things;  // by reason
  for (const std::string& note : notes) {
    const std::size_t at = reason_at(note);
    if (at != std::string::npos) ++things[std::string_view(note).substr(at)];
  }
  std::vector<std::string> lines;
  for (const std::string& note : notes) {
    const std::size_t at = reason_at(note);
    if (at == std::string::npos) {
      lines.push_back(note);
      continue;
    }
    int& left = things[std::string_view(note).substr(at)];
    if (left == 0) continue;  // told already
    std::string line = note;
    // The simulator's notes have a colon behind the name.
    const std::size_t end = at > 1 && note[at - 2] == ':' ? at - 2 : at - 1;
    if (left > 1) line.insert(end, " (and " + std::to_string(left - 1) + " more)");
    lines.push_back(std::move(line));
    left = 0;
  }
  return lines;
}

}  // namespace stowage::report
