// How a text for people is drawn: on a terminal, in a file, in a notebook.
#pragma once

#include "report/answers/paint.h"

namespace stowage::report {

struct TextStyle {
  Paint paint;           // none: no colours
  int width = 80;        // columns of a memory curve, 40 to 120
  bool unicode = false;  // block characters may be printed
};

}  // namespace stowage::report
