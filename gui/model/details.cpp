#include "gui/model/details.h"

#include <algorithm>

#include "gui/model/details_writer.h"
#include "gui/model/name_search.h"
#include "report/moment.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::gui {

using Kind = Selection::Kind;

namespace {

std::size_t rows_of(const Explained& x, Kind kind) {
  const Trace& trace = x.trace();
  switch (kind) {
    case Kind::none:
      return 0;
    case Kind::op:
      return trace.ops.size();
    case Kind::gpu:
      return trace.gpu.size();
    case Kind::layer:
      return trace.layers.size();
    case Kind::saved:
      return trace.saved.size();
    case Kind::storage:
      return trace.storages.size();
    case Kind::event:
      return trace.events.size();
    case Kind::transfer:
      return x.simulated->detail.transfers.size();
    case Kind::stall:
      return x.simulated->result.stalls.size();
    case Kind::update:
      return x.simulated->detail.host_updates.size();
  }
  return 0;
}

}  // namespace

std::string spaced(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

void DetailsWriter::layer_row(const char* name, LayerId layer) {
  row(name, layer_words(trace_, layer), {Kind::layer, layer.value});
}

void DetailsWriter::op_row(const char* name, OpId op) {
  if (!op.valid()) return row(name, "none");
  row(name, gui::name_of(trace_, {Kind::op, op.value}), {Kind::op, op.value});
}

void DetailsWriter::event_row(const char* name, EventId event, const char* otherwise) {
  if (!event.valid()) return row(name, otherwise);
  const report::Moment moment = report::moment_at(trace_, event);
  row(name, format_time(detail_.time[event.index()]) + ", at " + report::place(moment),
      {Kind::event, event.value});
}

Details details_of(const Explained& explained, const Selection& selection) {
  if (selection.kind == Kind::none) {
    DetailsWriter writer(explained);
    writer.title("The step: select something to see more of it");
    writer.step();
    return std::move(writer).take();
  }
  if (selection.row < 0 ||
      static_cast<std::size_t>(selection.row) >= rows_of(explained, selection.kind)) {
    return {};
  }
  DetailsWriter writer(explained);
  writer.title(name_of(explained.trace(), selection));
  const auto row = static_cast<std::size_t>(selection.row);
  switch (selection.kind) {
    case Kind::none:
      break;
    case Kind::op:
      writer.op(OpId(row));
      break;
    case Kind::gpu:
      writer.gpu(row);
      break;
    case Kind::layer:
      writer.layer(LayerId(row));
      break;
    case Kind::saved:
      writer.saved(SavedId(row));
      break;
    case Kind::storage:
      writer.storage(StorageId(row));
      break;
    case Kind::event:
      writer.event(EventId(row));
      break;
    case Kind::transfer:
      writer.transfer(row);
      break;
    case Kind::stall:
      writer.stall(explained.stalls[static_cast<std::size_t>(explained.stall_row[row])]);
      break;
    case Kind::update:
      writer.update(row);
      break;
  }
  return std::move(writer).take();
}

std::string details_text(const Details& details) {
  std::string text = details.title + "\n";
  for (const DetailSection& section : details.sections) {
    text += "\n" + section.title + "\n";
    for (const DetailRow& row : section.rows) text += "  " + row.name + ": " + row.value + "\n";
  }
  return text;
}

}  // namespace stowage::gui
