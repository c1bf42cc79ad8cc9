#include "report/answers/simulate_json.h"

#include <algorithm>

#include "report/answers/answer_pieces_json.h"
#include "report/answers/data_parallel_text.h"
#include "report/timeline.h"
#include "report/transfers.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::report {
namespace {

Json compute_lane(const Trace& trace, const std::vector<Span>& spans) {
  std::vector<std::int32_t> op;
  std::vector<std::string> name;
  std::vector<std::string> layer;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  for (const Span& span : spans) {
    op.push_back(span.op.value);
    name.push_back(label_of(trace, span));
    layer.push_back(layer_name(trace, span.layer));
    start.push_back(span.begin);
    duration.push_back(span.end - span.begin);
  }
  return {{"n", op.size()}, {"op", op},          {"name", name},
          {"layer", layer}, {"start_ns", start}, {"duration_ns", duration}};
}

Json copy_lane(const Trace& trace, const Simulation& simulation, const std::vector<Span>& spans) {
  Json site = Json::array();
  std::vector<std::int32_t> offload;
  std::vector<Bytes> bytes;
  std::vector<Nanoseconds> ready;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  for (const Span& span : spans) {
    site.push_back(name_of_copy(trace, simulation.schedule, span.stay));
    const bool is_saved = serves_saved(simulation.schedule, span.stay);
    offload.push_back(is_saved ? simulation.schedule.stays[span.stay.index()].tenant.value : -1);
    bytes.push_back(span.bytes);
    ready.push_back(simulation.detail.transfers[static_cast<std::size_t>(span.row)].ready);
    start.push_back(span.begin);
    duration.push_back(span.end - span.begin);
  }
  return {{"n", bytes.size()}, {"offload", offload}, {"site", site},           {"bytes", bytes},
          {"ready_ns", ready}, {"start_ns", start},  {"duration_ns", duration}};
}

Json update_lane(const Trace& trace, const Simulation& simulation, const std::vector<Span>& spans) {
  Json name = Json::array();
  std::vector<Bytes> bytes;
  std::vector<Nanoseconds> ready;
  std::vector<Nanoseconds> start;
  std::vector<Nanoseconds> duration;
  for (const Span& span : spans) {
    name.push_back(label_of(trace, span));
    bytes.push_back(span.bytes);
    ready.push_back(simulation.detail.host_updates[static_cast<std::size_t>(span.row)].ready);
    start.push_back(span.begin);
    duration.push_back(span.end - span.begin);
  }
  return {{"n", bytes.size()}, {"name", name},      {"bytes", bytes},
          {"ready_ns", ready}, {"start_ns", start}, {"duration_ns", duration}};
}

Json remedies_json(const std::vector<Remedy>& remedies) {
  Json rows = Json::array();
  for (const Remedy& remedy : remedies) {
    Json row = {{"kind", name_of(remedy.kind)}, {"text", remedy.text}};
    if (remedy.kind == RemedyKind::start_earlier) {
      row["earlier_ns"] = remedy.earlier;
      row["event"] = remedy.start_at.value;
      row["over_budget_bytes"] = remedy.over;
    } else if (remedy.kind == RemedyKind::faster_link) {
      row["bytes_per_second"] = remedy.bytes_per_second;
    } else if (remedy.kind == RemedyKind::keep || remedy.kind == RemedyKind::update_on_device) {
      row["bytes"] = remedy.bytes;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json stalls_json(const std::vector<StallRow>& stalls) {
  Json rows = Json::array();
  for (const StallRow& row : stalls) {
    rows.push_back({{"site", row.site},
                    {"copy", row.is_update   ? "host"
                             : row.copy_back ? "h2d"
                                             : "d2h"},
                    {"bytes", row.bytes},
                    {"layer", row.layer},
                    {"phase", row.phase},
                    {"event", row.event.value},
                    {"start_ns", row.start},
                    {"duration_ns", row.duration},
                    {"ready_ns", row.ready},
                    {"copy_start_ns", row.copy_start},
                    {"copy_end_ns", row.copy_end},
                    {"earliest_ns", row.earliest},
                    {"copies_ahead", row.copies_ahead},
                    {"why", name_of(row.why)},
                    {"because", row.why_text},
                    {"remedies", remedies_json(row.remedies)}});
  }
  return rows;
}

Json buckets_json(const simulator::DataParallel& ranks) {
  Json rows = Json::array();
  for (std::size_t b = 0; b < ranks.buckets.size(); ++b) {
    rows.push_back({{"bytes", ranks.buckets[b].bytes},
                    {"gradients", ranks.buckets[b].gradients},
                    {"dtype", name_of(ranks.buckets[b].dtype)},
                    {"ready_ns", ranks.ready[b]}});
  }
  return rows;
}

Json data_parallel_json(const simulator::DataParallel& ranks, const simulator::PlanBudget& budget) {
  Json network;
  for (const simulator::NetworkSetting& each : simulator::network_settings()) {
    const std::string name = each.name.substr(each.name.find('.') + 1);
    network[name] = simulator::setting_value(ranks.model, each.name);
  }
  Json steps = Json::array();
  for (const simulator::RankedStep& step : ranks.steps) {
    steps.push_back(
        {{"ranks", step.ranks},
         {"hosts", step.hosts},
         {"step_ns", step.step_ns},
         {"all_reduce_ns", step.all_reduce_ns},
         {"exposed_ns", step.exposed_ns},
         {"efficiency", static_cast<double>(step.efficiency) / static_cast<double>(kPpm)}});
  }
  return {{"assumed", true},
          {"network", std::move(network)},
          {"buckets", buckets_json(ranks)},
          {"bucket_bytes", ranks.bucket_bytes},
          {"backward_end_ns", ranks.backward_end_ns},
          {"peak_requested_bytes", ranks.peak_requested},
          {"peak_active_bytes", ranks.peak_active},
          {"peak_reserved_bytes", bytes_or_null(ranks.peak_reserved)},
          {"budget_kept", keeps_budget(ranks, budget)},
          {"steps", std::move(steps)}};
}

}  // namespace

std::string simulate_json(const Simulation& simulation, const simulator::Plan& plan,
                          const std::string& policy, const simulator::DataParallel* ranks) {
  Json json;
  json["schema"] = "stowage-simulate/1";
  json["feasible"] = simulation.feasible;
  add_step(simulation.index->trace(), json);
  json["policy"] = policy.empty() ? Json(nullptr) : Json(policy);
  json["placement"] = simulator::name_of(plan.placement);
  json["budget"] = plan.budget.device ? Json{{"device_bytes", *plan.budget.device},
                                             {"on", simulator::name_of(plan.budget.on)}}
                                      : Json(nullptr);
  json.update(replay_json(simulation.result, true));
  const auto& tenants = simulation.schedule.tenants;
  json["offloads"] = std::count_if(tenants.begin(), tenants.end(), [](const auto& tenant) {
    return tenant.kind == &simulator::kSavedTensor;
  });
  json["peak_at"] = moment_json(simulation.peak_at);
  json["peak_at"]["recorded_op"] = simulation.peak_at.recorded_op.value;
  json["stalls"] = stalls_json(simulation.stalls);
  add_recomputed(simulation.index->step(), simulation.result, json);
  add_reserved(simulation.reserved, json);
  json["resident"] = replay_json(simulation.resident, true);
  add_reserved(simulation.resident_reserved, json["resident"]);
  json["notes"] = simulation.notes;
  if (ranks != nullptr) json["data_parallel"] = data_parallel_json(*ranks, plan.budget);
  return dump(json);
}

std::string timeline_json(const Trace& trace, const Simulation& simulation,
                          const simulator::Plan& plan) {
  Json json;
  json["schema"] = "stowage-timeline/1";
  json["model"] = trace.run.model;
  json["fingerprint"] = trace.fingerprint;
  json["step_ns"] = simulation.result.step_ns;
  json["budget_bytes"] = plan.budget.device ? Json(*plan.budget.device) : Json(nullptr);
  const Timeline timeline =
      simulated_timeline(trace, simulation.schedule, simulation.result, simulation.detail);
  Json phases = Json::array();
  for (const PhaseSpan& span : timeline.phases) {
    phases.push_back({{"kind", span.name}, {"begin_ns", span.begin}});
  }
  json["phases"] = std::move(phases);
  json["lanes"] = {{"compute", compute_lane(trace, timeline.lane(Lane::compute))},
                   {"d2h", copy_lane(trace, simulation, timeline.lane(Lane::d2h))},
                   {"h2d", copy_lane(trace, simulation, timeline.lane(Lane::h2d))}};
  if (!timeline.lane(Lane::updates).empty()) {
    json["lanes"]["host"] = update_lane(trace, simulation, timeline.lane(Lane::updates));
  }
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

}  // namespace stowage::report
