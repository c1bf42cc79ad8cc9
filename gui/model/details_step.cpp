#include <algorithm>
#include <cmath>

#include "gui/model/details_writer.h"
#include "gui/model/name_search.h"
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

namespace {

std::string rate(Bytes bytes, Nanoseconds time) {
  const auto tenths = std::llround(gigabytes_per_second(bytes, time) * 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GB/s";
}

}  // namespace

void DetailsWriter::layer(LayerId id) {
  const Layers& l = trace_.layers;
  const std::size_t i = id.index();
  section("Layer");
  row("Path", trace_.string(l.name[i]));
  row("Kind", trace_.string(l.kind[i]));
  row("Calls in the step", std::to_string(l.calls[i]));
  if (l.parent[i].valid()) layer_row("Inside", l.parent[i]);
  row("Parameters", exact_bytes(l.parameter_bytes[i]));
  saved_in_layer(id);
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
  std::int64_t offloaded = 0;
  std::int64_t recomputed = 0;
  const std::vector<SavedId> rows = saved_in(recording, id);
  std::vector<StorageId> seen;
  for (const SavedId saved : rows) {
    const Selection at = in_step(x_.simulated->rows, {Kind::saved, saved.value});
    const bool away =
        at.row >= 0 && x_.simulated->schedule.tenant_of[static_cast<std::size_t>(at.row)].valid();
    offloaded += away ? 1 : 0;
    recomputed += decisions.runs_again(saved) ? 1 : 0;
    const StorageId storage = recording.saved.storage[saved.index()];
    if (storage.valid() && recording.storages.alloc_event[storage.index()].valid()) {
      seen.push_back(storage);
    }
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  for (const StorageId storage : seen) bytes += recording.storages.bytes[storage.index()];
  std::string text =
      std::to_string(rows.size()) + ", " + std::to_string(offloaded) + " of them offloaded";
  if (recomputed > 0) text += ", " + std::to_string(recomputed) + " recomputed";
  row("Saved tensors", std::move(text));
  row("Bytes that it saves", exact_bytes(bytes));
  if (!rows.empty()) prices(x_.prices->of(id));
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
    row("Moves", exact_bytes(g.bytes[i]) + " at " + rate(g.bytes[i], g.duration[i]));
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
  row("Takes", format_time(t.end - t.start) + " at " + rate(bytes, t.end - t.start));
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
  row("Takes", format_time(t.end - t.start) + " at " + rate(of.bytes, t.end - t.start));
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
  row("Where",
      "in " + s.layer + ", " + s.phase + ", from " + format_time(s.start) + " to " +
          format_time(s.start + s.duration),
      {Kind::stall, s.stall});
  row("Why", s.why_text);
  for (const report::Remedy& remedy : s.remedies) row("What would remove it", remedy.text);
}

LayerId DetailsWriter::layer_of(const StallRow& stall) const {
  const simulator::Tenant& tenant = x_.simulated->schedule.tenant(stall.stay);
  return tenant.kind->layer(trace_, tenant);
}

}  // namespace stowage::gui
