#include "report/answers/answer_pieces_json.h"
#include "report/answers/error_json.h"
#include "report/answers/plan_answer.h"
#include "simulator/machine/step_interval.h"
#include "simulator/plan/plan_json.h"

namespace stowage::report {
namespace {

Json floor_json(const planner::MemoryFloor& floor) {
  Json storages = Json::array();
  for (const planner::FloorStorage& row : floor.storages) {
    storages.push_back({{"storage", row.storage.value},
                        {"bytes", row.bytes},
                        {"class", stowage::name_of(row.storage_class)},
                        {"layer", row.layer},
                        {"made_by", row.made_by.empty() ? Json(nullptr) : Json(row.made_by)},
                        {"reloaded", row.reloaded}});
  }
  return {{"bytes", floor.bytes},           {"reached", floor.reached},
          {"event", floor.event.value},     {"op", floor.op.value},
          {"op_name", floor.op_name},       {"layer", floor.layer},
          {"storages", std::move(storages)}};
}

}  // namespace

std::string plan_answer_json(const simulator::StepIndex& index, const PlanAnswer& answer) {
  const planner::PlanOutcome& outcome = answer.outcome;
  Json json;
  json["schema"] = "stowage-plan-answer/1";
  json["feasible"] = outcome.feasible();
  json["outcome"] = planner::name_of(outcome.kind);
  add_step(index.trace(), json);
  json["written_to"] = answer.written_to.empty() ? Json(nullptr) : Json(answer.written_to);
  json["given_at"] = answer.given_at.empty() ? Json(nullptr) : Json(answer.given_at);
  json["settings"] = answer.settings;
  json["over_host_budget"] =
      outcome.plan.budget.host && outcome.predicted.host_bytes > *outcome.plan.budget.host;
  json["budget"] = {
      {"device_bytes",
       outcome.plan.budget.device ? Json(*outcome.plan.budget.device) : Json(nullptr)},
      {"on", simulator::name_of(answer.budget_on)},
      {"host_bytes", outcome.plan.budget.host ? Json(*outcome.plan.budget.host) : Json(nullptr)}};
  const Bytes context = index.trace().env.context_bytes;
  json["fit"] = answer.fit ? Json{{"device_bytes", *answer.fit},
                                  {"context_bytes", context},
                                  {"needed_bytes", outcome.predicted.peak_reserved + context}}
                           : Json(nullptr);
  json["placement"] = simulator::name_of(outcome.plan.placement);
  json["predicted"] = replay_json(outcome.predicted, false);
  const Nanoseconds interval =
      simulator::step_interval(index.step().recording(), outcome.predicted.step_ns);
  json["predicted"]["step_interval_ns"] = interval > 0 ? Json(interval) : Json(nullptr);
  json["resident"] = replay_json(outcome.resident, false);
  const auto& simulation = answer.simulation;
  add_reserved(simulation ? simulation->reserved : std::optional<Reserved>(), json["predicted"]);
  add_reserved(simulation ? simulation->resident_reserved : std::optional<Reserved>(),
               json["resident"]);
  json["peak_by_use"] = by_use_json(answer.peak_use);
  json["lower_bound"] = {{"step_ns", outcome.lower_bound_step}};
  json["gap"] = static_cast<double>(outcome.gap_ppm) / static_cast<double>(kPpm);
  json["floor"] = floor_json(outcome.floor);
  json["kept_from_bytes"] = outcome.kept_from > 0 ? Json(outcome.kept_from) : Json(nullptr);
  json["pinned"] = outcome.pinned;
  json["search"] = {
      {"evaluations", outcome.search.evaluations}, {"candidates", outcome.search.candidates},
      {"grid_points", outcome.search.grid_points}, {"structures", outcome.search.structures},
      {"stopped", outcome.search.stopped},         {"exhausted", outcome.search.exhausted}};
  add_recomputed(index.step(), outcome.predicted, json);
  json["notes"] = outcome.notes;
  // The plan file itself, as an object; parsed back so that there is one writer of plans.
  json["plan"] = Json::parse(simulator::plan_to_json(outcome.plan), nullptr, false);
  if (!outcome.feasible()) json["error"] = error_member(why_infeasible(answer));
  return dump(json);
}

}  // namespace stowage::report
