#include "cli/check_json.h"

#include "cli/json_pieces_json.h"

namespace stowage::cli {
namespace {

Json or_null(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json(nullptr);
}

Json or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json growth_json(const report::Growth& growth) {
  return {{"holding", name_of(growth.row.holding)},
          {"class", stowage::name_of(growth.row.storage_class)},
          {"layer", growth.row.layer},
          {"op", growth.row.op},
          {"sites", growth.row.sites},
          {"storages", growth.row.storages},
          {"storages_before", growth.storages_before},
          {"bytes", growth.row.bytes},
          {"bytes_before", growth.bytes_before}};
}

Json case_json(const CheckCase& each) {
  Json grew = Json::array();
  for (const report::Growth& growth : each.grew) grew.push_back(growth_json(growth));
  return {{"name", each.name},
          {"outcome", name_of(each.outcome)},
          {"message", each.message},
          {"measured", or_null(each.measured)},
          {"baseline", or_null(each.baseline)},
          {"limit", or_null(each.limit)},
          {"can_be_lowered", each.can_be_lowered},
          {"grew", grew},
          {"details", each.details}};
}

}  // namespace

std::string check_json(const CheckReport& report) {
  Json cases = Json::array();
  for (const CheckCase& each : report.cases) cases.push_back(case_json(each));
  const StepIdentity& step = report.step;
  const MadeWith& made = report.made_with;
  return dump(
      {{"schema", "stowage-check/1"},
       {"passed", report.passed()},
       {"model", step.model},
       {"batch", step.batch},
       {"seq", step.seq},
       {"dtype", step.dtype},
       {"autocast", text_or_null(step.autocast)},
       {"optimizer", step.optimizer},
       {"grad_scaler", text_or_null(step.grad_scaler)},
       {"device", made.device},
       {"libtorch", made.libtorch},
       {"stowage", made.stowage},
       {"measured", report.measured ? cost_json(*report.measured) : Json(nullptr)},
       {"cases", cases},
       {"baseline_written", report.baseline_written},
       {"files",
        {{"plan", or_null(report.plan_file)}, {"baseline", or_null(report.baseline_file)}}}});
}

}  // namespace stowage::cli
