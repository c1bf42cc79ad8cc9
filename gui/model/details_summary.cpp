// What Details say while nothing is selected: the step, where it was recorded, and what it takes.
#include <algorithm>

#include "gui/model/details_writer.h"
#include "report/inspect.h"
#include "report/words.h"
#include "simulator/machine/calibration_settings.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::gui {

using report::exact_bytes;

namespace {

// "52.1 GB/s to the host, 54.6 GB/s back"
std::string link_words(const Calibration& calibration) {
  const auto best = [](const LinkCurve& curve) {
    const auto fastest =
        std::max_element(curve.bytes_per_second.begin(), curve.bytes_per_second.end());
    if (fastest == curve.bytes_per_second.end()) return std::string("not measured");
    return rate_words(*fastest, 1'000'000'000);
  };
  return best(calibration.d2h) + " to the host, " + best(calibration.h2d) + " back";
}

}  // namespace

void DetailsWriter::step() {
  // Of the recording, which a plan changes nothing of.
  const Trace& recording = x_.simulated->trace->trace;
  const Run& run = recording.run;
  section("Step");
  row("Model", run.model.empty() ? "unknown" : run.model);
  if (run.batch > 0) {
    row("Batch", std::to_string(run.batch) +
                     (run.seq > 0 ? " of " + std::to_string(run.seq) + " tokens" : ""));
  }
  const std::string parts = simulator::parts_text(simulator::recorded_parts(recording));
  if (!parts.empty()) row("Micro-batches", parts);
  if (!run.dtype.empty()) {
    row("Dtype", run.dtype + (run.autocast.empty() ? "" : ", autocast to " + run.autocast));
  }
  if (!run.optimizer.empty()) row("Optimizer", run.optimizer);
  const auto outermost = std::count_if(recording.ops.parent.begin(), recording.ops.parent.end(),
                                       [](OpId parent) { return !parent.valid(); });
  const auto inside = static_cast<std::int64_t>(recording.ops.size()) - outermost;
  row("Holds",
      report::count_of(outermost, "op") + ", " +
          report::count_of(static_cast<std::int64_t>(recording.saved.size()), "saved tensor") +
          ", " + report::count_of(static_cast<std::int64_t>(recording.storages.size()), "storage"));
  if (inside > 0) row("Inside these ops", report::with_commas(inside) + " more");
  machine();
  times_and_peaks();
}

void DetailsWriter::machine() {
  const Environment& env = trace_.env;
  section("Machine");
  row("Device", env.device.empty() ? "unknown" : env.device);
  if (!env.device_name.empty()) row("Recorded on", env.device_name);
  if (env.device_memory > 0) row("Memory of the device", exact_bytes(env.device_memory));
  if (env.context_bytes > 0) row("CUDA context", exact_bytes(env.context_bytes));
  row("Link", link_words(trace_.calibration));
  row("Replayed on", x_.simulated->trace->machine == MachineKind::recorded
                         ? "the machine that recorded the step"
                         : "an assumed machine, see What if");
  if (!env.torch.empty()) row("LibTorch", env.torch);
  if (!trace_.run.created.empty()) row("Recorded at", trace_.run.created);
}

void DetailsWriter::times_and_peaks() {
  const simulator::ReplayResult& result = x_.simulated->result;
  const Trace& recording = x_.simulated->trace->trace;
  section("Time");
  row("Recorded step", format_time(report::measured_step(recording)));
  row("Planned step",
      format_time(result.step_ns) +
          (result.stall_ns > 0 ? ", " + format_time(result.stall_ns) + " of it stalls" : ""));
  section("Peaks of the planned step");
  row("Requested", exact_bytes(result.peak_requested),
      {Selection::Kind::event, result.peak_event.value});
  row("Active", exact_bytes(result.peak_active));
  if (const auto& reserved = x_.simulated->reserved) {
    const bool is_planned = x_.simulated->plan().placement == simulator::PlacementMode::planned;
    row("Planned memory",
        exact_bytes(reserved->planned.bytes) + (is_planned ? "" : ", if the step ran in it"));
    row("Caching allocator",
        exact_bytes(reserved->caching) + (is_planned ? ", if the step ran in it" : ""));
  }
  if (result.host_bytes > 0) row("On the host", exact_bytes(result.host_bytes));
  if (const auto& budget = x_.simulated->plan().budget.device) {
    row("Budget", exact_bytes(*budget) + " on " +
                      simulator::name_of(x_.simulated->plan().budget.on) + " bytes, " +
                      (x_.simulated->device_kept ? "kept" : "not kept"));
  }
}

}  // namespace stowage::gui
