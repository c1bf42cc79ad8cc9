#include "report/answers/answer_pieces_json.h"

#include "report/recomputed_segments.h"
#include "report/words.h"

namespace stowage::report {

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json bytes_or_null(Bytes bytes) {
  return bytes < 0 ? Json(nullptr) : Json(bytes);
}

Json moment_json(const Moment& moment) {
  Json json;
  json["event"] = moment.event.value;
  json["time_ns"] = moment.time;
  json["op"] = moment.op.value;
  json["op_name"] = moment.op_name;
  json["layer"] = moment.layer;
  json["phase"] = moment.phase ? Json(stowage::name_of(*moment.phase)) : Json(nullptr);
  return json;
}

Json by_use_json(const BytesByUse& by_use) {
  return {{"dead_bytes", by_use.of(ByteUse::dead)},
          {"saved_bytes", by_use.of(ByteUse::saved)},
          {"idle_bytes", by_use.of(ByteUse::idle)},
          {"needed_bytes", by_use.of(ByteUse::needed)}};
}

void add_step(const Trace& trace, Json& json) {
  const Run& run = trace.run;
  json["model"] = run.model;
  json["batch"] = run.batch;
  json["seq"] = run.seq > 0 ? Json(run.seq) : Json(nullptr);
  json["dtype"] = run.dtype;
  json["autocast"] = text_or_null(run.autocast);
  json["optimizer"] = run.optimizer;
  json["grad_scaler"] = text_or_null(run.grad_scaler);
  json["device"] = trace.env.device;
  json["quick"] = is_quick(trace);
}

Json replay_json(const simulator::ReplayResult& result, bool compute) {
  Json json = {{"peak_requested_bytes", result.peak_requested},
               {"peak_active_bytes", result.peak_active},
               {"peak_reserved_bytes", bytes_or_null(result.peak_reserved)},
               {"host_bytes", result.host_bytes},
               {"step_ns", result.step_ns}};
  if (compute) json["compute_ns"] = result.compute_ns;
  json["stall_ns"] = result.stall_ns;
  json["transfer_bytes"] = {{"d2h", result.d2h_bytes}, {"h2d", result.h2d_bytes}};
  return json;
}

void add_recomputed(const simulator::Step& step, const simulator::ReplayResult& result,
                    Json& json) {
  const auto segments = recomputed_segments(step, result.peak_event);
  const auto by = [](bool by_ops) { return by_ops ? "ops" : "layers"; };
  json["recomputed"] = Json::array();
  for (const RecomputedSegment& segment : segments) {
    json["recomputed"].push_back({{"segment", segment.name},
                                  {"by", by(segment.by_ops)},
                                  {"freed_bytes", segment.freed},
                                  {"time_ns", segment.time}});
  }
  json["recomputed_layers"] = Json::array();
  for (const RecomputedLayer& layer : recomputed_layers(segments)) {
    json["recomputed_layers"].push_back({{"layer", layer.layer},
                                         {"by", by(layer.by_ops)},
                                         {"freed_at_peak_bytes", layer.freed_at_peak},
                                         {"freed_bytes", layer.freed},
                                         {"time_ns", layer.time}});
  }
}

void add_reserved(const std::optional<Reserved>& reserved, Json& json) {
  json["planned_memory"] = nullptr;
  json["caching_allocator"] = nullptr;
  if (!reserved) return;
  json["planned_memory"] = {{"bytes", reserved->planned.bytes},
                            {"lower_bound_bytes", reserved->planned.lower_bound}};
  json["caching_allocator"] = {{"reserved_bytes", reserved->caching}};
}

}  // namespace stowage::report
