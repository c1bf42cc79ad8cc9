#include <algorithm>
#include <cmath>

#include "gui/model/details_writer.h"
#include "gui/model/name_search.h"
#include "gui/model/op_products.h"
#include "gui/model/plan_edits.h"
#include "gui/model/step_picture.h"
#include "report/transfers.h"
#include "report/words.h"
#include "simulator/schedule/host_updates.h"
#include "simulator/schedule/tenant_kind.h"
#include "traces/size_text.h"

namespace stowage::gui {

using report::exact_bytes;
using report::StallRow;
using Kind = Selection::Kind;

std::string rate_words(Bytes bytes, Nanoseconds time) {
  const auto tenths = std::llround(gigabytes_per_second(bytes, time) * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB/s";
}

void DetailsWriter::layer(LayerId id) {
  const Layers& l = trace_.layers;
  const std::size_t i = id.index();
  section("Layer");
  row("Path", trace_.string(l.name[i]));
  row("Kind", trace_.string(l.kind[i]));
  row("Calls in the step", std::to_string(l.calls[i]));
  if (l.parent[i].valid()) layer_row("Inside", l.parent[i]);
  Bytes parameters = 0;
  for (std::size_t k = 0; k < l.parameter_bytes.size(); ++k) {
    if (is_inside(trace_, LayerId(k), id)) parameters += l.parameter_bytes[k];
  }
  const bool all_its_own = parameters == l.parameter_bytes[i];
  row("Parameters", exact_bytes(parameters) + (all_its_own ? "" : ", of the layers inside it too"));
  saved_in_layer(id);
  held_for_attribution(id);
  Nanoseconds stall = 0;
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

// By rows of the recording: what runs again saves the same again.
void DetailsWriter::saved_in_layer(LayerId id) {
  const Trace& recording = x_.simulated->trace->trace;
  const PlanDecisions& decisions = *x_.simulated->decisions;
  Bytes bytes = 0;
  std::int64_t can_move = 0;
  std::int64_t offloaded = 0;
  std::int64_t recomputed = 0;
  const std::vector<SavedId> rows = saved_in(recording, id);
  std::vector<StorageId> seen;
  for (const SavedId saved : rows) {
    const Selection at = in_step(x_.simulated->rows, {Kind::saved, saved.value});
    if (!x_.tree->can_move(saved)) continue;
    ++can_move;
    const bool away =
        at.row >= 0 && x_.simulated->schedule.tenant_of[static_cast<std::size_t>(at.row)].valid();
    offloaded += away ? 1 : 0;
    recomputed += decisions.runs_again(saved) ? 1 : 0;
    seen.push_back(recording.saved.storage[saved.index()]);
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const StorageId storage : seen) bytes += recording.storages.bytes[storage.index()];
  // Those that the plan decides about: what was there ahead of the step stays.
  std::string text = std::to_string(can_move) + ", " + std::to_string(offloaded) + " offloaded";
  if (recomputed > 0) text += ", " + std::to_string(recomputed) + " recomputed";
  const auto older = static_cast<std::int64_t>(rows.size()) - can_move;
  if (older > 0) text += "; " + std::to_string(older) + " more are older than the step and stay";
  row("Saved tensors", std::move(text));
  row("Bytes that it saves", exact_bytes(bytes));
  if (!rows.empty()) prices(x_.prices->of(id));
}

// A step that attributes holds what the named layers return, and its gradients, for the whole of
// it: saved tensors of no layer.
void DetailsWriter::held_for_attribution(LayerId id) {
  const Trace& recording = x_.simulated->trace->trace;
  const bool is_root = !recording.layers.parent[id.index()].valid();
  if (!is_root || recording.run.model.find("attribute=") == std::string::npos) return;
  std::int64_t count = 0;
  Bytes bytes = 0;
  for (std::size_t i = 0; i < recording.saved.size(); ++i) {
    if (recording.saved.layer[i] != id || !recording.saved.storage[i].valid()) continue;
    ++count;
    bytes += recording.storages.bytes[recording.saved.storage[i].index()];
  }
  if (count == 0) return;
  row("Held for attribution", report::count_of(count, "tensor") + ", " + exact_bytes(bytes) +
                                  ": what the attributed layers return, and its gradients");
}

// What runs again and what it is the same as.
void DetailsWriter::runs_of(OpId id) {
  const StepRowsPtr& rows = x_.simulated->rows;
  if (!rows) return;
  if (rows->is_again(id)) {
    row("Runs again", "in backward: recompute");
    return op_row("Original", rows->original_of(id));
  }
  for (std::size_t i = id.index() + 1; i < trace_.ops.size(); ++i) {
    if (rows->original_of(OpId(i)) == id) op_row("Runs again as", OpId(i));
  }
}

void DetailsWriter::op(OpId id) {
  const Ops& o = trace_.ops;
  const std::size_t i = id.index();
  section("Op");
  row("Name", trace_.string(o.name[i]));
  layer_row("Layer", o.layer[i]);
  row("Phase", spaced(stowage::name_of(trace_.phases.kind[o.phase[i].index()])));
  if (o.parent[i].valid()) op_row("Inside", o.parent[i]);
  runs_of(id);
  if (o.forward_op[i].valid()) op_row("Backward of", o.forward_op[i]);
  planned_times(id);
  row("Recorded start", format_time(o.start[i]));
  row("Recorded time on the CPU", format_time(o.duration[i]));
  const std::vector<bool> is_inside = ops_inside(trace_, id);
  device_time(is_inside);
  made_in(id, is_inside);
}

// Of the op's begin and end on the compute stream.
void DetailsWriter::planned_times(OpId id) {
  EventId first;
  EventId last;
  for (std::size_t e = 0; e < trace_.events.size(); ++e) {
    if (trace_.events.ref[e] != id.value) continue;
    if (trace_.events.kind[e] == EventKind::op_begin) first = EventId(e);
    if (trace_.events.kind[e] == EventKind::op_end) last = EventId(e);
  }
  if (!first.valid() || !last.valid()) return;
  const Nanoseconds begin = detail_.time[first.index()];
  const Nanoseconds end = std::max(begin, detail_.time[last.index()]);
  Nanoseconds stall = 0;
  for (const simulator::Stall& at : x_.simulated->result.stalls) {
    const Nanoseconds until = std::min(end, at.start + at.duration);
    stall += std::max<Nanoseconds>(0, until - std::max(begin, at.start));
  }
  row("Planned start", format_time(begin), {Kind::event, first.value});
  row("Planned time",
      format_time(end - begin) + (stall > 0 ? ", " + format_time(stall) + " of it a stall" : ""));
}

void DetailsWriter::device_time(const std::vector<bool>& ops) {
  Nanoseconds device = 0;
  std::int64_t kernels = 0;
  for (std::size_t k = 0; k < trace_.gpu.size(); ++k) {
    const OpId op = trace_.gpu.op[k];
    if (!op.valid() || !ops[op.index()]) continue;
    device += trace_.gpu.duration[k];
    ++kernels;
  }
  if (kernels == 0) return;
  row("Recorded time on the device",
      format_time(device) + " in " + report::count_of(kernels, "kernel"));
}

// What is there when the op ends, largest first, and what it needs meanwhile.
void DetailsWriter::made_in(OpId id, const std::vector<bool>& ops) {
  constexpr std::size_t kMost = 8;
  const OpProducts products = products_of(trace_, id, ops);
  const std::vector<StorageId>& made = products.kept;
  Bytes rest = 0;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const Selection at{Kind::storage, made[k].value};
    if (k < kMost) row("Makes", gui::name_of(trace_, at), at);
    if (k >= kMost) rest += trace_.storages.bytes[made[k].index()];
  }
  if (made.size() > kMost) {
    row("Makes", std::to_string(made.size() - kMost) + " more, " + exact_bytes(rest));
  }
  if (products.temporaries == 0) return;
  row("Needs meanwhile", exact_bytes(products.temporary_bytes) + " in " +
                             report::count_of(products.temporaries, "storage"));
}

void DetailsWriter::gpu(std::size_t i) {
  const Gpu& g = trace_.gpu;
  section("On the device");
  row("Name", trace_.string(g.name[i]));
  row("Kind", stowage::name_of(g.kind[i]));
  row("Stream", std::to_string(g.stream[i]));
  row("Recorded start", format_time(g.start[i]));
  row("Recorded time", format_time(g.duration[i]));
  row("Launched at", format_time(g.launch_start[i]));
  if (g.bytes[i] > 0) {
    row("Moves", exact_bytes(g.bytes[i]) + " at " + rate_words(g.bytes[i], g.duration[i]));
  }
  op_row("Launched by", g.op[i]);
}

void DetailsWriter::event(EventId id) {
  const Events& e = trace_.events;
  section("Event");
  row("Kind", spaced(stowage::name_of(e.kind[id.index()])));
  row("Recorded at", format_time(e.time[id.index()]));
  event_row("In the planned step", id, "");
  row("Requested bytes there", exact_bytes(detail_.requested[id.index()]));
  op_row("Op", e.op[id.index()]);
}

void DetailsWriter::transfer(std::size_t i) {
  const simulator::Transfer& t = detail_.transfers[i];
  const simulator::Schedule& schedule = x_.simulated->schedule;
  const Bytes bytes = schedule.tenant(t.stay).bytes;
  section(t.is_store ? "Copy to the host" : "Copy to the device");
  row("Of", report::name_of_copy(trace_, schedule, t.stay),
      {Kind::storage, schedule.tenant(t.stay).storage.value});
  row("Size", exact_bytes(bytes));
  row("Could start", format_time(t.ready));
  row("Starts", format_time(t.start) + ", queued for " + format_time(t.start - t.ready));
  row("Ends", format_time(t.end));
  row("Takes", format_time(t.end - t.start) + " at " + rate_words(bytes, t.end - t.start));
  for (const StallRow& stall : x_.stalls) {
    const bool is_its_own = stall.transfer == static_cast<std::int32_t>(i) && !stall.is_update;
    if (is_its_own) this->stall(stall);
  }
}

void DetailsWriter::update(std::size_t i) {
  const simulator::Schedule& schedule = x_.simulated->schedule;
  const simulator::HostUpdate of = simulator::host_updates(trace_, schedule)[i];
  const simulator::HostUpdateTime& t = detail_.host_updates[i];
  section("Update on the host");
  row("Of", gui::name_of(trace_, {Kind::storage, of.of.value}), {Kind::storage, of.of.value});
  row("With", report::name_of_copy(trace_, schedule, of.stay),
      {Kind::storage, schedule.tenant(of.stay).storage.value});
  row("Works with", exact_bytes(of.bytes) + " of parameter, gradient and state");
  row("Gradient there", format_time(t.ready));
  row("Starts", format_time(t.start) + ", queued for " + format_time(t.start - t.ready));
  row("Ends", format_time(t.end));
  row("Takes", format_time(t.end - t.start) + " at " + rate_words(of.bytes, t.end - t.start));
  if (simulator::guesses_host_updates(trace_, x_.simulated->result)) {
    row("Speed", "assumed: the trace does not say how fast the host updates");
  }
  for (const StallRow& stall : x_.stalls) {
    if (stall.is_update && stall.stay == of.stay) this->stall(stall);
  }
}

void DetailsWriter::stall(const StallRow& s) {
  section("Stall of " + format_time(s.duration));
  row("Waits for",
      std::string(s.is_update   ? "the host's update of "
                  : s.copy_back ? "the copy back of "
                                : "the copy out of ") +
          s.site + " (" + format_bytes(s.bytes) + ")",
      {Kind::transfer, s.transfer});
  row("Where", "in " + s.layer + ", " + s.phase + ", at " + format_time(s.start),
      {Kind::stall, s.stall});
  neighbours(s);
  row("Why", s.why_text);
  for (const report::Remedy& remedy : s.remedies) row("What would remove it", remedy.text);
}

// Those that are drawn as one with it.
void DetailsWriter::neighbours(const StallRow& s) {
  constexpr std::int32_t kMost = 4;
  const StallGroup& group = x_.waits.group_of(s.stall);
  if (group.count == 1) return;
  row("One of", std::to_string(group.count) +
                    " that follow each other and wait for the same lane, " +
                    format_time(group.duration) + " together");
  std::int32_t told = 0;
  for (std::int32_t i = group.first; i < group.first + group.count; ++i) {
    const StallWait& wait = x_.waits.waits[static_cast<std::size_t>(i)];
    if (wait.stall == s.stall || told++ >= kMost) continue;
    const StallRow& other =
        x_.stalls[static_cast<std::size_t>(x_.stall_row[static_cast<std::size_t>(wait.stall)])];
    row("Beside it", format_time(other.duration) + ", for " + other.site,
        {Kind::stall, other.stall});
  }
}

LayerId DetailsWriter::layer_of(const StallRow& stall) const {
  const simulator::Tenant& tenant = x_.simulated->schedule.tenant(stall.stay);
  return tenant.kind->layer(trace_, tenant);
}

}  // namespace stowage::gui
