#include "report/answers/data_parallel_text.h"

#include <array>
#include <charconv>

#include <algorithm>

#include "report/answers/text_table.h"
#include "report/words.h"
#include "traces/size_text.h"

namespace stowage::report {
namespace {

std::string steps_text(const simulator::DataParallel& ranks) {
  TextTable table;
  for (const char* title : {"ranks", "hosts", "step time", "all-reduce", "exposed", "efficiency"}) {
    table.column(title, Align::right);
  }
  for (const simulator::RankedStep& step : ranks.steps) {
    table.row({with_commas(step.ranks), with_commas(step.hosts), format_time(step.step_ns),
               format_time(step.all_reduce_ns), format_time(step.exposed_ns),
               percent(step.efficiency, kPpm)});
  }
  return table.text(2);
}

// The shortest text of it.
std::string number_text(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : std::string("?");
}

std::string assumed_text(const simulator::ReductionModel& model) {
  TextTable table;
  table.column("");
  table.column("");
  for (const simulator::NetworkSetting& each : simulator::network_settings()) {
    table.row(
        {each.name + "=" + number_text(simulator::setting_value(model, each.name)), each.help});
  }
  return table.text(2);
}

}  // namespace

Bytes peak_of(const simulator::DataParallel& ranks, simulator::PeakKind kind) {
  switch (kind) {
    case simulator::PeakKind::requested:
      return ranks.peak_requested;
    case simulator::PeakKind::active:
      return ranks.peak_active;
    case simulator::PeakKind::reserved:
      return ranks.peak_reserved;
  }
  return -1;
}

bool keeps_budget(const simulator::DataParallel& ranks, const simulator::PlanBudget& budget) {
  const bool is_alone =
      std::all_of(ranks.steps.begin(), ranks.steps.end(),
                  [](const simulator::RankedStep& step) { return step.ranks == 1; });
  return is_alone || !budget.device || peak_of(ranks, budget.on) <= *budget.device;
}

std::string data_parallel_text(const simulator::DataParallel& ranks, const Paint& paint) {
  std::int64_t gradients = 0;
  for (const simulator::GradientBucket& bucket : ranks.buckets) gradients += bucket.gradients;
  std::string text = "\n" + paint.bold("Data parallel") +
                     ", assumed: the network was not measured\n" + steps_text(ranks);
  text += "\n" + count_of(gradients, "gradient") + " of " + format_bytes(ranks.bucket_bytes) +
          " in " + count_of(static_cast<std::int64_t>(ranks.buckets.size()), "bucket") +
          ". With the buckets the peak is " + format_bytes(ranks.peak_requested) + " requested, " +
          format_bytes(ranks.peak_active) + " active" +
          (ranks.peak_reserved < 0 ? "" : ", " + format_bytes(ranks.peak_reserved) + " reserved") +
          ".\nThe network (--set):\n" + assumed_text(ranks.model);
  return text;
}

}  // namespace stowage::report
