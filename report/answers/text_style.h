// How a text for people is drawn: on a terminal, in a file, in a notebook.
#pragma once

#include <cstddef>

#include "report/answers/paint.h"

namespace stowage::report {

struct TextStyle {
  Paint paint;           // none: no colours
  int width = 80;        // columns of a memory curve, 40 to 120
  bool unicode = false;  // block characters may be printed
  std::size_t rows = 0;  // of each table at most; 0: what is usual there

  [[nodiscard]] std::size_t rows_or(std::size_t usual) const { return rows > 0 ? rows : usual; }
};

}  // namespace stowage::report
