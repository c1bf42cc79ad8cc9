// The facts of traces and plans.
#include <map>
#include <memory>

#include "report/diff.h"
#include "report/inspect.h"
#include "report/op_totals.h"
#include "simulator/machine/link_model.h"
#include "simulator/plan/program_point.h"
#include "simulator/step/unroll.h"

namespace stowage::report {
namespace {

class Facts {
 public:
  void section(std::string name) { section_ = std::move(name); }
  void bytes(const std::string& name, Bytes value) {
    if (value >= 0) add(name, FactUnit::bytes, value);
  }
  void time(const std::string& name, Nanoseconds value) { add(name, FactUnit::nanoseconds, value); }
  void rate(const std::string& name, std::int64_t bytes_per_second) {
    add(name, FactUnit::rate, bytes_per_second);
  }
  void number(const std::string& name, std::int64_t value) { add(name, FactUnit::number, value); }
  void real(const std::string& name, double value) { add(name, FactUnit::number, value); }
  void text(const std::string& name, const std::string& value) {
    if (!value.empty()) add(name, FactUnit::text, value);
  }
  [[nodiscard]] std::vector<Fact> take() { return std::move(facts_); }

 private:
  // The second of a name is "name (2)".
  void add(const std::string& name, FactUnit unit,
           std::variant<std::int64_t, double, std::string> value) {
    const int count = ++counts_[name];
    const std::string suffix = count > 1 ? " (" + std::to_string(count) + ")" : std::string();
    facts_.push_back({section_, name + suffix, unit, std::move(value)});
  }

  std::string section_;
  std::vector<Fact> facts_;
  std::map<std::string, int> counts_;
};

void add_run(const Trace& trace, Facts& facts) {
  facts.text("model", trace.run.model);
  facts.number("batch", trace.run.batch);
  facts.number("seq", trace.run.seq);
  facts.text("dtype", trace.run.dtype);
  facts.text("autocast", trace.run.autocast);
  facts.text("optimizer", trace.run.optimizer);
  facts.text("grad_scaler", trace.run.grad_scaler);
  facts.text("source", trace.run.source);
  facts.text("device", trace.env.device);
  facts.text("device_name", trace.env.device_name);
  facts.text("torch", trace.env.torch);
  facts.text("cuda", trace.env.cuda);
  facts.text("driver", trace.env.driver);
  facts.text("allocator", trace.env.allocator);
  facts.text("fingerprint", trace.fingerprint);
}

std::string conditions_of(const simulator::SavedRule& rule) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (rule.site) add(*rule.site);
  if (rule.storage_class) add(std::string("class ") + stowage::name_of(*rule.storage_class));
  if (rule.op) add("op " + *rule.op);
  if (rule.min_bytes) add("at least " + std::to_string(*rule.min_bytes) + " bytes");
  return text.empty() ? "*" : text;
}

std::string decision_of(const simulator::SavedRule& rule) {
  std::string text = simulator::name_of(rule.decision);
  if (rule.decision != simulator::Decision::offload) return text;
  text += ", release " + simulator::format_release_point(rule.release);
  text += ", reload " + simulator::format_reload_point(rule.reload);
  if (rule.copy_out != simulator::CopyMode::lane) {
    text += std::string(", copy_out ") + simulator::name_of(rule.copy_out);
  }
  if (rule.copy_in != simulator::CopyMode::lane) {
    text += std::string(", copy_in ") + simulator::name_of(rule.copy_in);
  }
  return rule.share ? text : text + ", not shared";
}

std::string segments_of(const simulator::RecomputeRule& rule) {
  const bool is_all = rule.each == simulator::RecomputeRule::kAll;
  const bool is_row = rule.segment.find("..") != std::string::npos;
  const std::string text = is_row           ? "the row as one"
                           : is_all         ? "all as one"
                           : rule.each == 1 ? "each layer"
                                            : std::to_string(rule.each) + " layers as one";
  return rule.boundary ? text + ", boundary " + simulator::name_of(*rule.boundary) : text;
}

// Those within others as "recompute.layers.[0-3] > *.mlp".
void add_segments(const std::vector<simulator::RecomputeRule>& rules, const std::string& before,
                  Facts& facts) {
  for (const simulator::RecomputeRule& rule : rules) {
    facts.text(before + rule.segment, segments_of(rule));
    add_segments(rule.within, before + rule.segment + " > ", facts);
  }
}

std::string stream_of(simulator::StreamMode mode) {
  switch (mode) {
    case simulator::StreamMode::off:
      return "off";
    case simulator::StreamMode::forward:
      return "forward";
    case simulator::StreamMode::backward:
      return "backward";
    case simulator::StreamMode::always:
      break;
  }
  return "always";
}

std::string stream_of(const simulator::StreamModes& modes) {
  if (modes.by_shard().empty()) return stream_of(modes.of(0));
  std::string text;
  for (const simulator::StreamMode mode : modes.by_shard()) {
    text += (text.empty() ? "" : ", ") + stream_of(mode);
  }
  return text;
}

void add_parameters(const simulator::ParameterPlan& parameters, Facts& facts) {
  facts.section("parameters");
  facts.text("parameters.stream", stream_of(parameters.stream));
  facts.text("parameters.prefetch",
             parameters.prefetch ? std::to_string(*parameters.prefetch) : "auto");
  facts.number("parameters.shards", static_cast<std::int64_t>(parameters.shards.size()));
  for (std::size_t i = 0; i < parameters.shards.size(); ++i) {
    std::string patterns;
    for (const std::string& each : parameters.shards[i]) {
      patterns += (patterns.empty() ? "" : ", ") + each;
    }
    facts.text("parameters.shards." + std::to_string(i), patterns);
  }
}

}  // namespace

Result<std::vector<Fact>> facts_of(const Trace& trace) {
  const Result<InspectReport> report = inspect(trace, GroupBy::storage_class, "peak");
  if (!report) return report.error();
  Facts facts;
  add_run(trace, facts);
  facts.time("step_ns", report->step);
  facts.bytes("peak_requested_bytes", report->moment.requested);
  facts.bytes("peak_active_bytes", report->moment.active);
  facts.bytes("peak_reserved_bytes", report->moment.reserved);
  facts.text("peak_at", report->moment.layer + ", " + report->moment.op_name);
  facts.number("ops", report->outermost_ops);
  facts.number("kernels", static_cast<std::int64_t>(trace.gpu.size()));
  facts.number("storages", static_cast<std::int64_t>(trace.storages.size()));
  facts.number("saved_tensors", static_cast<std::int64_t>(trace.saved.size()));
  facts.bytes("saved_bytes", report->movable.bytes);
  facts.bytes("context_bytes", trace.env.context_bytes);

  facts.section("micro_batches");
  for (const auto& each : simulator::recorded_parts(trace)) {
    facts.number("micro_batches." + each.segment, each.parts);
  }
  for (const std::shared_ptr<const Trace>& part : trace.divided) {
    std::string name = "divided";
    for (const auto& each : simulator::recorded_parts(*part)) {
      name += "." + each.segment + "=" + std::to_string(each.parts);
    }
    facts.bytes(name + ".peak_requested_bytes", part->peaks.requested.front());
    facts.time(name + ".step_ns", part->overhead.clean.step_ns);
  }

  facts.section("link");
  facts.rate("link.d2h_bytes_per_second", simulator::best_rate(trace.calibration.d2h));
  facts.rate("link.h2d_bytes_per_second", simulator::best_rate(trace.calibration.h2d));

  facts.section("phases");
  const bool on_gpu = trace.gpu.size() > 0;
  for (const PhaseRow& row : report->phases) {
    std::string name = std::string("phases.") + stowage::name_of(row.kind);
    if (row.micro_batch > 0) name += "@mb=" + std::to_string(row.micro_batch);
    facts.time(name + (on_gpu ? ".launched_in_ns" : ".duration_ns"), row.duration);
    if (on_gpu) facts.time(name + ".gpu_ns", row.gpu);
    facts.bytes(name + ".peak_requested_bytes", row.peak);
  }
  facts.section("classes at the peak");
  for (const GroupRow& row : report->classes) facts.bytes("classes." + row.name, row.bytes);
  facts.section("layers");
  for (const LayerRow& row : report->layers) {
    const std::string name = "layers:" + row.name;
    facts.number(name + ".ops", row.ops);
    facts.time(name + ".forward_ns", row.forward);
    facts.time(name + ".backward_ns", row.backward);
    facts.bytes(name + ".saved_bytes", row.saved_bytes);
    facts.bytes(name + ".parameter_bytes", row.parameter_bytes);
    facts.bytes(name + ".bytes_at_peak", row.bytes_at);
  }
  facts.section("ops");
  for (const OpTotals& row : op_totals(trace)) {
    const std::string name = "ops:" + row.name;
    facts.number(name + ".calls", row.calls);
    facts.time(name + (on_gpu ? ".gpu_ns" : ".duration_ns"), row.time);
    facts.bytes(name + ".made_bytes", row.made);
  }
  return facts.take();
}

std::vector<Fact> facts_of(const simulator::Plan& plan) {
  Facts facts;
  facts.text("for.model", plan.target.model);
  facts.number("for.batch", plan.target.batch);
  facts.number("for.seq", plan.target.seq);
  facts.text("for.dtype", plan.target.dtype);
  facts.text("for.autocast", plan.target.autocast);
  facts.text("for.optimizer", plan.target.optimizer);
  facts.text("for.grad_scaler", plan.target.grad_scaler);
  facts.text("for.device", plan.target.device);
  facts.text("for.fingerprint", plan.target.fingerprint);
  facts.text("for.trace_file", plan.target.trace_file);
  facts.text("for.trace", plan.target.trace);
  facts.text("made_by.policy", plan.made_by.policy);
  facts.text("made_by.tool", plan.made_by.tool);
  if (plan.budget.device) facts.bytes("budget.device_bytes", *plan.budget.device);
  facts.text("budget.device", plan.budget.device_text);
  facts.text("budget.on", simulator::name_of(plan.budget.on));
  facts.text("placement", simulator::name_of(plan.placement));
  if (plan.budget.automatic) facts.bytes("budget.automatic_bytes", *plan.budget.automatic);
  if (plan.budget.host) facts.bytes("budget.host_bytes", *plan.budget.host);

  if (plan.predicted) {
    facts.section("predicted");
    facts.bytes("predicted.peak_requested_bytes", plan.predicted->peak_requested);
    facts.bytes("predicted.peak_active_bytes", plan.predicted->peak_active);
    facts.bytes("predicted.peak_reserved_bytes", plan.predicted->peak_reserved);
    facts.time("predicted.step_ns", plan.predicted->step);
    facts.time("predicted.stall_ns", plan.predicted->stall);
    facts.bytes("predicted.host_bytes", plan.predicted->host);
  }
  if (plan.lower_bound_step) facts.time("lower_bound.step_ns", *plan.lower_bound_step);
  if (plan.gap_ppm) facts.real("gap", static_cast<double>(*plan.gap_ppm) / 1e6);

  facts.section("recompute");
  add_segments(plan.recompute, "recompute.", facts);
  // The first rule that matches decides, so their order is a fact as well.
  facts.section("saved");
  std::string order;
  for (const simulator::SavedRule& rule : plan.saved) {
    const std::string conditions = conditions_of(rule);
    facts.text("saved." + conditions, decision_of(rule));
    order += (order.empty() ? "" : " > ") + conditions;
  }
  facts.text("saved: order", order);
  if (plan.parameters) add_parameters(*plan.parameters, facts);
  facts.section("gradients");
  std::string rules;
  for (const simulator::GradientRule& rule : plan.gradients) {
    facts.text("gradients." + rule.layer + ": place", name_of(rule.place));
    rules += (rules.empty() ? "" : " > ") + rule.layer;
  }
  facts.text("gradients: order", rules);
  facts.section("optimizer");
  rules.clear();
  for (const simulator::OptimizerRule& rule : plan.optimizer) {
    facts.text("optimizer." + rule.layer + ": state", name_of(rule.state));
    rules += (rules.empty() ? "" : " > ") + rule.layer;
  }
  facts.text("optimizer: order", rules);
  facts.section("micro_batches");
  for (const simulator::MicroBatchRule& rule : plan.micro_batches) {
    facts.number("micro_batches." + rule.segment, rule.count);
  }
  return facts.take();
}

}  // namespace stowage::report
