#include "cli/torch/results_json.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "cli/json_pieces_json.h"
#include "cli/torch/gpu_totals.h"
#include "cli/torch/reference_steps.h"
#include "simulator/machine/step_interval.h"
#include "simulator/step/unroll.h"
#include "traces/columns.h"

namespace stowage::cli {

namespace {

Error not_ours(const std::string& what) {
  return {ErrorCode::internal, "a child process reported results that cannot be read: " + what, "",
          "", ""};
}

// A section of a trace by its fields, curves of the link inside.
template <Section T>
Json section_json(const T& section) {
  Json json;
  visit_fields(section, [&json](const char* key, const auto& value, Rule) {
    if constexpr (Section<std::remove_cvref_t<decltype(value)>>) {
      json[key] = section_json(value);
    } else {
      json[key] = value;
    }
  });
  return json;
}

template <Section T>
void read_section(const Json& json, T& section) {
  visit_fields(section, [&json](const char* key, auto& value, Rule) {
    if constexpr (Section<std::remove_cvref_t<decltype(value)>>) {
      read_section(json.at(key), value);
    } else {
      json.at(key).get_to(value);
    }
  });
}

// Numbers that JSON does not have become null.
Json number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json step_json(const MeasuredStep& step) {
  return {{"peak_requested_bytes", step.peak_requested},
          {"peak_active_bytes", step.peak_active},
          {"peak_reserved_bytes", bytes_or_null(step.peak_reserved)},
          {"step_ns", step.step_ns},
          {"stall_ns", bytes_or_null(step.stall_ns)},
          {"unplanned_stored_bytes", step.unplanned_stored_bytes},
          {"host_update_ns", step.host_update_ns},
          {"loss", number(step.loss)}};
}

Json memory_json(const std::optional<executor::StepMemoryReport>& memory) {
  if (!memory) return nullptr;
  return {{"bytes", memory->bytes},
          {"mapped_bytes", memory->mapped},
          {"older_bytes", memory->older},
          {"setup_ns", memory->setup},
          {"served", memory->served},
          {"conflicts", memory->conflicts},
          {"unforeseen", memory->unforeseen},
          {"surprises", memory->surprises},
          {"lent", memory->lent}};
}

std::optional<executor::StepMemoryReport> memory_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  executor::StepMemoryReport memory;
  json.at("bytes").get_to(memory.bytes);
  json.at("mapped_bytes").get_to(memory.mapped);
  json.at("older_bytes").get_to(memory.older);
  json.at("setup_ns").get_to(memory.setup);
  json.at("served").get_to(memory.served);
  json.at("conflicts").get_to(memory.conflicts);
  json.at("unforeseen").get_to(memory.unforeseen);
  json.at("surprises").get_to(memory.surprises);
  json.at("lent").get_to(memory.lent);
  return memory;
}

Json too_large_json(const std::optional<TooLarge>& too_large) {
  if (!too_large) return nullptr;
  return {{"resident_bytes", too_large->resident}, {"limit_bytes", too_large->limit}};
}

std::optional<TooLarge> too_large_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return TooLarge{json.at("resident_bytes").get<Bytes>(), json.at("limit_bytes").get<Bytes>()};
}

Json run_json(const MeasuredRun& run) {
  Json losses = Json::array();
  for (const MeasuredStep& step : run.steps) losses.push_back(number(step.loss));
  Json json = {
      {"peak_requested_bytes", run.peak_requested},
      {"peak_active_bytes", run.peak_active},
      {"peak_reserved_bytes", bytes_or_null(run.peak_reserved)},
      {"peaks_constant", run.peaks_constant},
      {"active_constant", run.active_constant},
      {"reserved_constant", run.reserved_constant},
      {"step_ns", run.step_ns},
      {"step_spread", run.spread},
      {"stall_ns", run.stall_ns},
      {"host_update_ns", run.host_update_ns},
      {"host_bytes", run.host_bytes},
      {"used_bytes", bytes_or_null(run.used_bytes)},
      {"driver_allocations_after_first_step",
       bytes_or_null(run.driver_allocations_after_first_step)},
      {"pinned_after_first_step", bytes_or_null(run.pinned_after_first_step)},
      {"warnings", run.warnings},
      {"other_allocator", run.other_allocator.empty() ? Json(nullptr) : Json(run.other_allocator)},
      {"look_ahead", run.look_ahead},
      {"losses", losses},
      {"on_plan", run.on_plan},
      {"first_difference", run.first_difference},
      {"off_plan_packs", run.off_plan_packs},
      {"loaded_bytes", run.loaded_bytes},
      {"stored_bytes", run.stored_bytes},
      {"unplanned_stored_bytes", run.unplanned_stored_bytes},
      {"planned_memory", memory_json(run.memory)}};
  if (run.collectives >= 0) json.update({{"ranks", run.ranks}, {"collectives", run.collectives}});
  return json;
}

// Of the runs without the plan.
Json reference_json(const Verification& v) {
  Json reference = run_json(v.reference);
  const std::optional<TooLarge>& too_large = v.reference.too_large;
  reference["kind"] = too_large ? "offload_all" : "resident";
  reference["too_large"] = too_large_json(too_large);
  if (!has_times(v.reference)) {
    reference["step_ns"] = nullptr;
    reference["stall_ns"] = nullptr;
  }
  reference["repeatable"] = v.repeatability.bitwise;
  reference["file"] = v.reference_file.empty() ? Json(nullptr) : Json(v.reference_file);
  reference["reused"] = v.reference_reused;
  reference["repeat_max_abs_diff"] = number(v.repeatability.max_abs_diff);
  return reference;
}

Json predicted_json(const simulator::Predicted& predicted) {
  return {{"peak_requested_bytes", predicted.peak_requested},
          {"peak_active_bytes", predicted.peak_active},
          {"peak_reserved_bytes", bytes_or_null(predicted.peak_reserved)},
          {"step_ns", predicted.step},
          {"stall_ns", predicted.stall},
          {"host_bytes", predicted.host}};
}

// As in `simulate --json`.
Json caching_allocator_json(Bytes reserved) {
  return reserved < 0 ? Json(nullptr) : Json{{"reserved_bytes", reserved}};
}

Json error_figures(const MeasuredRun& run, const simulator::Predicted& predicted,
                   Nanoseconds interval) {
  const bool is_within = std::abs(run.step_ns - predicted.step) <= interval;
  const double ratio = predicted.step > 0
                           ? static_cast<double>(run.step_ns) / static_cast<double>(predicted.step)
                           : NAN;
  return {{"peak_requested_bytes", run.peak_requested - predicted.peak_requested},
          {"peak_active_bytes", run.peak_active - predicted.peak_active},
          {"peak_reserved_bytes", run.peak_reserved < 0 || predicted.peak_reserved < 0
                                      ? Json(nullptr)
                                      : Json(run.peak_reserved - predicted.peak_reserved)},
          {"host_bytes", run.host_bytes - predicted.host},
          {"step_ratio", number(ratio)},
          {"step_interval_ns", interval > 0 ? Json(interval) : Json(nullptr)},
          {"step_within_interval", interval > 0 ? Json(is_within) : Json(nullptr)}};
}

}  // namespace

std::string clean_results_to_json(const profiler::CleanResults& results) {
  return dump({{"on_gpu", results.on_gpu},
               {"out_of_memory", results.clean.out_of_memory},
               {"step_ns", results.clean.step_ns},
               {"spread", results.clean.spread},
               {"peak_requested", results.clean.peak_requested},
               {"peak_active", results.clean.peak_active},
               {"peak_reserved", results.clean.peak_reserved},
               {"calibration", section_json(results.calibration)}});
}

Result<profiler::CleanResults> clean_results_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    profiler::CleanResults results;
    json.at("on_gpu").get_to(results.on_gpu);
    json.at("out_of_memory").get_to(results.clean.out_of_memory);
    json.at("step_ns").get_to(results.clean.step_ns);
    json.at("spread").get_to(results.clean.spread);
    json.at("peak_requested").get_to(results.clean.peak_requested);
    json.at("peak_active").get_to(results.clean.peak_active);
    json.at("peak_reserved").get_to(results.clean.peak_reserved);
    read_section(json.at("calibration"), results.calibration);
    return results;
  } catch (const nlohmann::json::exception& error) {
    return not_ours(error.what());
  }
}

std::string measured_run_to_json(const MeasuredRun& run) {
  Json json = run_json(run);
  json["facts"] = run.facts;
  json["too_large"] = too_large_json(run.too_large);
  json["steps"] = Json::array();
  for (const MeasuredStep& step : run.steps) json["steps"].push_back(step_json(step));
  return dump(json);
}

Result<MeasuredRun> measured_run_from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    const auto or_minus_one = [](const Json& value) {
      return value.is_null() ? Bytes{-1} : value.get<Bytes>();
    };
    MeasuredRun run;
    for (const Json& each : json.at("steps")) {
      MeasuredStep step;
      each.at("peak_requested_bytes").get_to(step.peak_requested);
      each.at("peak_active_bytes").get_to(step.peak_active);
      step.peak_reserved = or_minus_one(each.at("peak_reserved_bytes"));
      each.at("step_ns").get_to(step.step_ns);
      step.stall_ns = or_minus_one(each.at("stall_ns"));
      // 0 in a reference that was kept before there was one.
      step.unplanned_stored_bytes = each.value("unplanned_stored_bytes", Bytes{0});
      step.host_update_ns = each.value("host_update_ns", Nanoseconds{0});
      step.loss = each.at("loss").is_null() ? NAN : each.at("loss").get<double>();
      run.steps.push_back(step);
    }
    json.at("peak_requested_bytes").get_to(run.peak_requested);
    json.at("peak_active_bytes").get_to(run.peak_active);
    run.peak_reserved = or_minus_one(json.at("peak_reserved_bytes"));
    json.at("peaks_constant").get_to(run.peaks_constant);
    json.at("active_constant").get_to(run.active_constant);
    json.at("reserved_constant").get_to(run.reserved_constant);
    json.at("step_ns").get_to(run.step_ns);
    run.spread = json.value("step_spread", Ppm{0});  // likewise
    json.at("stall_ns").get_to(run.stall_ns);
    run.host_update_ns = json.value("host_update_ns", Nanoseconds{0});  // likewise
    json.at("host_bytes").get_to(run.host_bytes);
    // Not in a reference kept by an earlier version.
    run.used_bytes = or_minus_one(json.value("used_bytes", Json()));
    run.driver_allocations_after_first_step =
        or_minus_one(json.at("driver_allocations_after_first_step"));
    run.pinned_after_first_step = or_minus_one(json.at("pinned_after_first_step"));
    json.at("warnings").get_to(run.warnings);
    if (const Json other = json.value("other_allocator", Json()); other.is_string()) {
      other.get_to(run.other_allocator);
    }
    run.look_ahead = json.value("look_ahead", "");  // not in a reference kept by an earlier version
    json.at("on_plan").get_to(run.on_plan);
    json.at("first_difference").get_to(run.first_difference);
    json.at("off_plan_packs").get_to(run.off_plan_packs);
    json.at("loaded_bytes").get_to(run.loaded_bytes);
    json.at("stored_bytes").get_to(run.stored_bytes);
    run.unplanned_stored_bytes = json.value("unplanned_stored_bytes", Bytes{0});
    run.memory = memory_from(json.value("planned_memory", Json()));
    run.too_large = too_large_from(json.value("too_large", Json()));
    run.ranks = json.value("ranks", std::int64_t{1});
    run.collectives = json.value("collectives", std::int64_t{-1});
    json.at("facts").get_to(run.facts);
    return run;
  } catch (const nlohmann::json::exception& error) {
    return not_ours(error.what());
  }
}

std::string profile_json(const Trace& trace, const std::string& trace_file) {
  const auto pass = [](const PassCost& cost) {
    return Json{{"step_ns", cost.step_ns}, {"peak_requested_bytes", cost.peak_requested}};
  };
  const Quality& q = trace.quality;
  Json gpu = nullptr;
  if (trace.gpu.size() > 0) {
    const GpuTotals totals = gpu_totals(trace);
    gpu = {{"kernels", totals.kernels},
           {"copies", totals.copies},
           {"memsets", totals.memsets},
           {"busy_ns", totals.busy_ns},
           {"attributed_ratio", totals.attributed},
           {"syncs", trace.syncs.size()},
           {"timing_overhead", totals.timing_overhead ? Json(*totals.timing_overhead) : nullptr},
           {"causality_violations", trace.clock.causality_violations},
           {"cupti", trace.env.cupti}};
  }
  const bool offloaded = trace.overhead.clean.step_ns == 0;
  Json divided = Json::array();
  for (const auto& each : trace.divided) {
    Json parts = Json::array();
    for (const auto& part : simulator::recorded_parts(*each)) {
      parts.push_back({{"segment", part.segment}, {"count", part.parts}});
    }
    const Nanoseconds step_ns = each->overhead.clean.step_ns;
    divided.push_back({{"micro_batches", parts},
                       {"peak_requested_bytes", each->peaks.requested.front()},
                       {"step_ns", step_ns == 0 ? Json(nullptr) : Json(step_ns)}});
  }
  Json json = {{"schema", "stowage-profile/1"}};
  report::add_step(trace, json);
  json.update({{"trace", trace_file},
               {"fingerprint", trace.fingerprint},
               {"ops", trace.ops.size()},
               {"saved_tensors", trace.saved.size()},
               {"passes",
                {{"clean", pass(trace.overhead.clean)},
                 {"timing", trace.gpu.size() > 0 ? pass(trace.overhead.timing) : Json(nullptr)},
                 {"structure", pass(trace.overhead.structure)},
                 {"offload_all", pass(trace.overhead.offload_all)}}},
               {"quality",
                {{"dropped_records", q.dropped_records},
                 {"zero_timestamp_records", q.zero_timestamp_records},
                 {"unattributed_kernels", q.unattributed_kernels},
                 {"unattributed_ns", q.unattributed_ns},
                 {"unmatched_frees", q.unmatched_frees},
                 {"join_mismatches", q.join_mismatches}}},
               {"gpu", gpu},
               {"divided", divided},
               {"everything_offloaded", offloaded},
               {"peak_requested_bytes", trace.peaks.requested.front()},
               {"peak_active_bytes", bytes_or_null(trace.peaks.active.front())},
               {"peak_reserved_bytes", bytes_or_null(trace.peaks.reserved.front())},
               {"step_ns", offloaded ? Json(nullptr) : Json(trace.overhead.clean.step_ns)}});
  return dump(json);
}

std::string execute_json(const Trace& trace, const MeasuredRun& run,
                         const simulator::Predicted& predicted, Bytes caching_reserved,
                         const std::vector<std::string>& failures, const std::string& plan_file,
                         const std::string& trace_file, const std::string& micro_batches) {
  Json steps = Json::array();
  for (const MeasuredStep& step : run.steps) steps.push_back(step_json(step));
  Json json = {{"schema", "stowage-execute/1"}};
  report::add_step(trace, json);
  json.update(
      {{"failures", failures},
       {"micro_batches", micro_batches.empty() ? Json(nullptr) : Json(micro_batches)},
       {"measured", run_json(run)},
       {"predicted", predicted_json(predicted)},
       {"caching_allocator", caching_allocator_json(caching_reserved)},
       {"error",
        error_figures(run, predicted, simulator::step_interval(trace, predicted.step, run.spread))},
       {"steps", steps},
       {"files", {{"plan", plan_file}, {"trace", trace_file}}}});
  return dump(json);
}

std::string verification_json(const Trace& trace, const Verification& v) {
  Json json = {{"schema", "stowage-verify/1"}};
  report::add_step(trace, json);
  json.update(
      {{"passed", v.passed()},
       {"failures", v.failures},
       {"bitwise", v.difference.bitwise},
       {"max_abs_diff", number(v.difference.max_abs_diff)},
       {"first_difference", v.difference.first},
       {"compared_tensors", v.difference.tensors},
       {"compared_by_digest", v.difference.by_digest},
       {"differing_tensors", v.difference.differing},
       {"steps", v.compared_steps},
       {"quick_steps", v.quick},
       {"reference", reference_json(v)},
       {"micro_batches", v.micro_batches.empty() ? Json(nullptr) : Json(v.micro_batches)},
       {"plain_max_abs_diff",
        v.beside_plain ? number(v.beside_plain->max_abs_diff) : Json(nullptr)},
       {"planned", run_json(v.planned)},
       {"measured", run_json(v.planned)},
       {"predicted", predicted_json(v.predicted)},
       {"caching_allocator", caching_allocator_json(v.caching_reserved)},
       {"error", error_figures(v.planned, v.predicted,
                               simulator::step_interval(trace, v.predicted.step, v.spread()))},
       {"files", {{"plan", v.plan_file}, {"trace", v.trace_file}}}});
  return dump(json);
}

std::string models_json(const std::vector<executor::ModelInfo>& models) {
  Json list = Json::array();
  for (const executor::ModelInfo& info : models) {
    Json options = Json::array();
    for (const executor::ModelOption& option : info.options) {
      options.push_back(
          {{"name", option.name}, {"default", option.default_value}, {"help", option.help}});
    }
    list.push_back({{"name", info.name}, {"summary", info.summary}, {"options", options}});
  }
  return dump({{"schema", "stowage-models/1"}, {"models", list}});
}

std::string doctor_json(const TorchDoctor& doctor) {
  Json devices = Json::array(
      {Json{{"name", "cpu"}, {"processor", doctor.cpu.device_name}, {"threads", doctor.threads}}});
  Json link = nullptr;
  if (doctor.gpu) {
    devices.push_back({{"name", "cuda"},
                       {"processor", doctor.gpu->device_name},
                       {"driver", doctor.gpu->driver},
                       {"cuda", doctor.gpu->cuda},
                       {"memory_bytes", doctor.gpu->device_memory},
                       {"context_bytes", doctor.gpu->context_bytes}});
    if (!doctor.link.empty()) link = doctor.link;
  }
  return dump({{"schema", "stowage-torch-doctor/1"},
               {"libtorch", doctor.cpu.torch},
               {"features", {{"cuda", doctor.cuda_built}}},
               {"devices", devices},
               {"no_gpu_because", doctor.no_gpu_because},
               {"cupti", nullptr},
               {"link", link}});
}

}  // namespace stowage::cli
