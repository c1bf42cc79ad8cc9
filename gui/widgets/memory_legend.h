// The legend of the memory curve: the bands in the order of the stack, from above. Where there is
// no room for all, what was made again and those with the most bytes at the peak are named, and "…"
// says that others are not.
#pragma once

#include <QPainter>
#include <QRect>
#include <vector>

#include "gui/model/step_picture.h"
#include "gui/widgets/theme.h"

namespace stowage::gui {

// Rows of memory.bytes whose names fit into `width` pixels, in the order of painting.
[[nodiscard]] std::vector<std::size_t> legend_of(const MemoryView& memory,
                                                 const QFontMetrics& metrics, int width);

// Along the upper edge of `space`; `ink` is the colour of the names.
void paint_legend(QPainter& painter, const MemoryView& memory, const Theme& theme,
                  const QColor& ink, const QRect& space);

}  // namespace stowage::gui
