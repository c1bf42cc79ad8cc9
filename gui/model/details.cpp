#include "gui/model/details.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/model/plan_tree.h"
#include "gui/model/search.h"
#include "gui/model/step_view.h"
#include "report/moment.h"
#include "report/transfers.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::gui {
namespace {

using report::exact_bytes;
using report::StallRow;
using report::StorageStory;
using Kind = Selection::Kind;

std::string words(std::string text) {
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string rate(Bytes bytes, Nanoseconds time) {
  const auto tenths = std::llround(gigabytes_per_second(bytes, time) * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB/s";
}

std::string at_and_takes(Nanoseconds begin, Nanoseconds end) {
  return "at " + format_time(begin) + ", takes " + format_time(end - begin);
}

class Writer {
 public:
  explicit Writer(const Explained& explained)
      : x_(explained), trace_(explained.trace()), detail_(explained.simulated->detail) {}

  Details take() && { return std::move(out_); }

  void title(std::string text) { out_.title = std::move(text); }

  void saved(SavedId id) {
    const Saved& s = trace_.saved;
    section("Saved tensor");
    row("Site", trace_.string(s.site[id.index()]));
    layer_row("Layer", s.layer[id.index()]);
    const TensorId tensor = s.tensor[id.index()];
    if (tensor.valid()) row("Tensor", shape_of(tensor));
    op_row("Saved by", s.op[id.index()]);
    row("Decision", decision_of(id));
    std::vector<std::string> others;
    const StorageId storage = s.storage[id.index()];
    for (std::size_t i = 0; storage.valid() && i < s.size(); ++i) {
      if (s.storage[i] == storage && i != id.index()) others.push_back(trace_.string(s.site[i]));
    }
    if (!others.empty()) {
      std::string text = others.front();
      for (std::size_t i = 1; i < std::min<std::size_t>(others.size(), 4); ++i) {
        text += ", " + others[i];
      }
      if (others.size() > 4) text += " and " + std::to_string(others.size() - 4) + " more";
      row("Same storage as", text);
    }
    const auto notes = x_.notes.find(trace_.string(s.site[id.index()]));
    if (notes != x_.notes.end()) {
      for (const std::string& note : notes->second) row("Note", note);
    }
    if (storage.valid()) this->storage(storage);
  }

  void storage(StorageId id) {
    const Storages& s = trace_.storages;
    const std::size_t i = id.index();
    const StorageStory& story = x_.stories[i];
    section("Storage");
    row("Size", exact_bytes(s.bytes[i]));
    if (s.rounded_bytes[i] != s.bytes[i]) row("Its block", exact_bytes(s.rounded_bytes[i]));
    row("Class", words(stowage::name_of(s.storage_class[i])));
    layer_row("Layer", s.layer[i]);
    if (story.made_by.valid()) {
      op_row("Made by", story.made_by);
    } else {
      row("Made", "before the step");
    }
    event_row("First use", story.first_use, "nothing in the step uses it");
    event_row("Last use", story.last_use, "nothing in the step uses it");
    event_row("Natural free", story.natural_free, "outlives the step");
    event_row("Freed when nothing moves", story.recorded_free, "outlives the step");
    moves(story);
    for (const StallRow& stall : x_.stalls) {
      if (stall.storage == id) this->stall(stall);
    }
  }

  void layer(LayerId id) {
    const Layers& l = trace_.layers;
    const std::size_t i = id.index();
    section("Layer");
    row("Path", trace_.string(l.name[i]));
    row("Kind", trace_.string(l.kind[i]));
    row("Calls in the step", std::to_string(l.calls[i]));
    if (l.parent[i].valid()) layer_row("Inside", l.parent[i]);
    row("Parameters", exact_bytes(l.parameter_bytes[i]));
    Bytes bytes = 0;
    std::int64_t offloaded = 0;
    Nanoseconds stall = 0;
    const std::vector<SavedId> rows = saved_in(trace_, id);
    std::vector<StorageId> seen;
    for (const SavedId saved : rows) {
      const bool away = x_.simulated->schedule.offload_of[saved.index()].valid();
      offloaded += away ? 1 : 0;
      const StorageId storage = trace_.saved.storage[saved.index()];
      if (storage.valid() && trace_.storages.alloc_event[storage.index()].valid()) {
        seen.push_back(storage);
      }
    }
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (const StorageId storage : seen) bytes += trace_.storages.bytes[storage.index()];
    row("Saved tensors",
        std::to_string(rows.size()) + ", " + std::to_string(offloaded) + " of them offloaded");
    row("Bytes that it saves", exact_bytes(bytes));
    std::vector<const StallRow*> here;
    for (const StallRow& at : x_.stalls) {
      const LayerId of = layer_of(at);
      if (of.valid() && is_inside(trace_, of, id)) {
        here.push_back(&at);
        stall += at.duration;
      }
    }
    row("Stall of its copies", format_time(stall));
    for (std::size_t k = 0; k < std::min<std::size_t>(here.size(), 3); ++k) this->stall(*here[k]);
  }

  void op(OpId id) {
    const Ops& o = trace_.ops;
    const std::size_t i = id.index();
    section("Op");
    row("Name", trace_.string(o.name[i]));
    layer_row("Layer", o.layer[i]);
    row("Phase", words(stowage::name_of(trace_.phases.kind[o.phase[i].index()])));
    if (o.parent[i].valid()) op_row("Inside", o.parent[i]);
    if (o.forward_op[i].valid()) op_row("Backward of", o.forward_op[i]);
    row("Recorded start", format_time(o.start[i]));
    row("Recorded time on the CPU", format_time(o.duration[i]));
    Nanoseconds device = 0;
    std::int64_t kernels = 0;
    for (std::size_t k = 0; k < trace_.gpu.size(); ++k) {
      if (trace_.gpu.op[k] != id) continue;
      device += trace_.gpu.duration[k];
      ++kernels;
    }
    if (kernels > 0) {
      row("Recorded time on the device",
          format_time(device) + " in " + report::count_of(kernels, "kernel"));
    }
    for (std::size_t k = 0; k < trace_.storages.size(); ++k) {
      if (trace_.storages.alloc_op[k] != id) continue;
      row("Makes", gui::name_of(trace_, {Kind::storage, static_cast<std::int32_t>(k)}),
          {Kind::storage, static_cast<std::int32_t>(k)});
    }
  }

  void gpu(std::size_t i) {
    const Gpu& g = trace_.gpu;
    section("On the device");
    row("Name", trace_.string(g.name[i]));
    row("Kind", stowage::name_of(g.kind[i]));
    row("Stream", std::to_string(g.stream[i]));
    row("Recorded start", format_time(g.start[i]));
    row("Recorded time", format_time(g.duration[i]));
    row("Launched at", format_time(g.launch_start[i]));
    if (g.bytes[i] > 0) {
      row("Moves", exact_bytes(g.bytes[i]) + " at " + rate(g.bytes[i], g.duration[i]));
    }
    op_row("Launched by", g.op[i]);
  }

  void event(EventId id) {
    const Events& e = trace_.events;
    section("Event");
    row("Kind", words(stowage::name_of(e.kind[id.index()])));
    row("Recorded at", format_time(e.time[id.index()]));
    event_row("In the planned step", id, "");
    row("Requested bytes there", exact_bytes(detail_.requested[id.index()]));
    op_row("Op", e.op[id.index()]);
  }

  void transfer(std::size_t i) {
    const simulator::Transfer& t = detail_.transfers[i];
    const simulator::Schedule& schedule = x_.simulated->schedule;
    const Bytes bytes = report::bytes_of_copy(schedule, t.offload, t.residency);
    section(report::is_back(t) ? "Copy to the device" : "Copy to the host");
    row("Of", report::name_of_copy(trace_, schedule, t.offload, t.residency),
        {Kind::storage, report::storage_of_copy(schedule, t.offload, t.residency).value});
    row("Size", exact_bytes(bytes));
    row("Could start", format_time(t.ready));
    row("Starts", format_time(t.start) + ", queued for " + format_time(t.start - t.ready));
    row("Ends", format_time(t.end));
    row("Takes", format_time(t.end - t.start) + " at " + rate(bytes, t.end - t.start));
    for (const StallRow& stall : x_.stalls) {
      if (stall.transfer == static_cast<std::int32_t>(i)) this->stall(stall);
    }
  }

  void stall(const StallRow& s) {
    section("Stall of " + format_time(s.duration));
    row("Waits for",
        std::string(s.copy_back ? "the copy back of " : "the copy out of ") + s.site + " (" +
            format_bytes(s.bytes) + ")",
        {Kind::transfer, s.transfer});
    row("Where",
        "in " + s.layer + ", " + s.phase + ", from " + format_time(s.start) + " to " +
            format_time(s.start + s.duration),
        {Kind::stall, s.stall});
    row("Why", s.why_text);
    for (const report::Remedy& remedy : s.remedies) row("What would remove it", remedy.text);
  }

 private:
  void section(std::string title) { out_.sections.push_back({std::move(title), {}}); }
  void row(std::string name, std::string value, Selection link = {}) {
    out_.sections.back().rows.push_back({std::move(name), std::move(value), link});
  }
  void layer_row(const char* name, LayerId layer) {
    row(name, report::layer_name(trace_, layer), {Kind::layer, layer.value});
  }
  void op_row(const char* name, OpId op) {
    if (!op.valid()) return row(name, "none");
    row(name, gui::name_of(trace_, {Kind::op, op.value}), {Kind::op, op.value});
  }
  void event_row(const char* name, EventId event, const char* otherwise) {
    if (!event.valid()) return row(name, otherwise);
    const report::Moment moment = report::moment_at(trace_, event);
    row(name, format_time(detail_.time[event.index()]) + ", at " + report::place(moment),
        {Kind::event, event.value});
  }

  void moves(const StorageStory& story) {
    section("Under the plan");
    if (!story.moves) return row("Moves", "no, it stays on the device");
    if (story.copy_out.valid()) {
      event_row("Copy out from", story.copy_out, "");
      if (story.copy_out_start >= 0) {
        row("Copied out",
            format_time(story.copy_out_start) + " to " + format_time(story.copy_out_end));
      }
    } else {
      row("Copy out", "none: the host has its bytes");
    }
    event_row("Released", story.release, "not in this step");
    event_row("Its bytes are gone behind", story.device_free, "not in this step");
    for (const report::Return& back : story.returns) {
      event_row("Reload from", back.start, "in the step before");
      event_row("Needed", back.needed, "in the next step");
      if (back.copy_start >= 0) {
        row("Copied back", at_and_takes(back.copy_start, back.copy_end));
      }
      event_row("The copy goes behind", back.gone, "not in this step");
    }
    row("Stall that it causes", format_time(story.stall));
  }

  [[nodiscard]] std::string shape_of(TensorId tensor) const {
    std::string text = stowage::name_of(trace_.tensors.dtype[tensor.index()]);
    text += " [";
    bool first = true;
    for (const std::int64_t size : trace_.list(trace_.tensors.shape[tensor.index()])) {
      if (!first) text += ", ";
      first = false;
      text += std::to_string(size);
    }
    return text + "]";
  }

  [[nodiscard]] std::string decision_of(SavedId id) const {
    const simulator::SavedDecision& decision = x_.simulated->decisions->saved[id.index()];
    std::string text = simulator::name_of(decision.decision);
    const bool away = x_.simulated->schedule.offload_of[id.index()].valid();
    if (decision.decision == simulator::Decision::offload) {
      text += away ? std::string(", copied ") + simulator::name_of(decision.copy_out) + " out, " +
                         simulator::name_of(decision.copy_in) + " back"
                   : ", but it stays (see the note)";
    }
    return text;
  }

  [[nodiscard]] LayerId layer_of(const StallRow& stall) const {
    if (stall.offload.valid()) {
      const SavedId first = x_.simulated->schedule.offloads[stall.offload.index()].saved.front();
      return trace_.saved.layer[first.index()];
    }
    return stall.storage.valid() ? trace_.storages.layer[stall.storage.index()] : LayerId();
  }

  const Explained& x_;
  const Trace& trace_;
  const simulator::ReplayDetail& detail_;
  Details out_;
};

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
  }
  return 0;
}

}  // namespace

Details details_of(const Explained& explained, const Selection& selection) {
  if (selection.row < 0 ||
      static_cast<std::size_t>(selection.row) >= rows_of(explained, selection.kind)) {
    return {};
  }
  Writer writer(explained);
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
