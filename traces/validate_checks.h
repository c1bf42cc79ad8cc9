// The parts of validate(), private to it. Each check adds at most its first finding.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage {

// Keeps the first thing found.
class Findings {
 public:
  [[nodiscard]] bool none() const { return message_.empty(); }
  void add(std::string pointer, std::string message) {
    if (!none()) return;
    pointer_ = std::move(pointer);
    message_ = std::move(message);
  }
  void add(const std::string& column, std::size_t row, std::string message) {
    if (none()) add(column + "/" + std::to_string(row), std::move(message));
  }
  [[nodiscard]] Error error(const std::string& file) const {
    Error error;
    error.code = ErrorCode::bad_input;
    error.file = file;
    error.pointer = pointer_;
    error.message = message_;
    error.hint = "the trace contradicts itself: record it again";
    return error;
  }

 private:
  std::string pointer_;
  std::string message_;
};

// Layers, ops and phases: parents before children, phases in order over all events.
void check_tree(const Trace& trace, Findings& findings);
void check_sites(const Trace& trace, Findings& findings);
// Shape and strides of equal rank; the bytes that a view touches are no absurd size.
void check_tensors(const Trace& trace, Findings& findings);
// First and last row, time, references by kind.
void check_events(const Trace& trace, Findings& findings);
// Allocs and frees against the events, both ways.
void check_storages(const Trace& trace, Findings& findings);
// Packs and unpacks against the events, both ways; views inside their storage.
void check_saved(const Trace& trace, Findings& findings);
// The allocator's counter against the live bytes of device 0.
void check_allocator(const Trace& trace, Findings& findings);
void check_calibration(const Trace& trace, Findings& findings);

}  // namespace stowage
