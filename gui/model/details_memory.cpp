#include <algorithm>
#include <cmath>

#include "gui/model/details_writer.h"
#include "gui/model/plan_tree.h"
#include "report/words.h"
#include "simulator/step/recomputed_step.h"
#include "traces/size_text.h"

namespace stowage::gui {

using report::exact_bytes;
using report::StallRow;
using report::StorageStory;

namespace {

std::string at_and_takes(Nanoseconds begin, Nanoseconds end) {
  return "at " + format_time(begin) + ", takes " + format_time(end - begin);
}

std::string words_of(simulator::CopyMode mode) {
  switch (mode) {
    case simulator::CopyMode::lane:
      return "beside compute";
    case simulator::CopyMode::compute:
      return "in the compute stream";
    case simulator::CopyMode::blocking:
      break;
  }
  return "while the CPU waits";
}

std::string words_of_copies(simulator::CopyMode out, simulator::CopyMode in) {
  if (out == in) return ", copied out and back " + words_of(out);
  return ", copied out " + words_of(out) + " and back " + words_of(in);
}

}  // namespace

void DetailsWriter::saved(SavedId id) {
  const Saved& s = trace_.saved;
  section("Saved tensor");
  row("Site", trace_.string(s.site[id.index()]));
  layer_row("Layer", s.layer[id.index()]);
  const TensorId tensor = s.tensor[id.index()];
  if (tensor.valid()) row("Tensor", shape_of(tensor));
  op_row("Saved by", s.op[id.index()]);
  row("Decision", decision_of(id));
  if (const SavedId there = made_again(id); there.valid()) {
    event_row("Made again", s.event[there.index()], "");
  }
  const Selection recorded = in_recording(x_.simulated->rows, {Selection::Kind::saved, id.value});
  if (recorded.row >= 0) prices(x_.prices->of(SavedId(recorded.row)));
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

void DetailsWriter::storage(StorageId id) {
  const Storages& s = trace_.storages;
  const std::size_t i = id.index();
  const StorageStory story = x_.stories[i];
  section("Storage");
  row("Size", exact_bytes(s.bytes[i]));
  if (s.rounded_bytes[i] != s.bytes[i]) row("Its block", exact_bytes(s.rounded_bytes[i]));
  row("Class", spaced(stowage::name_of(s.storage_class[i])));
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

void DetailsWriter::moves(const StorageStory& story) {
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

std::string DetailsWriter::shape_of(TensorId tensor) const {
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

void DetailsWriter::prices(const Price& price) {
  row("Recompute costs", recompute_text(price));
  row("Offload costs", offload_text(price));
}

// What a segment saves of it when it runs again; none where nothing does.
SavedId DetailsWriter::made_again(SavedId id) const {
  if (!x_.simulated->rows) return {};
  // Inner segments come behind outer ones.
  const std::vector<simulator::SegmentRows>& segments = x_.simulated->rows->step().segments();
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    const auto at = std::lower_bound(segment->saved.begin(), segment->saved.end(), id);
    if (at == segment->saved.end() || *at != id) continue;
    const auto number = static_cast<std::size_t>(at - segment->saved.begin());
    return number < segment->again.size() ? segment->again[number] : SavedId();
  }
  return {};
}

std::string DetailsWriter::decision_of(SavedId id) const {
  const PlanDecisions& decisions = *x_.simulated->decisions;
  const Selection recorded = in_recording(x_.simulated->rows, {Selection::Kind::saved, id.value});
  simulator::SavedDecision decision;
  if (recorded.row >= 0) {
    const SavedId row(recorded.row);
    const std::int32_t segment = decisions.segment(row);
    if (segment >= 0) {
      return "recompute, with " + decisions.segments[static_cast<std::size_t>(segment)];
    }
    if (decisions.runs_again(row)) return "recompute, by ops";
    decision = decisions.saved[row.index()];
  } else {
    const auto input = decisions.inputs.find(trace_.string(trace_.saved.site[id.index()]));
    if (input != decisions.inputs.end()) decision = input->second;
  }
  std::string text = simulator::name_of(decision.decision);
  const bool away = x_.simulated->schedule.tenant_of[id.index()].valid();
  if (decision.decision == simulator::Decision::offload) {
    text += away ? words_of_copies(decision.copy_out, decision.copy_in)
                 : ", but it stays (see the note)";
  }
  return recorded.row >= 0 ? text : text + "; it is held for what runs again";
}

}  // namespace stowage::gui
