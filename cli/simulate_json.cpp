#include "cli/simulate_json.h"

#include "cli/json_pieces_json.h"
#include "report/transfers.h"

namespace stowage::cli {
namespace {

Json totals_json(const simulator::ReplayResult& result) {
  return {{"peak_requested_bytes", result.peak_requested},
          {"peak_active_bytes", result.peak_active},
          {"peak_reserved_bytes", bytes_or_null(result.peak_reserved)},
          {"host_bytes", result.host_bytes},
          {"step_ns", result.step_ns},
          {"compute_ns", result.compute_ns},
          {"stall_ns", result.stall_ns},
          {"transfer_bytes", {{"d2h", result.d2h_bytes}, {"h2d", result.h2d_bytes}}}};
}

Json compute_lane(const Trace& trace, const simulator::ReplayDetail& detail) {
  std::vector<std::int32_t> op;
  std::vector<std::string> name;
  std::vector<std::string> layer;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  std::vector<Nanoseconds> begin(trace.ops.size(), 0);
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    const EventKind kind = trace.events.kind[e];
    if (kind != EventKind::op_begin && kind != EventKind::op_end) continue;
    const OpId id(trace.events.ref[e]);
    if (kind == EventKind::op_begin) {
      begin[id.index()] = detail.time[e];
      continue;
    }
    op.push_back(id.value);
    name.push_back(trace.string(trace.ops.name[id.index()]));
    const LayerId where = trace.ops.layer[id.index()];
    layer.push_back(where.valid() ? trace.string(trace.layers.name[where.index()]) : "step");
    start.push_back(begin[id.index()]);
    duration.push_back(detail.time[e] - begin[id.index()]);
  }
  return {{"n", op.size()}, {"op", op},          {"name", name},
          {"layer", layer}, {"start_ns", start}, {"duration_ns", duration}};
}

Json copy_lane(const Trace& trace, const report::Simulation& simulation, bool copy_back) {
  Json site = Json::array();
  std::vector<std::int32_t> offload;
  std::vector<Bytes> bytes;
  std::vector<Nanoseconds> ready;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  for (const simulator::Transfer& transfer : simulation.detail.transfers) {
    const bool is_back = transfer.residency.valid() ? !transfer.is_store : transfer.reload.valid();
    if (is_back != copy_back) continue;
    site.push_back(
        report::name_of_copy(trace, simulation.schedule, transfer.offload, transfer.residency));
    offload.push_back(transfer.offload.value);
    bytes.push_back(
        report::bytes_of_copy(simulation.schedule, transfer.offload, transfer.residency));
    ready.push_back(transfer.ready);
    start.push_back(transfer.start);
    duration.push_back(transfer.end - transfer.start);
  }
  return {{"n", bytes.size()}, {"offload", offload}, {"site", site},           {"bytes", bytes},
          {"ready_ns", ready}, {"start_ns", start},  {"duration_ns", duration}};
}

Json stalls_json(const std::vector<report::StallRow>& stalls) {
  Json rows = Json::array();
  for (const report::StallRow& row : stalls) {
    rows.push_back({{"site", row.site},
                    {"copy", row.copy_back ? "h2d" : "d2h"},
                    {"bytes", row.bytes},
                    {"layer", row.layer},
                    {"phase", row.phase},
                    {"event", row.event.value},
                    {"start_ns", row.start},
                    {"duration_ns", row.duration}});
  }
  return rows;
}

}  // namespace

std::string simulate_json(const report::Simulation& simulation, const simulator::Plan& plan,
                          const std::string& policy) {
  Json json;
  json["schema"] = "stowage-simulate/1";
  json["feasible"] = simulation.feasible;
  json["policy"] = policy.empty() ? Json(nullptr) : Json(policy);
  json["budget"] = plan.budget.device ? Json{{"device_bytes", *plan.budget.device},
                                             {"on", simulator::name_of(plan.budget.on)}}
                                      : Json(nullptr);
  json.update(totals_json(simulation.result));
  json["offloads"] = simulation.schedule.offloads.size();
  json["peak_at"] = moment_json(simulation.peak_at);
  json["stalls"] = stalls_json(simulation.stalls);
  json["resident"] = totals_json(simulation.resident);
  json["notes"] = simulation.notes;
  return dump(json);
}

std::string timeline_json(const Trace& trace, const report::Simulation& simulation,
                          const simulator::Plan& plan) {
  Json json;
  json["schema"] = "stowage-timeline/1";
  json["model"] = trace.run.model;
  json["fingerprint"] = trace.fingerprint;
  json["step_ns"] = simulation.result.step_ns;
  json["budget_bytes"] = plan.budget.device ? Json(*plan.budget.device) : Json(nullptr);
  Json phases = Json::array();
  for (const report::PhaseSpan& span : report::phase_spans(trace, simulation.detail.time)) {
    phases.push_back({{"kind", span.name}, {"begin_ns", span.begin}});
  }
  json["phases"] = std::move(phases);
  json["lanes"] = {{"compute", compute_lane(trace, simulation.detail)},
                   {"d2h", copy_lane(trace, simulation, false)},
                   {"h2d", copy_lane(trace, simulation, true)}};
  json["stalls"] = stalls_json(simulation.stalls);
  json["memory"] = {{"n", simulation.detail.time.size()},
                    {"time_ns", simulation.detail.time},
                    {"requested_bytes", simulation.detail.requested}};
  if (!simulation.detail.active.empty()) {
    json["memory"]["active_bytes"] = simulation.detail.active;
    json["memory"]["reserved_bytes"] = simulation.detail.reserved;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace stowage::cli
