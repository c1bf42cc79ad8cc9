// Numbers and kinds as the views write them: always with their unit.
#pragma once

#include <QString>
#include <optional>

#include "gui/model/step_picture.h"
#include "traces/units.h"

namespace stowage::gui {

[[nodiscard]] QString bytes_text(Bytes bytes);                 // "63.0 GB" (1000-based)
[[nodiscard]] QString exact_bytes_text(Bytes bytes);           // "63.0 GB (62,996,267,264 bytes)"
[[nodiscard]] QString time_text(Nanoseconds time);             // "18.4 ms"
[[nodiscard]] QString rate_text(double gigabytes_per_second);  // "52.1 GB/s"
[[nodiscard]] QString count_text(std::int64_t number);         // "10,148"

[[nodiscard]] QString word_for(Source source);  // "measured", "predicted", "assumed machine"
[[nodiscard]] QString word_for(LaneKind kind);  // "Compute"
[[nodiscard]] QString word_for(StorageClass storage_class);  // "optimizer state"

// "activation", "made again" of a band of the memory curve.
[[nodiscard]] QString band_word(const MemoryView& memory, std::size_t row);

// "12.5 ms · out 1.20 GB at 52.1 GB/s · back 0 B · memory 36.0 to 63.0 GB · compute 11.2 ms, stall
// 0 ns"
[[nodiscard]] QString range_text(const RangeFigures& figures);

}  // namespace stowage::gui
