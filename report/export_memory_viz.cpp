#include "report/export_memory_viz.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "report/address_map.h"
#include "report/pickle.h"
#include "simulator/step/block_bytes.h"

namespace stowage::report {
namespace {

constexpr Bytes kBase = Bytes{0x7F} << 40;  // looks like a device address
// A span's begin or end, in the order in which they happen: at one position ends come first.
struct Turn {
  StepPosition at = 0;
  bool begins = false;
  std::size_t span = 0;
};

std::vector<Turn> turns_of(const AliveSpans& spans, StepPosition positions) {
  std::vector<Turn> turns;
  for (std::size_t i = 0; i < spans.all().size(); ++i) {
    const AliveSpan& span = spans.all()[i];
    if (span.begin < positions) turns.push_back({span.begin, true, i});
    if (span.end < positions) turns.push_back({span.end, false, i});
  }
  std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) {
    if (a.at != b.at) return a.at < b.at;
    return a.begins != b.begins ? !a.begins : a.span < b.span;
  });
  return turns;
}

class VizWriter {
 public:
  explicit VizWriter(const StepView& step)
      : step_(step), trace_(*step.trace), addresses_(step.spans.all().size(), -1) {}

  std::string write() {
    out_.begin_dict();
    out_.text("device_traces");
    out_.begin_list();
    out_.begin_list();
    const std::size_t events = trace_.events.size();
    const StepPosition positions = events > 0 ? step_.spans.last_at(events - 1) + 1 : 0;
    for (const Turn& turn : turns_of(step_.spans, positions)) follow(turn);
    end_of_trace();
    out_.end_list();
    out_.end_list();
    out_.text("segments");
    out_.begin_list();
    if (map_.end() > 0) write_segment();
    out_.end_list();
    out_.end_dict();
    return out_.finish();
  }

 private:
  void follow(const Turn& turn) {
    const AliveSpan& span = step_.spans.all()[turn.span];
    const Bytes size = simulator::block_bytes(span.bytes);
    // The clock of the events: microseconds since step begin.
    time_ = step_.time_of(step_.spans.event_of(std::max(turn.at, StepPosition{0}))) / 1000;
    if (turn.begins) {
      addresses_[turn.span] = map_.take(size);
      event("alloc", turn.span, span);
      return;
    }
    event("free_requested", turn.span, span);
    event("free_completed", turn.span, span);
    map_.give_back(addresses_[turn.span], size);
    addresses_[turn.span] = -1;
  }

  void field(const char* key, std::int64_t value) {
    shared_text(key);
    out_.number(value);
  }
  void field(const char* key, const std::string& value) {
    shared_text(key);
    shared_text(value);
  }

  // Keys and names stand there many times.
  void shared_text(const std::string& text) {
    const auto [known, is_new] = texts_.try_emplace(text, 0);
    if (is_new) {
      out_.text(text);
      known->second = out_.remember();
    } else {
      out_.recall(known->second);
    }
  }

  void event(const char* action, std::size_t row, const AliveSpan& span) {
    out_.begin_dict();
    field("action", action);
    field("addr", kBase + addresses_[row]);
    field("size", span.bytes);
    field("stream", 0);
    field("time_us", time_);
    const auto c = trace_.storages.storage_class[span.storage.index()];
    field("category", span.holding == Holding::reloaded ? "reloaded" : stowage::name_of(c));
    shared_text("frames");
    frames(span);
    out_.end_dict();
  }

  // A stack of what is known: the op that made it in its layer, then what it is.
  void frames(const AliveSpan& span) {
    const std::size_t s = span.storage.index();
    const bool reloaded = span.holding == Holding::reloaded;
    const std::size_t key = 2 * s + (reloaded ? 1 : 0);
    if (const auto known = frames_.find(key); known != frames_.end()) {
      out_.recall(known->second);
      return;
    }
    const StorageStory story = step_.stories[s];
    const LayerId layer = trace_.storages.layer[s];
    const std::string where = layer_name(trace_, layer);
    out_.begin_list();
    if (reloaded) frame(where, 0, "reloaded copy");
    if (story.made_by.valid()) {
      frame(where, story.made_by.value, trace_.string(trace_.ops.name[story.made_by.index()]));
    } else {
      frame(where, 0, "older than the step");
    }
    if (story.saved.valid()) {
      const std::string& site = trace_.string(trace_.saved.site[story.saved.index()]);
      frame(site, story.saved.value, "saved tensor");
    }
    const char* what = stowage::name_of(trace_.storages.storage_class[s]);
    frame("storage", span.storage.value, what);
    out_.end_list();
    frames_.emplace(key, out_.remember());
  }

  void frame(const std::string& file, std::int64_t line, const std::string& name) {
    out_.begin_dict();
    field("name", name);
    field("filename", file);
    field("line", line);
    out_.end_dict();
  }

  // The page needs an event of the category "unknown" as soon as there are categories.
  void end_of_trace() {
    out_.begin_dict();
    field("action", "snapshot");
    field("addr", 0);
    field("size", 0);
    field("stream", 0);
    field("time_us", step_.timeline.end / 1000);
    field("category", "unknown");
    shared_text("frames");
    out_.begin_list();
    out_.end_list();
    out_.end_dict();
  }

  void write_segment() {
    std::map<Bytes, std::size_t> left;  // address -> span
    Bytes active = 0;
    Bytes requested = 0;
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      if (addresses_[i] < 0) continue;
      left.emplace(addresses_[i], i);
      active += simulator::block_bytes(step_.spans.all()[i].bytes);
      requested += step_.spans.all()[i].bytes;
    }
    out_.begin_dict();
    field("device", 0);
    field("address", kBase);
    field("total_size", map_.end());
    field("allocated_size", active);
    field("active_size", active);
    field("requested_size", requested);
    field("stream", 0);
    field("segment_type", "large");
    shared_text("blocks");
    out_.begin_list();
    Bytes at = 0;
    for (const auto& [address, row] : left) {
      gap(at, address);
      const AliveSpan& span = step_.spans.all()[row];
      out_.begin_dict();
      field("address", kBase + address);
      field("size", simulator::block_bytes(span.bytes));
      field("requested_size", span.bytes);
      field("state", "active_allocated");
      shared_text("frames");
      frames(span);
      out_.end_dict();
      at = address + simulator::block_bytes(span.bytes);
    }
    gap(at, map_.end());
    out_.end_list();
    out_.end_dict();
  }

  void gap(Bytes from, Bytes to) {
    if (from >= to) return;
    out_.begin_dict();
    field("address", kBase + from);
    field("size", to - from);
    field("requested_size", 0);
    field("state", "inactive");
    shared_text("frames");
    out_.begin_list();
    out_.end_list();
    out_.end_dict();
  }

  const StepView& step_;
  const Trace& trace_;
  Pickle out_;
  AddressMap map_;
  std::vector<Bytes> addresses_;  // by span; -1: not there
  std::int64_t time_ = 0;
  std::map<std::string, std::uint32_t> texts_;
  std::map<std::size_t, std::uint32_t> frames_;
};

}  // namespace

std::string export_memory_viz(const StepView& step) {
  return VizWriter(step).write();
}

}  // namespace stowage::report
