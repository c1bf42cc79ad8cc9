#include "cli/torch/measured_text.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::cli {

namespace {

std::string peak_line(const char* name, Bytes measured, Bytes predicted) {
  std::string text = "              " + report::exact_bytes(measured) + " " + name;
  if (predicted >= 0) {
    text += ", predicted " + report::with_commas(predicted) + ", difference " +
            report::with_commas(measured - predicted) + " bytes";
  }
  return text + "\n";
}

}  // namespace

std::string counters_text(const MeasuredRun& run, const simulator::Predicted& predicted,
                          Bytes caching_reserved) {
  if (run.peak_reserved < 0) return "";
  const bool is_predicted = run.other_allocator.empty() || run.memory;
  std::string text =
      peak_line("active", run.peak_active, is_predicted ? predicted.peak_active : -1) +
      peak_line("reserved", run.peak_reserved, is_predicted ? predicted.peak_reserved : -1);
  if (run.memory && caching_reserved >= 0) {
    text += "              (planned memory; PyTorch's caching allocator would reserve " +
            report::exact_bytes(caching_reserved) + ")\n";
  }
  if (!is_predicted) text += "              (of " + run.other_allocator + ": not predicted)\n";
  if (!run.active_constant || !run.reserved_constant) {
    text += "              (active or reserved differ between steps)\n";
  }
  return text + "  driver      " +
         (run.driver_allocations_after_first_step < 0
              ? std::string("allocations not counted")
              : report::count_of(run.driver_allocations_after_first_step, "allocation")) +
         " and " + report::count_of(run.pinned_after_first_step, "pinned block") +
         " after the first step\n";
}

std::string memory_text(const MeasuredRun& run) {
  if (!run.memory) return "";
  const executor::StepMemoryReport& memory = *run.memory;
  std::string text =
      "  placement   " + report::exact_bytes(memory.bytes) + " of memory taken ahead, mapped at " +
      report::exact_bytes(memory.mapped) + " of addresses, " + report::exact_bytes(memory.older) +
      " older than the step moved in, " + report::count_of(memory.served, "allocation") +
      " served from it, " + report::with_commas(memory.unforeseen) + " not foreseen, " +
      report::with_commas(memory.conflicts) + " where somebody kept the bytes\n";
  constexpr std::size_t kMostLines = 5;
  for (std::size_t i = 0; i < std::min(memory.surprises.size(), kMostLines); ++i) {
    text += "              " + memory.surprises[i] + "\n";
  }
  if (memory.surprises.size() > kMostLines) {
    text += "              and " + std::to_string(memory.surprises.size() - kMostLines) +
            " more (--json)\n";
  }
  return text;
}

std::string parameters_text(const MeasuredRun& run) {
  if (run.loaded_bytes == 0 && run.stored_bytes == 0 && run.unplanned_stored_bytes == 0) return "";
  std::string text = "  streamed    " + report::exact_bytes(run.loaded_bytes) + " loaded, " +
                     report::exact_bytes(run.stored_bytes) + " stored a step";
  if (run.unplanned_stored_bytes > 0) {
    text += ", and " + report::exact_bytes(run.unplanned_stored_bytes) + " stored beside the plan";
  }
  if (run.host_update_ns > 0) {
    text += "; the host updated for " + format_time(run.host_update_ns);
  }
  return text + "\n";
}

std::string ranks_text(const MeasuredRun& run) {
  if (run.collectives < 0) return "";
  return "  ranks       " + report::with_commas(run.ranks) + " over Gloo, " +
         report::count_of(run.collectives, "collective") + " a step\n";
}

std::string ratio_text(Nanoseconds measured, Nanoseconds predicted, Nanoseconds interval) {
  if (predicted <= 0) return "";
  const auto of_predicted = [&](Nanoseconds time) {
    return static_cast<double>(time) / static_cast<double>(predicted);
  };
  char text[80];
  std::snprintf(text, sizeof text, " (ratio %.3f", of_predicted(measured));
  std::string all = text;
  if (interval > 0) {
    const bool is_within = std::abs(measured - predicted) <= interval;
    std::snprintf(text, sizeof text, ", %s ±%.1f %%", is_within ? "within" : "outside of",
                  100 * of_predicted(interval));
    all += text;
  }
  return all + ")";
}

}  // namespace stowage::cli
