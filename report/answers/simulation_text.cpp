#include "report/answers/simulation_text.h"

#include <algorithm>

#include "report/answers/reserved_rows.h"
#include "report/answers/terminal_plot.h"
#include "report/answers/text_table.h"
#include "report/memory_curve.h"
#include "report/words.h"
#include "simulator/step/plan_structure.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

constexpr std::size_t kStallRows = 5;

std::string kept(bool yes, const Paint& paint) {
  return yes ? paint.green("kept") : paint.red("not kept");
}

const char* words_of(Lateness why) {
  switch (why) {
    case Lateness::lane_busy:
      return "the lane was busy";
    case Lateness::started_late:
      return "it started late";
    case Lateness::no_room:
      return "no room earlier";
    case Lateness::too_large:
      return "too large for its window";
    case Lateness::in_line:
      return "its copy is in line";
    case Lateness::host_busy:
      return "the host was busy";
    case Lateness::host_slow:
      return "the host takes as long";
  }
  return "";
}

}  // namespace

std::string simulation_text(const Trace& trace, const Simulation& simulation,
                            const simulator::Plan& plan, const std::string& title,
                            const TextStyle& style) {
  const Paint& paint = style.paint;
  const simulator::ReplayResult& with = simulation.result;
  const simulator::ReplayResult& without = simulation.resident;
  std::string in_parts = simulator::parts_text(simulator::parts_of(plan));
  if (!in_parts.empty()) in_parts.insert(0, ", ");
  std::string text = paint.bold(run_line(trace)) + "\n" + title + in_parts + "\n" +
                     streaming_lines(simulation.index->step(), plan) + "\n";
  PlotOptions plot;
  plot.width = std::min(style.width, 120);
  plot.unicode = style.unicode;
  const ByteUnits units = units_of(plan.budget.device_text);
  plot.budget = plan.budget.device;
  plot.units = units;
  plot.scale = without.peak_requested;
  plot.spans = phase_spans(trace, simulation.detail.time);
  text += draw(curve_of(simulation.detail, with.step_ns), plot) + "\n";

  TextTable table;
  table.column("");
  table.column("resident", Align::right);
  table.column("replayed", Align::right);
  table.column("change", Align::right);
  const auto bytes = [&](const char* name, Bytes a, Bytes b) {
    table.row({name, a < 0 ? "-" : format_bytes(a, units), b < 0 ? "-" : format_bytes(b, units),
               relative(b, a)});
  };
  const auto time = [&table](const char* name, Nanoseconds a, Nanoseconds b) {
    table.row({name, format_time(a), format_time(b), relative(b, a)});
  };
  bytes("peak requested", without.peak_requested, with.peak_requested);
  bytes("peak active", without.peak_active, with.peak_active);
  add_reserved(simulation, plan.placement, table, units);
  bytes("host", without.host_bytes, with.host_bytes);
  time("step time", without.step_ns, with.step_ns);
  time("stall", without.stall_ns, with.stall_ns);
  bytes("copied out", without.d2h_bytes, with.d2h_bytes);
  bytes("copied back", without.h2d_bytes, with.h2d_bytes);
  text += table.text(2);
  text += "\nThe peak, " + exact_bytes(with.peak_requested, units) + " requested, is reached at " +
          place(simulation.peak_at) + ".\n";
  if (plan.budget.device) {
    text += std::string("Budget: ") + exact_bytes(*plan.budget.device, units) + " " +
            simulator::name_of(plan.budget.on) + ": " + kept(simulation.device_kept, paint) +
            (simulation.device_kept ? over_the_card(plan.budget, with, units) : "") + ".\n";
  }
  if (plan.budget.host) {
    text += "Host budget: " + exact_bytes(*plan.budget.host, units_of(plan.budget.host_text)) +
            ": " + kept(simulation.host_kept, paint) + ".\n";
  }
  if (!simulation.stalls.empty()) {
    TextTable stalls;
    stalls.column("stall", Align::right);
    stalls.column("waits for");
    stalls.column("bytes", Align::right);
    stalls.column("in");
    stalls.column("because");
    for (std::size_t i = 0; i < std::min(style.rows_or(kStallRows), simulation.stalls.size());
         ++i) {
      const StallRow& row = simulation.stalls[i];
      stalls.row({format_time(row.duration),
                  (row.is_update   ? "host's update of "
                   : row.copy_back ? "reload of "
                                   : "offload of ") +
                      row.site,
                  format_bytes(row.bytes, units), row.layer + ", " + row.phase, words_of(row.why)});
    }
    text += "\n" + paint.bold("Stalls") + ", longest first, " +
            count_of(static_cast<std::int64_t>(simulation.stalls.size()), "stall") + " in all\n" +
            stalls.text(2);
  }
  return text;
}

}  // namespace stowage::report
