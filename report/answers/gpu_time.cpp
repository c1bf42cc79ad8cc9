#include "report/answers/gpu_time.h"

#include <algorithm>
#include <map>

#include "simulator/step/op_spans.h"

namespace stowage::report {

std::vector<GpuOpRow> gpu_time_by_op(const Trace& trace) {
  const simulator::OpSpans spans(trace);
  std::map<std::string, GpuOpRow> rows;
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    const OpId op = spans.outermost(trace.gpu.op[i]);
    GpuOpRow& row =
        rows[op.valid() ? trace.string(trace.ops.name[op.index()]) : "(outside of ops)"];
    ++row.activities;
    row.duration += trace.gpu.duration[i];
  }
  std::vector<GpuOpRow> sorted;
  for (auto& [name, row] : rows) {
    row.name = name;
    sorted.push_back(std::move(row));
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const GpuOpRow& a, const GpuOpRow& b) { return a.duration > b.duration; });
  return sorted;
}

}  // namespace stowage::report
