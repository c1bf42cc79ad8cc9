#include "report/op_totals.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/step/op_spans.h"

namespace stowage::report {

std::vector<OpTotals> op_totals(const Trace& trace) {
  const simulator::OpSpans spans(trace);
  std::map<std::string, OpTotals> rows;
  const auto row_of = [&](OpId op) -> OpTotals& {
    const OpId outermost = spans.outermost(op);
    return rows[outermost.valid() ? trace.string(trace.ops.name[outermost.index()])
                                  : "(outside of ops)"];
  };
  const bool on_gpu = trace.gpu.size() > 0;
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    if (trace.ops.parent[i].valid()) continue;
    OpTotals& row = row_of(OpId(i));
    ++row.calls;
    if (!on_gpu) row.time += trace.ops.duration[i];
  }
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    OpTotals& row = row_of(trace.gpu.op[i]);
    ++row.activities;
    row.time += trace.gpu.duration[i];
  }
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.device[s] != 0 || !trace.storages.alloc_event[s].valid()) continue;
    row_of(trace.storages.alloc_op[s]).made += trace.storages.bytes[s];
  }
  std::vector<OpTotals> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const OpTotals& a, const OpTotals& b) { return a.time > b.time; });
  return sorted;
}

}  // namespace stowage::report
