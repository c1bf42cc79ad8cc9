#include "gui/model/run_result_json.h"

#include "report/answer_reader_json.h"

namespace stowage::gui {
namespace {

using report::AnswerReader;

void read(AnswerReader& reader, const std::string& pointer, MeasuredFigures& figures) {
  reader.read(pointer + "/peak_requested_bytes", figures.peak_requested);
  reader.read(pointer + "/peak_active_bytes", figures.peak_active);
  reader.read(pointer + "/peak_reserved_bytes", figures.peak_reserved);
  reader.read(pointer + "/host_bytes", figures.host);
  reader.read(pointer + "/step_ns", figures.step);
  reader.read(pointer + "/stall_ns", figures.stall);
}

}  // namespace

Result<RunResult> run_result_from_json(std::string_view text, const std::string& file) {
  Result<AnswerReader> parsed = AnswerReader::parse(text, file);
  if (!parsed) return parsed.error();
  AnswerReader& reader = *parsed;
  RunResult run;
  run.file = file;
  reader.read("/schema", run.schema);
  if (run.schema != "stowage-execute/1" && run.schema != "stowage-verify/1") {
    return Error{ErrorCode::bad_input, "the schema is '" + run.schema + "'", file, "/schema",
                 "this reads what stowage execute --json and stowage verify --json print"};
  }
  read(reader, "/measured", run.measured);
  read(reader, "/predicted", run.predicted);
  reader.read("/bitwise", run.bitwise);
  reader.read("/measured/on_plan", run.on_plan);
  reader.read("/measured/first_difference", run.first_difference);
  reader.read("/files/plan", run.plan_file);
  reader.read("/files/trace", run.trace_file);
  // Of one with everything offloaded the figures are not those of the step without a plan.
  std::string kind;
  reader.read("/reference/kind", kind);
  if (reader.json().contains("reference") && kind != "offload_all") {
    read(reader, "/reference", run.reference.emplace());
  }
  const bool has_steps = run.schema == "stowage-execute/1";
  for (std::size_t i = 0, n = has_steps ? reader.size_of("/steps") : 0; i < n; ++i) {
    read(reader, "/steps/" + std::to_string(i), run.steps.emplace_back());
  }
  for (std::size_t i = 0, n = reader.size_of("/measured/warnings"); i < n; ++i) {
    reader.read("/measured/warnings/" + std::to_string(i), run.warnings.emplace_back());
  }
  if (!run.measured.peak_requested) reader.fail("/measured/peak_requested_bytes", "is missing");
  if (reader.error()) return *reader.error();
  return run;
}

}  // namespace stowage::gui
