#include "cli/verify_json.h"

#include "report/answer_reader_json.h"

namespace stowage::cli {

Result<VerifyFacts> read_verify(const std::string& text, const std::string& file) {
  Result<report::AnswerReader> parsed = report::AnswerReader::parse(text, file);
  if (!parsed) return parsed.error();
  report::AnswerReader& reader = *parsed;
  VerifyFacts facts;
  std::string schema;
  reader.require("/schema", schema);
  if (!reader.error() && schema != "stowage-verify/1") {
    return Error{ErrorCode::bad_input, "the schema is '" + schema + "'", file, "/schema",
                 "this reads stowage-verify/1, as stowage verify --json prints it"};
  }
  std::optional<double> difference;
  std::optional<std::int64_t> steps;
  std::optional<std::string> kind;
  reader.require("/passed", facts.passed);
  reader.require("/bitwise", facts.bitwise);
  reader.read("/max_abs_diff", difference);
  reader.read("/steps", steps);
  reader.read("/reference/kind", kind);
  reader.read("/reference/repeatable", facts.repeatable);
  reader.read("/reference/peak_requested_bytes", facts.reference_peak);
  reader.read("/reference/step_ns", facts.reference_step);
  reader.read("/planned/peak_requested_bytes", facts.measured_peak);
  reader.read("/planned/peak_active_bytes", facts.measured_active);
  reader.read("/planned/peak_reserved_bytes", facts.measured_reserved);
  reader.read("/planned/step_ns", facts.measured_step);
  reader.read("/planned/stall_ns", facts.measured_stall);
  reader.read("/planned/host_bytes", facts.measured_host);
  reader.read("/predicted/peak_requested_bytes", facts.predicted_peak);
  reader.read("/predicted/step_ns", facts.predicted_step);
  reader.read("/predicted/stall_ns", facts.predicted_stall);
  reader.read("/predicted/host_bytes", facts.predicted_host);
  std::optional<std::string> micro_batches;
  reader.read("/micro_batches", micro_batches);
  if (reader.error()) return *reader.error();
  // That reference is divided as well, or has everything offloaded; the step without the plan is
  // the recorded one.
  if (micro_batches || kind == "offload_all") {
    facts.reference_peak.reset();
    facts.reference_step.reset();
  }
  facts.max_abs_diff = difference.value_or(0);
  facts.steps = steps.value_or(0);
  facts.reference_kind = kind.value_or("");
  return facts;
}

}  // namespace stowage::cli
