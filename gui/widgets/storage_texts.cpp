#include "gui/widgets/storage_texts.h"

#include <QStringList>

namespace stowage::gui {

std::vector<TensorId> first_tensors(const Trace& trace) {
  std::vector<TensorId> tensors(trace.storages.size());
  for (std::size_t i = 0; i < trace.tensors.size(); ++i) {
    const StorageId storage = trace.tensors.storage[i];
    if (storage.valid() && !tensors[storage.index()].valid()) {
      tensors[storage.index()] = TensorId(i);
    }
  }
  return tensors;
}

QString shape_text(const Trace& trace, TensorId tensor) {
  if (!tensor.valid()) return {};
  QStringList sizes;
  for (const std::int64_t size : trace.list(trace.tensors.shape[tensor.index()])) {
    sizes << QString::number(size);
  }
  return QLatin1Char('[') + sizes.join(QStringLiteral(", ")) + QLatin1Char(']');
}

QString dtype_text(const Trace& trace, TensorId tensor) {
  return tensor.valid() ? QString::fromUtf8(name_of(trace.tensors.dtype[tensor.index()]))
                        : QString();
}

}  // namespace stowage::gui
