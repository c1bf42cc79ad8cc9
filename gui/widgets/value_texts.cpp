#include "gui/widgets/value_texts.h"

#include <QCoreApplication>
#include <QLocale>

#include "report/timeline.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

QString tr(const char* text) {
  return QCoreApplication::translate("words", text);
}

}  // namespace

QString bytes_text(Bytes bytes) {
  return QString::fromStdString(format_bytes(bytes));
}

QString count_text(std::int64_t number) {
  return QLocale(QLocale::English).toString(static_cast<qlonglong>(number));
}

QString exact_bytes_text(Bytes bytes) {
  return tr("%1 (%2 bytes)").arg(bytes_text(bytes), count_text(bytes));
}

QString time_text(Nanoseconds time) {
  return QString::fromStdString(format_time(time));
}

QString rate_text(double gigabytes_per_second) {
  return tr("%1 GB/s").arg(gigabytes_per_second, 0, 'f', gigabytes_per_second < 10 ? 2 : 1);
}

QString word_for(Source source) {
  switch (source) {
    case Source::measured:
      return tr("measured");
    case Source::predicted:
      return tr("predicted");
    case Source::assumed:
      return tr("assumed machine");
  }
  return {};
}

QString word_for(LaneKind kind) {
  switch (kind) {
    case LaneKind::layers:
      return tr("Layers");
    case LaneKind::launch:
      return tr(report::title_of(report::Lane::launch));
    case LaneKind::compute:
      return tr(report::title_of(report::Lane::compute));
    case LaneKind::d2h:
      return tr(report::title_of(report::Lane::d2h));
    case LaneKind::h2d:
      return tr(report::title_of(report::Lane::h2d));
    case LaneKind::stalls:
      return tr(report::title_of(report::Lane::stalls));
    case LaneKind::updates:
      return tr(report::title_of(report::Lane::updates));
  }
  return {};
}

QString word_for(StorageClass storage_class) {
  return QString::fromUtf8(stowage::name_of(storage_class)).replace('_', ' ');
}

QString band_word(const MemoryView& memory, std::size_t row) {
  return row < memory.classes.size() ? word_for(memory.classes[row])
                                     : QCoreApplication::translate("values", "made again");
}

QString range_text(const RangeFigures& f) {
  return tr("%1 · out %2 at %3 · back %4 at %5 · memory %6 to %7 · compute %8, stalls %9")
      .arg(time_text(f.duration), bytes_text(f.d2h),
           rate_text(gigabytes_per_second(f.d2h, f.duration)), bytes_text(f.h2d),
           rate_text(gigabytes_per_second(f.h2d, f.duration)), bytes_text(f.memory_min),
           bytes_text(f.memory_max), time_text(f.compute), time_text(f.stall));
}

}  // namespace stowage::gui
