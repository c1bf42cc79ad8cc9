#include "report/answers/inspect_text.h"

#include <algorithm>

#include "report/answers/terminal_plot.h"
#include "report/answers/text_table.h"
#include "report/op_totals.h"
#include "report/words.h"
#include "simulator/step/unroll.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

std::string head(const Trace& trace, const InspectReport& report, const Paint& paint) {
  std::string text = paint.bold(run_line(trace)) + "\n";
  text += trace.run.source.empty() ? "recorded" : trace.run.source;
  text += " on " + (trace.env.device.empty() ? "an unknown device" : trace.env.device);
  if (!trace.env.device_name.empty()) text += " (" + trace.env.device_name + ")";
  if (trace.run.threads > 0) text += ", " + count_of(trace.run.threads, "thread");
  if (!trace.run.created.empty()) text += ", " + trace.run.created;
  text += "\nstep time " + format_time(report.step) + ", " + count_of(report.outermost_ops, "op") +
          ", " + count_of(static_cast<std::int64_t>(trace.saved.size()), "saved tensor") + ", " +
          count_of(static_cast<std::int64_t>(trace.storages.size()), "storage") + "\n";
  for (const std::shared_ptr<const Trace>& part : trace.divided) {
    text += "recorded also with " + simulator::parts_text(simulator::recorded_parts(*part)) + ": " +
            format_time(part->overhead.clean.step_ns) + ", peak " +
            format_bytes(part->peaks.requested.front()) + " requested\n";
  }
  return text;
}

std::string more(std::size_t rows, int top) {
  const auto shown = static_cast<std::size_t>(top);
  return rows > shown ? "  ... and " + std::to_string(rows - shown) + " more (--top)\n" : "";
}

// The host runs ahead of a GPU: when it launches an op and how long the op takes are two things.
std::string phases_text(const InspectReport& report, bool on_gpu) {
  TextTable table;
  table.column("phase");
  table.column("ops", Align::right);
  table.column(on_gpu ? "launched in" : "time", Align::right);
  if (on_gpu) table.column("GPU time", Align::right);
  table.column("peak requested", Align::right);
  for (const PhaseRow& row : report.phases) {
    std::string name = stowage::name_of(row.kind);
    if (row.micro_batch > 0) name += " @mb=" + std::to_string(row.micro_batch);
    std::vector<std::string> cells = {name, with_commas(row.ops), format_time(row.duration)};
    if (on_gpu) cells.push_back(format_time(row.gpu));
    cells.push_back(format_bytes(row.peak));
    table.row(std::move(cells));
  }
  return table.text(2) +
         (on_gpu
              ? "  The curve and the moments are in the time in which the host launched the ops, "
                "ahead of the GPU;\n  layers and ops below have the GPU's time.\n"
              : "");
}

std::string groups_text(const std::vector<GroupRow>& groups, const std::string& title, int top,
                        Bytes all) {
  TextTable table;
  table.column("bytes", Align::right);
  table.column("share", Align::right);
  table.column("storages", Align::right);
  table.column(title);
  for (std::size_t i = 0; i < groups.size() && i < static_cast<std::size_t>(top); ++i) {
    table.row({format_bytes(groups[i].bytes), percent(groups[i].bytes, all),
               with_commas(groups[i].storages), groups[i].name});
  }
  return table.text(2) + more(groups.size(), top);
}

std::string alive_text(const std::vector<AliveRow>& alive, int top) {
  TextTable table;
  table.column("bytes", Align::right);
  table.column("class");
  table.column("layer");
  table.column("site");
  table.column("made by");
  table.column("use");
  table.column("could leave");
  for (std::size_t i = 0; i < alive.size() && i < static_cast<std::size_t>(top); ++i) {
    const AliveRow& row = alive[i];
    table.row({format_bytes(row.bytes), stowage::name_of(row.storage_class), row.layer,
               row.site.empty() ? "-" : row.site,
               row.made_by.empty() ? "(before the step)" : row.made_by, name_of(row.use),
               row.could_leave ? "yes" : "no"});
  }
  return table.text(2) + more(alive.size(), top);
}

std::string layers_text(const std::vector<LayerRow>& layers, int top) {
  TextTable table;
  table.column("layer");
  table.column("ops", Align::right);
  table.column("forward", Align::right);
  table.column("backward", Align::right);
  table.column("parameters", Align::right);
  table.column("saved", Align::right);
  for (std::size_t i = 0; i < layers.size() && i < static_cast<std::size_t>(top); ++i) {
    const LayerRow& row = layers[i];
    std::string name = row.name;
    if (row.calls > 1) name += " (" + std::to_string(row.calls) + " calls)";
    table.row({name, with_commas(row.ops), format_time(row.forward), format_time(row.backward),
               format_bytes(row.parameter_bytes), format_bytes(row.saved_bytes)});
  }
  return table.text(2) + more(layers.size(), top);
}

std::string ops_text(const std::vector<OpTotals>& ops, bool on_gpu, int top) {
  Nanoseconds all = 0;
  for (const OpTotals& row : ops) all += row.time;
  TextTable table;
  table.column(on_gpu ? "GPU time" : "time", Align::right);
  table.column("share", Align::right);
  table.column("calls", Align::right);
  if (on_gpu) table.column("activities", Align::right);
  table.column("makes", Align::right);
  table.column("op");
  for (std::size_t i = 0; i < ops.size() && i < static_cast<std::size_t>(top); ++i) {
    const OpTotals& row = ops[i];
    std::vector<std::string> cells = {format_time(row.time), percent(row.time, all),
                                      with_commas(row.calls)};
    if (on_gpu) cells.push_back(with_commas(row.activities));
    cells.push_back(format_bytes(row.made));
    cells.push_back(row.name);
    table.row(std::move(cells));
  }
  return table.text(2) + more(ops.size(), top);
}

}  // namespace

std::string inspect_text(const Trace& trace, const InspectReport& report, int top,
                         const std::string& by_name, const TextStyle& style) {
  const Paint& paint = style.paint;
  std::string text = head(trace, report, paint) + "\n";
  PlotOptions plot;
  plot.width = std::min(style.width, 120);
  plot.unicode = style.unicode;
  plot.spans = phase_spans(trace, trace.events.time);
  text += draw(report.curve, plot);

  text += "\n" + paint.bold("Phases") + "\n" + phases_text(report, trace.gpu.size() > 0);

  const Moment& moment = report.moment;
  text += "\n" + paint.bold(moment.is_peak ? "Peak" : "Moment") + ": " +
          exact_bytes(moment.requested) + " requested at " + format_time(moment.time) + ", " +
          place(moment) + "\n";
  if (moment.is_peak) {
    text += "  recorded peak active ";
    text += moment.active < 0 ? "not known" : exact_bytes(moment.active);
    text += ", peak reserved ";
    text += (moment.reserved < 0 ? "none on this device" : exact_bytes(moment.reserved)) + "\n";
  }
  text += "  " + use_headline(report.by_use) + "\n";
  text += "\n" + groups_text(report.classes, "class", top, moment.requested);
  if (by_name != "class") {
    text += "\n" + groups_text(report.groups, by_name, top, moment.requested);
  }
  text += "\n" + alive_text(report.alive, top);

  const MovableBytes& movable = report.movable;
  text += "\n" + paint.bold("What could leave") + "\n  " + format_bytes(movable.bytes) + " in " +
          count_of(movable.storages, "storage") +
          " are saved tensors made in the step: what offload can move.\n  " +
          format_bytes(movable.alive_bytes) + " of them are alive " +
          (moment.is_peak ? "at the peak" : "then") + "; " + exact_bytes(movable.away_bytes) +
          " could be away.\n";
  text += "\n" + paint.bold("Layers") + " (each without the layers inside it)\n" +
          layers_text(report.layers, top);
  text += "\n" + paint.bold("Ops") + " (each with the ops inside it)\n" +
          ops_text(op_totals(trace), trace.gpu.size() > 0, top);
  return text;
}

}  // namespace stowage::report
