// What tables say of storages and of the tensors in them.
#pragma once

#include <QString>
#include <vector>

#include "traces/trace.h"

namespace stowage::gui {

// Of each storage one tensor that lies in it, none where there is none. O(tensors).
[[nodiscard]] std::vector<TensorId> first_tensors(const Trace& trace);

// "[8, 1024, 4096]", "bfloat16"; empty of no tensor.
[[nodiscard]] QString shape_text(const Trace& trace, TensorId tensor);
[[nodiscard]] QString dtype_text(const Trace& trace, TensorId tensor);

}  // namespace stowage::gui
