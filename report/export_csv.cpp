#include "report/export_csv.h"

#include <initializer_list>
#include <utility>

#include "report/text_escape.h"
#include "traces/result.h"

namespace stowage::report {
namespace {

// Builds rows of fields.
class Rows {
 public:
  Rows& field(std::string_view text) {
    if (!row_is_empty_) out_ += ',';
    row_is_empty_ = false;
    out_ += csv_field(valid_utf8(text));
    return *this;
  }
  Rows& field(const std::string& text) { return field(std::string_view(text)); }
  Rows& field(const char* text) { return field(std::string_view(text)); }
  Rows& field(std::int64_t number) { return field(std::to_string(number)); }
  // Of ids and times that may be none.
  Rows& none_below_zero(std::int64_t number) { return number < 0 ? field("") : field(number); }
  Rows& fields(std::initializer_list<const char*> names) {
    for (const char* name : names) field(name);
    return *this;
  }
  void end() {
    out_ += "\r\n";
    row_is_empty_ = true;
  }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
  bool row_is_empty_ = true;
};

std::string memory_table(const StepView& step) {
  const Trace& trace = *step.trace;
  const Timeline& timeline = step.timeline;
  Rows rows;
  rows.fields({"time_ns", "event", "requested_bytes", "active_bytes", "reserved_bytes"});
  for (const StorageClass each : step.memory.classes) {
    rows.field(std::string(stowage::name_of(each)) + "_bytes");
  }
  rows.fields({"op", "op_name", "layer", "phase"}).end();
  std::size_t phase = 0;
  for (std::size_t i = 0; i < step.memory.size(); ++i) {
    const EventId event = step.memory.event[i];
    const std::size_t e = event.index();
    rows.field(timeline.time[e]).field(event.value).field(timeline.requested[e]);
    rows.none_below_zero(timeline.active.empty() ? -1 : timeline.active[e]);
    rows.none_below_zero(timeline.reserved.empty() ? -1 : timeline.reserved[e]);
    for (std::size_t c = 0; c < step.memory.classes.size(); ++c) {
      rows.field(step.memory.bytes[c][i]);
    }
    const OpId op = trace.events.op[e];
    rows.none_below_zero(op.value);
    rows.field(op.valid() ? trace.string(trace.ops.name[op.index()]) : std::string());
    rows.field(layer_name(trace, op.valid() ? trace.ops.layer[op.index()] : LayerId()));
    while (phase + 1 < trace.phases.size() && trace.phases.first_event[phase + 1] <= event) ++phase;
    rows.field(trace.phases.size() > 0 ? stowage::name_of(trace.phases.kind[phase]) : "").end();
  }
  return rows.take();
}

std::string storages_table(const StepView& step) {
  const Trace& trace = *step.trace;
  Rows rows;
  rows.fields({"storage",
               "bytes",
               "class",
               "layer",
               "site",
               "made_by",
               "made_ns",
               "first_use_ns",
               "last_use_ns",
               "natural_free_ns",
               "recorded_free_ns",
               "moves",
               "copy_out_start_ns",
               "copy_out_end_ns",
               "release_ns",
               "device_free_ns",
               "returns",
               "first_reload_ns",
               "first_reload_copy_start_ns",
               "first_reload_copy_end_ns",
               "first_needed_ns",
               "stall_ns"});
  rows.end();
  for (std::size_t s = 0; s < step.stories.size(); ++s) {
    if (trace.storages.device[s] != 0) continue;
    const StorageStory story = step.stories[s];
    rows.field(story.storage.value).field(trace.storages.bytes[s]);
    rows.field(stowage::name_of(trace.storages.storage_class[s]));
    rows.field(layer_name(trace, trace.storages.layer[s]));
    rows.field(story.saved.valid() ? trace.string(trace.saved.site[story.saved.index()])
                                   : std::string());
    rows.field(story.made_by.valid() ? trace.string(trace.ops.name[story.made_by.index()])
                                     : std::string());
    for (const EventId event :
         {story.made, story.first_use, story.last_use, story.natural_free, story.recorded_free}) {
      rows.none_below_zero(step.time_of(event));
    }
    rows.field(story.moves ? "yes" : "no");
    rows.none_below_zero(story.copy_out_start).none_below_zero(story.copy_out_end);
    rows.none_below_zero(step.time_of(story.release));
    rows.none_below_zero(step.time_of(story.device_free));
    rows.field(static_cast<std::int64_t>(story.returns.size()));
    const Return first = story.returns.empty() ? Return{} : story.returns.front();
    rows.none_below_zero(step.time_of(first.start));
    rows.none_below_zero(first.copy_start).none_below_zero(first.copy_end);
    rows.none_below_zero(step.time_of(first.needed)).field(story.stall).end();
  }
  return rows.take();
}

std::string stalls_table(const StepView& step) {
  Rows rows;
  rows.fields({"start_ns", "duration_ns", "waits_for", "site", "bytes", "layer", "phase", "event",
               "ready_ns", "copy_start_ns", "copy_end_ns", "queued_ns", "earliest_ns",
               "copies_ahead", "why", "because", "would_remove_it"});
  rows.end();
  for (const StallRow& row : step.stalls) {
    std::string remedies;
    for (const Remedy& remedy : row.remedies) {
      remedies += (remedies.empty() ? "" : "; ") + remedy.text;
    }
    rows.field(row.start).field(row.duration);
    rows.field(row.is_update ? "update" : row.copy_back ? "reload" : "offload");
    rows.field(row.site).field(row.bytes).field(row.layer).field(row.phase);
    rows.field(row.event.value).field(row.ready).field(row.copy_start).field(row.copy_end);
    rows.field(row.queued()).field(row.earliest).field(row.copies_ahead);
    rows.field(name_of(row.why)).field(row.why_text).field(remedies).end();
  }
  return rows.take();
}

// That its event is of; of a copy, that runs when it starts. Empty: none.
const char* phase_of(const StepView& step, const Span& span) {
  const Phases& phases = step.trace->phases;
  for (std::size_t p = phases.size(); p-- > 0;) {
    const EventId first = phases.first_event[p];
    const bool has_begun =
        span.event.valid() ? first <= span.event : step.time_of(first) <= span.begin;
    if (has_begun) return stowage::name_of(phases.kind[p]);
  }
  return "";
}

std::string timeline_table(const StepView& step) {
  const Trace& trace = *step.trace;
  Rows rows;
  rows.fields(
      {"lane", "kind", "begin_ns", "end_ns", "label", "layer", "op", "bytes", "storage", "phase"});
  rows.end();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (const Span& span : step.timeline.lanes[lane]) {
      rows.field(name_of(static_cast<Lane>(lane))).field(name_of(span.kind));
      rows.field(span.begin).field(span.end).field(label_of(trace, span));
      rows.field(span.layer.valid() ? layer_name(trace, span.layer) : std::string());
      rows.none_below_zero(span.op.value).field(span.bytes);
      rows.none_below_zero(span.storage.value).field(phase_of(step, span)).end();
    }
  }
  return rows.take();
}

constexpr CsvTable kTables[] = {CsvTable::memory, CsvTable::storages, CsvTable::stalls,
                                CsvTable::timeline};

}  // namespace

const char* name_of(CsvTable value) {
  switch (value) {
    case CsvTable::memory:
      return "memory";
    case CsvTable::storages:
      return "storages";
    case CsvTable::stalls:
      return "stalls";
    case CsvTable::timeline:
      return "timeline";
  }
  STOWAGE_ASSERT(false && "unknown table");
}

std::optional<CsvTable> csv_table_of(std::string_view name) {
  for (const CsvTable table : kTables) {
    if (name == name_of(table)) return table;
  }
  return std::nullopt;
}

std::string export_csv(const StepView& step, CsvTable table) {
  switch (table) {
    case CsvTable::memory:
      return memory_table(step);
    case CsvTable::storages:
      return storages_table(step);
    case CsvTable::stalls:
      return stalls_table(step);
    case CsvTable::timeline:
      return timeline_table(step);
  }
  STOWAGE_ASSERT(false && "unknown table");
}

}  // namespace stowage::report
