#include "cli/check_text.h"

#include <algorithm>

#include "report/words.h"

namespace stowage::cli {
namespace {

constexpr std::size_t kMostLines = 40;

std::string step_line(const CheckReport& report) {
  const StepIdentity& step = report.step;
  std::string text = report.step.model + ", batch " + std::to_string(step.batch);
  if (step.seq > 0) text += ", seq " + std::to_string(step.seq);
  text += ", " + step.dtype;
  if (!step.autocast.empty()) text += ", autocast to " + step.autocast;
  text += ", optimizer " + step.optimizer;
  if (!step.grad_scaler.empty()) text += ", gradient scaler " + step.grad_scaler;
  text += ", on " + (report.made_with.device_name.empty() ? report.made_with.device
                                                          : report.made_with.device_name);
  if (!report.plan_file.empty()) text += ", under " + report.plan_file;
  return text;
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

}  // namespace

std::vector<std::string> detail_lines(const CheckCase& each) {
  std::vector<std::string> lines = each.details;
  if (!each.grew.empty()) lines.emplace_back("grew:");
  for (const report::Growth& growth : each.grew) lines.push_back(report::growth_text(growth));
  if (lines.size() <= kMostLines) return lines;
  const std::size_t left = lines.size() - kMostLines;
  lines.resize(kMostLines);
  lines.push_back("and " + report::with_commas(static_cast<std::int64_t>(left)) + " more");
  return lines;
}

std::string check_text(const CheckReport& report, const report::Paint& paint) {
  std::string text = (report.passed() ? paint.green("passed: ") : paint.red("FAILED: ")) +
                     step_line(report) + "\n";
  for (const CheckCase& each : report.cases) {
    const std::string word = padded(name_of(each.outcome), 8);
    text += "  " + (each.outcome == CaseOutcome::failed ? paint.red(word) : word) +
            padded(each.name, 16) + each.message + "\n";
    if (each.outcome != CaseOutcome::failed) continue;
    for (const std::string& line : detail_lines(each)) text += "            " + line + "\n";
  }
  if (report.baseline_written) text += "wrote " + report.baseline_file + "\n";
  return text;
}

JunitSuite check_suite(const CheckReport& report, const std::string& timestamp,
                       Nanoseconds duration) {
  JunitSuite suite;
  suite.name = report.name.empty() ? "stowage check " + report.step.model : report.name;
  suite.class_name = report.name.empty() ? report.step.model : report.name;
  suite.timestamp = timestamp;
  suite.duration = duration;
  suite.properties = {
      {"model", report.step.model},           {"batch", std::to_string(report.step.batch)},
      {"dtype", report.step.dtype},           {"optimizer", report.step.optimizer},
      {"device", report.made_with.device},    {"stowage", report.made_with.stowage},
      {"libtorch", report.made_with.libtorch}};
  if (!report.step.autocast.empty()) {
    suite.properties.emplace_back("autocast", report.step.autocast);
  }
  if (!report.step.grad_scaler.empty()) {
    suite.properties.emplace_back("grad_scaler", report.step.grad_scaler);
  }
  if (!report.plan_file.empty()) suite.properties.emplace_back("plan", report.plan_file);
  if (!report.baseline_file.empty()) {
    suite.properties.emplace_back("baseline", report.baseline_file);
  }
  for (const CheckCase& each : report.cases) {
    JunitCase one;
    one.name = each.name;
    one.outcome = each.outcome == CaseOutcome::failed    ? JunitCase::Outcome::failed
                  : each.outcome == CaseOutcome::skipped ? JunitCase::Outcome::skipped
                                                         : JunitCase::Outcome::passed;
    one.message = each.message;
    one.text = each.message + "\n";
    for (const std::string& line : detail_lines(each)) one.text += line + "\n";
    suite.cases.push_back(std::move(one));
  }
  return suite;
}

}  // namespace stowage::cli
