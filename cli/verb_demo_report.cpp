// The demo's one table: what the plan did, in words that need no manual.
#include <algorithm>

#include "cli/plan_file.h"
#include "cli/verbs.h"
#include "cli/verify_json.h"
#include "planner/budget.h"
#include "report/answers/terminal_plot.h"
#include "report/answers/text_table.h"
#include "report/memory_curve.h"
#include "report/simulation.h"
#include "report/words.h"
#include "simulator/plan/target_check.h"
#include "traces/file_io.h"
#include "traces/size_text.h"
#include "traces/trace_file.h"

namespace stowage::cli {
namespace {

std::string bytes_or_dash(const std::optional<Bytes>& bytes) {
  return bytes ? format_bytes(*bytes) : "-";
}

std::string time_or_dash(const std::optional<Nanoseconds>& time) {
  return time ? format_time(*time) : "-";
}

std::string byte_difference(const std::optional<Bytes>& predicted,
                            const std::optional<Bytes>& measured) {
  if (!predicted || !measured) return "-";
  const Bytes difference = *measured - *predicted;
  return (difference > 0 ? "+" : "") + report::with_commas(difference) + " bytes";
}

std::string time_difference(const std::optional<Nanoseconds>& predicted,
                            const std::optional<Nanoseconds>& measured) {
  return predicted && measured ? report::relative(*measured, *predicted) : "-";
}

std::string curves(const Trace& trace, const report::Simulation& with, const simulator::Plan& plan,
                   const Paint& paint) {
  report::PlotOptions plot;
  plot.width = std::min(terminal().width, 100);
  plot.unicode = terminal().unicode;
  plot.scale = with.resident.peak_requested;
  plot.budget = plan.budget.device;
  plot.spans = report::phase_spans(trace, trace.events.time);
  std::string text =
      paint.bold("Memory of one step, as recorded") + "\n" +
      report::draw({trace.events.time, report::requested_after(trace), trace.events.time.back()},
                   plot);
  plot.spans = report::phase_spans(trace, with.detail.time);
  text += "\n" + paint.bold("The same step under the plan") + "\n" +
          report::draw(report::curve_of(with.detail, with.result.step_ns), plot);
  return text;
}

std::string table_text(const report::Simulation& with, const VerifyFacts& verify) {
  report::TextTable table;
  table.column("");
  for (const char* title : {"without plan", "predicted", "measured", "difference"}) {
    table.column(title, report::Align::right);
  }
  const std::optional<Bytes> resident_peak =
      verify.reference_peak ? verify.reference_peak : std::optional(with.resident.peak_requested);
  table.row({"peak requested", bytes_or_dash(resident_peak), bytes_or_dash(verify.predicted_peak),
             bytes_or_dash(verify.measured_peak),
             byte_difference(verify.predicted_peak, verify.measured_peak)});
  table.row({"host memory", format_bytes(0), bytes_or_dash(verify.predicted_host),
             bytes_or_dash(verify.measured_host),
             byte_difference(verify.predicted_host, verify.measured_host)});
  table.row({"step time", time_or_dash(verify.reference_step), time_or_dash(verify.predicted_step),
             time_or_dash(verify.measured_step),
             time_difference(verify.predicted_step, verify.measured_step)});
  table.row({"stall", format_time(0), time_or_dash(verify.predicted_stall),
             time_or_dash(verify.measured_stall), ""});
  return table.text(2);
}

std::string equality(const VerifyFacts& verify, const Paint& paint) {
  if (verify.bitwise) {
    return paint.green("equal, bit for bit") + ", in " + report::count_of(verify.steps, "step");
  }
  std::string text =
      paint.red("not equal") + ", largest difference " + std::to_string(verify.max_abs_diff);
  if (verify.repeatable == false) text += "; the model does not repeat itself either";
  return text;
}

}  // namespace

int verb_demo_report(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("demo-report", "Prints one table of a trace, its plan and what verify measured");
  std::optional<std::string> trace_file;
  std::optional<std::string> plan_file;
  std::optional<std::string> verify_file;
  line.input("--trace", "T", trace_file, "the trace", true);
  line.input("--plan", "P", plan_file, "the plan", true);
  line.input("--verify", "V", verify_file, "what stowage verify --json printed", true);
  line.example("stowage demo-report --trace t.json.gz --plan p.json --verify v.json");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (console.json) return not_supported_yet("--json of demo-report");
    const Result<LoadedTrace> loaded = load_trace(*trace_file);
    if (!loaded) return loaded.error();
    const Trace& trace = loaded->trace;
    Result<simulator::Plan> plan = load_plan(*plan_file);
    if (!plan) return plan.error();
    if (const Status fits = simulator::check_target(*plan, *plan_file, trace); !fits)
      return fits.error();
    const Result<std::string> text = read_file(*verify_file);
    if (!text) return text.error();
    const Result<VerifyFacts> verify = read_verify(*text, *verify_file);
    if (!verify) return verify.error();
    const simulator::StepIndex index(trace);
    const Status budget = resolve_plans_budget(trace, loaded->sha256, *plan_file, *plan);
    if (!budget) return budget.error();
    const Result<report::Simulation> with = report::simulate(index, *plan, *plan_file);
    if (!with) return with.error();

    const Paint& paint = console.paint;
    const std::string head = "\n" + paint.bold(report::run_line(trace)) + ", on " +
                             trace.env.device + "\n\n" + curves(trace, *with, *plan, paint) + "\n" +
                             table_text(*with, *verify) + "\n";
    const Bytes before = verify->reference_peak.value_or(with->resident.peak_requested);
    report::TextTable words;
    words.column("");
    words.column("");
    if (verify->measured_peak) {
      words.row({"memory",
                 report::percent(*verify->measured_peak, before) + " of the step without a plan" +
                     (plan->budget.device ? ", budget " + format_bytes(*plan->budget.device)
                                          : std::string())});
    }
    words.row({"loss and gradients", equality(*verify, paint)});
    words.row({"verified", verify->passed ? paint.green("yes") : paint.red("no")});
    words.row({"trace", *trace_file});
    words.row({"plan", *plan_file});
    words.row({"measurement", *verify_file});
    console.say(head + words.text(2));
    return 0;
  });
}

}  // namespace stowage::cli
