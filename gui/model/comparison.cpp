#include "gui/model/comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "gui/model/name_search.h"
#include "gui/model/plan_edits.h"
#include "report/recomputed_segments.h"
#include "report/words.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::gui {
namespace {

using report::Change;
using report::Fact;
using report::FactUnit;
using Value = std::variant<std::int64_t, double, std::string>;

// A policy may copy a storage once for each saved tensor that has it.
constexpr const char* kByLayer = "moved by layer (a storage counts as often as it is copied)";

// The name of a rate says its unit.
std::string amount_text(std::int64_t number, FactUnit unit) {
  return report::number_text(number, unit == FactUnit::rate ? FactUnit::number : unit);
}

std::string text_of(const Value& value, FactUnit unit) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* number = std::get_if<double>(&value)) {
    char buffer[64];
    std::snprintf(buffer, sizeof buffer, "%.4g", *number);
    return buffer;
  }
  return amount_text(std::get<std::int64_t>(value), unit);
}

std::string difference_text(double difference, FactUnit unit) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::abs(difference)));
  return (difference < 0 ? "-" : "+") + amount_text(whole, unit);
}

// Of figures of the whole, in this order.
constexpr const char* kHeadings[] = {"memory", "time", "copies", "decisions"};

std::string heading_of(const std::string& name, FactUnit unit) {
  if (name.starts_with("copied_")) return "copies";
  if (name.starts_with("freed_by_") || name.starts_with("recompute_")) return "decisions";
  if (unit == FactUnit::bytes) return "memory";
  const bool is_of_time = name.starts_with("gap_") || name == "stalls";
  return unit == FactUnit::nanoseconds || is_of_time ? "time" : "decisions";
}

std::ptrdiff_t rank_of(const ComparedRow& row) {
  if (!row.section.empty()) return std::ssize(kHeadings);
  return std::find(std::begin(kHeadings), std::end(kHeadings), row.heading) - std::begin(kHeadings);
}

// "layers.3.mlp.forward_ns" -> "layers.3.mlp.forward", "peak_active_bytes" -> "peak active".
std::string words(const std::string& name, FactUnit unit) {
  std::string text = name;
  for (const char* suffix : {"_bytes", "_ns"}) {
    if (unit != FactUnit::text && text.ends_with(suffix)) {
      text.resize(text.size() - std::string_view(suffix).size());
    }
  }
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

// "62,996,267,264, then 60,982,968,576 bytes"; empty unless both are whole numbers.
std::string exact_text(const Change& change) {
  if (!change.before || !change.after) return {};
  const auto* before = std::get_if<std::int64_t>(&*change.before);
  const auto* after = std::get_if<std::int64_t>(&*change.after);
  if (before == nullptr || after == nullptr) return {};
  return report::with_commas(*before) + ", then " + report::with_commas(*after) +
         (change.unit == FactUnit::bytes         ? " bytes"
          : change.unit == FactUnit::nanoseconds ? " ns"
                                                 : "");
}

LayerId outermost(const Trace& trace, LayerId layer) {
  while (layer.valid()) {
    const LayerId above = trace.layers.parent[layer.index()];
    if (!above.valid() || !trace.layers.parent[above.index()].valid()) return layer;
    layer = above;
  }
  return layer;
}

template <class T>
void add(std::vector<Fact>& facts, const char* name, FactUnit unit, const std::optional<T>& value) {
  if (value) facts.push_back({"", name, unit, static_cast<std::int64_t>(*value)});
}

// "0.04 %"; the planner proves bounds to 1 ppm.
std::string gap_text(Nanoseconds step, Nanoseconds bound) {
  const double gap = bound > 0 ? static_cast<double>(step - bound) / static_cast<double>(bound) : 0;
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.2f %%", gap * 100);
  return buffer;
}

std::optional<Bytes> known(Bytes bytes) {
  return bytes < 0 ? std::nullopt : std::optional<Bytes>(bytes);
}

void add_moved_by_layer(const Simulated& simulated, std::vector<Fact>& facts) {
  const Trace& trace = simulated.step_trace();
  using ByKind = std::map<const simulator::TenantKind*, Bytes>;
  std::map<LayerId, ByKind> by_layer;
  for (const simulator::Tenant& tenant : simulated.schedule.tenants) {
    const LayerId layer = outermost(trace, tenant.kind->layer(trace, tenant));
    if (!layer.valid()) continue;
    by_layer[layer][tenant.kind] += tenant.bytes;
  }
  for (std::size_t i = 0; i < trace.layers.size(); ++i) {
    const LayerId layer(i);
    if (outermost(trace, layer) != layer) continue;
    const std::string name = layer_words(trace, layer);
    ByKind& bytes = by_layer[layer];
    facts.push_back(
        {kByLayer, name + ": saved_bytes", FactUnit::bytes, bytes[&simulator::kSavedTensor]});
    facts.push_back(
        {kByLayer, name + ": parameters_bytes", FactUnit::bytes, bytes[&simulator::kParameter]});
    facts.push_back({kByLayer, name + ": optimizer_state_bytes", FactUnit::bytes,
                     bytes[&simulator::kOptimizerState]});
    facts.push_back(
        {kByLayer, name + ": gradients_bytes", FactUnit::bytes, bytes[&simulator::kGradient]});
  }
}

}  // namespace

std::vector<Fact> facts_of(const MeasuredFigures& figures) {
  std::vector<Fact> facts;
  add(facts, "peak_requested_bytes", FactUnit::bytes, figures.peak_requested);
  add(facts, "peak_active_bytes", FactUnit::bytes, figures.peak_active);
  add(facts, "peak_reserved_bytes", FactUnit::bytes, figures.peak_reserved);
  add(facts, "host_bytes", FactUnit::bytes, figures.host);
  add(facts, "step_ns", FactUnit::nanoseconds, figures.step);
  add(facts, "stall_ns", FactUnit::nanoseconds, figures.stall);
  return facts;
}

std::vector<Fact> facts_of(const Simulated& simulated) {
  const simulator::ReplayResult& result = simulated.result;
  std::vector<Fact> facts = facts_of(
      MeasuredFigures{result.peak_requested, known(result.peak_active), known(result.peak_reserved),
                      result.host_bytes, result.step_ns, result.stall_ns});
  using std::optional;
  if (const optional<Nanoseconds> bound = lower_bound_of(simulated)) {
    // Behind the step's time.
    std::vector<Fact> proved{{"", "lower_bound_ns", FactUnit::nanoseconds, std::int64_t{*bound}}};
    // One over its budget may be faster.
    if (simulated.device_kept && simulated.host_kept) {
      proved.push_back({"", "gap_to_it_ns", FactUnit::nanoseconds, result.step_ns - *bound});
      proved.push_back({"", "gap_in_percent", FactUnit::text, gap_text(result.step_ns, *bound)});
    }
    facts.insert(facts.end() - 1, proved.begin(), proved.end());
  }
  add(facts, "compute_ns", FactUnit::nanoseconds, optional(result.compute_ns));
  add(facts, "copied_out_bytes", FactUnit::bytes, optional(result.d2h_bytes));
  add(facts, "copied_back_bytes", FactUnit::bytes, optional(result.h2d_bytes));
  add(facts, "stalls", FactUnit::number, optional(result.stalls.size()));
  const std::vector<TenantId>& away = simulated.schedule.tenant_of;
  const std::vector<simulator::Tenant>& tenants = simulated.schedule.tenants;
  const auto count = [&](const simulator::TenantKind& kind) {
    return std::count_if(tenants.begin(), tenants.end(),
                         [&](const simulator::Tenant& tenant) { return tenant.kind == &kind; });
  };
  add(facts, "saved_tensors_offloaded", FactUnit::number,
      optional(std::count_if(away.begin(), away.end(), [](TenantId of) { return of.valid(); })));
  add(facts, "copies_out_for_them", FactUnit::number, optional(count(simulator::kSavedTensor)));
  if (simulated.rows) {
    const auto again = report::recomputed_segments(simulated.rows->step());
    const auto sum = [&](auto report::RecomputedSegment::*of) {
      std::int64_t all = 0;
      for (const report::RecomputedSegment& each : again) all += each.*of;
      return all;
    };
    std::int64_t count_again = 0;
    for (std::size_t i = 0; i < simulated.decisions->saved.size(); ++i) {
      count_again += simulated.decisions->runs_again(SavedId(i)) ? 1 : 0;
    }
    add(facts, "saved_tensors_recomputed", FactUnit::number, optional(count_again));
    add(facts, "recompute_ns", FactUnit::nanoseconds,
        optional(sum(&report::RecomputedSegment::time)));
    add(facts, "freed_by_recompute_bytes", FactUnit::bytes,
        optional(sum(&report::RecomputedSegment::freed)));
  }
  add(facts, "parameters_streamed", FactUnit::number, optional(count(simulator::kParameter)));
  add(facts, "optimizer_state_streamed", FactUnit::number,
      optional(count(simulator::kOptimizerState)));
  add(facts, "gradients_on_host", FactUnit::number, optional(count(simulator::kGradient)));
  add_moved_by_layer(simulated, facts);
  return facts;
}

std::vector<ComparedRow> compared(const std::vector<Fact>& before, const std::vector<Fact>& after) {
  std::map<std::pair<std::string, std::string>, std::size_t> others;
  for (std::size_t i = 0; i < after.size(); ++i) {
    others.emplace(std::pair(after[i].section, after[i].name), i);
  }
  std::vector<ComparedRow> rows;
  const auto add_row = [&](const Fact& named, const Fact* old, const Fact* now) {
    Change change{named.section, named.name, named.unit, {}, {}};
    if (old != nullptr) change.before = old->value;
    if (now != nullptr) change.after = now->value;
    const bool equal = change.before && change.after && *change.before == *change.after;
    if (equal && !named.section.empty()) return;
    ComparedRow row;
    row.section = named.section;
    row.heading = named.section.empty() ? heading_of(named.name, named.unit) : named.section;
    row.name = words(named.name, named.unit);
    row.before = row.after = "–";
    if (old != nullptr) row.before = text_of(old->value, named.unit);
    if (now != nullptr) row.after = text_of(now->value, named.unit);
    if (const auto difference = change.difference()) {
      row.sign = *difference > 0 ? 1 : *difference < 0 ? -1 : 0;
      row.difference = row.sign == 0 ? "=" : difference_text(*difference, named.unit);
    }
    if (row.sign != 0) row.relative = change.relative_text();
    row.exact = exact_text(change);
    rows.push_back(std::move(row));
  };
  std::set<std::pair<std::string, std::string>> known;
  for (const Fact& fact : before) known.emplace(fact.section, fact.name);
  // Each at its place: what only `after` has comes ahead of what follows it there.
  std::size_t next = 0;
  const auto add_new_until = [&](std::size_t end) {
    for (; next < end; ++next) {
      const Fact& fact = after[next];
      if (known.count({fact.section, fact.name}) == 0) add_row(fact, nullptr, &fact);
    }
  };
  for (const Fact& fact : before) {
    const auto at = others.find({fact.section, fact.name});
    if (at != others.end()) add_new_until(at->second);
    add_row(fact, &fact, at == others.end() ? nullptr : &after[at->second]);
  }
  add_new_until(after.size());
  std::stable_sort(rows.begin(), rows.end(), [](const ComparedRow& a, const ComparedRow& b) {
    return rank_of(a) < rank_of(b);
  });
  return rows;
}

}  // namespace stowage::gui
