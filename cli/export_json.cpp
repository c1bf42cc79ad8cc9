#include "cli/export_json.h"

#include "cli/json_pieces_json.h"

namespace stowage::cli {

std::string export_json(const ExportFacts& facts) {
  const report::StepView& step = *facts.step;
  Json spans = Json::object();
  for (std::size_t lane = 0; lane < report::kLanes; ++lane) {
    spans[report::name_of(static_cast<report::Lane>(lane))] = step.timeline.lanes[lane].size();
  }
  Json json;
  json["schema"] = "stowage-export/1";
  json["output"] = facts.output;
  json["format"] = report::name_of(facts.format);
  json["table"] = facts.format == report::ExportFormat::csv ? Json(report::name_of(facts.table))
                                                            : Json(nullptr);
  json["bytes"] = facts.bytes;
  json["step"] = step.title;
  json["is_simulated"] = step.timeline.is_simulated;
  json["step_ns"] = step.timeline.end;
  json["peak_requested_bytes"] = step.peak_requested;
  json["spans"] = std::move(spans);
  return dump(json);
}

}  // namespace stowage::cli
