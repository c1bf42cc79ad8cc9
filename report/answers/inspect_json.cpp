#include "report/answers/inspect_json.h"

#include "report/answers/answer_pieces_json.h"
#include "report/op_totals.h"
#include "simulator/step/unroll.h"

namespace stowage::report {
namespace {

Json groups_json(const std::vector<GroupRow>& groups) {
  Json rows = Json::array();
  for (const GroupRow& row : groups) {
    rows.push_back({{"name", row.name}, {"storages", row.storages}, {"bytes", row.bytes}});
  }
  return rows;
}

// "head in 4 parts"; null: all at once.
Json parts_json(const Trace& trace) {
  const std::string parts = simulator::parts_text(simulator::recorded_parts(trace));
  return parts.empty() ? Json(nullptr) : Json(parts);
}

Json divided_json(const Trace& trace) {
  Json rows = Json::array();
  for (const std::shared_ptr<const Trace>& part : trace.divided) {
    rows.push_back({{"micro_batches", parts_json(*part)},
                    {"step_ns", part->overhead.clean.step_ns},
                    {"peak_requested_bytes", part->peaks.requested.front()}});
  }
  return rows;
}

Json run_json(const Trace& trace, const InspectReport& report) {
  return {{"model", trace.run.model},
          {"batch", trace.run.batch},
          {"seq", trace.run.seq},
          {"dtype", trace.run.dtype},
          {"autocast", text_or_null(trace.run.autocast)},
          {"optimizer", trace.run.optimizer},
          {"grad_scaler", text_or_null(trace.run.grad_scaler)},
          {"micro_batches", parts_json(trace)},
          {"divided", divided_json(trace)},
          {"source", trace.run.source},
          {"created", trace.run.created},
          {"device", trace.env.device},
          {"device_name", trace.env.device_name},
          {"fingerprint", trace.fingerprint},
          {"step_ns", report.step},
          {"ops", report.outermost_ops},
          {"saved_tensors", trace.saved.size()},
          {"storages", trace.storages.size()}};
}

Json phases_json(const InspectReport& report, bool on_gpu) {
  Json rows = Json::array();
  for (const PhaseRow& row : report.phases) {
    rows.push_back({{"kind", stowage::name_of(row.kind)},
                    {"micro_batch", row.micro_batch},
                    {"ops", row.ops},
                    {"begin_ns", row.begin},
                    {"duration_ns", row.duration},
                    {"gpu_ns", on_gpu ? Json(row.gpu) : Json(nullptr)},
                    {"peak_requested_bytes", row.peak}});
  }
  return rows;
}

Json layers_json(const InspectReport& report) {
  Json rows = Json::array();
  for (const LayerRow& row : report.layers) {
    rows.push_back({{"name", row.name},
                    {"calls", row.calls},
                    {"ops", row.ops},
                    {"forward_ns", row.forward},
                    {"backward_ns", row.backward},
                    {"parameter_bytes", row.parameter_bytes},
                    {"saved_bytes", row.saved_bytes},
                    {"bytes_at_peak", row.bytes_at}});
  }
  return rows;
}

Json storages_json(const InspectReport& report, int top) {
  Json rows = Json::array();
  for (const AliveRow& row : report.alive) {
    if (rows.size() >= static_cast<std::size_t>(top)) break;
    rows.push_back({{"storage", row.storage.value},
                    {"bytes", row.bytes},
                    {"class", stowage::name_of(row.storage_class)},
                    {"layer", row.layer},
                    {"site", row.site.empty() ? Json(nullptr) : Json(row.site)},
                    {"made_by", row.made_by.empty() ? Json(nullptr) : Json(row.made_by)},
                    {"use", name_of(row.use)},
                    {"could_leave", row.could_leave}});
  }
  return rows;
}

Json ops_json(const Trace& trace) {
  const bool on_gpu = trace.gpu.size() > 0;
  Json rows = Json::array();
  for (const OpTotals& row : op_totals(trace)) {
    rows.push_back({{"op", row.name},
                    {"calls", row.calls},
                    {"activities", on_gpu ? Json(row.activities) : Json()},
                    {"time_ns", row.time},
                    {"made_bytes", row.made}});
  }
  return rows;
}

}  // namespace

std::string inspect_json(const Trace& trace, const InspectReport& report, int top,
                         const std::string& by_name) {
  Json json;
  json["schema"] = "stowage-inspect/1";
  json["run"] = run_json(trace, report);
  json["phases"] = phases_json(report, trace.gpu.size() > 0);
  json["layers"] = layers_json(report);
  Json at = moment_json(report.moment);
  at["is_peak"] = report.moment.is_peak;
  at["requested_bytes"] = report.moment.requested;
  at["active_bytes"] = bytes_or_null(report.moment.active);
  at["reserved_bytes"] = bytes_or_null(report.moment.reserved);
  at["by_use"] = by_use_json(report.by_use);
  at["by_class"] = groups_json(report.classes);
  if (by_name != "class") at["by_" + by_name] = groups_json(report.groups);
  at["storages"] = storages_json(report, top);
  json["peak"] = std::move(at);
  json["saved"] = {{"storages", report.movable.storages},
                   {"bytes", report.movable.bytes},
                   {"alive_bytes", report.movable.alive_bytes},
                   {"could_leave_bytes", report.movable.away_bytes}};
  json["ops"] = ops_json(trace);
  return dump(json);
}

}  // namespace stowage::report
