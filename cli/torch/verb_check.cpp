#include <chrono>
#include <ctime>
#include <utility>

#include "cli/check_json.h"
#include "cli/check_text.h"
#include "cli/torch/check_job.h"
#include "cli/torch/torch_verbs.h"
#include "traces/file_io.h"

namespace stowage::cli {

namespace {

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return text;
}

// What a CI job shows of a check that could not be made, instead of an older answer.
CheckReport not_done(const CheckOptions& options, const Error& error) {
  CheckReport report;
  report.name = options.name.value_or("");
  report.step.model = options.model.value_or(options.plan.value_or(""));
  CheckCase failed;
  failed.name = "check";
  failed.outcome = CaseOutcome::failed;
  failed.message = error.text();
  report.cases.push_back(std::move(failed));
  return report;
}

}  // namespace

int verb_check(const Args& args, std::ostream& out, std::ostream& err) {
  CommandLine line("check", "Fails when a step's memory or stall has grown, for CI");
  CheckOptions options;
  options.declare(line);
  line.detail(
      "Runs some steps, under a plan or plain, and compares peaks, host bytes and stall with a\n"
      "baseline, and the peak with a budget. Exit code 1 when something grew; the answer names\n"
      "the storages that did, by layer and site. A plan's rules are applied to the step as it is\n"
      "now. docs/ci.md shows it in GitHub Actions, GitLab and CTest.");
  line.example("stowage check --model gpt2:layers=6 --device cpu --baseline gpt2.json");
  line.example("stowage check --plan p.json --baseline p.baseline.json --junit memory.xml");
  return run_verb(line, args, out, err, [&](Console& console) -> Result<int> {
    if (Status status = options.read(); !status) return status.error();
    const auto begin = std::chrono::steady_clock::now();
    const auto write_junit = [&](const CheckReport& report) -> Status {
      if (!options.junit) return Unit{};
      const Nanoseconds duration = std::chrono::duration_cast<std::chrono::nanoseconds>(
                                       std::chrono::steady_clock::now() - begin)
                                       .count();
      return write_output(console, *options.junit,
                          junit_xml(check_suite(report, utc_now(), duration)));
    };
    Result<CheckReport> report = check(options, console);
    if (!report) {
      // The error is what the caller has to see; whether its file can be written, too, is not.
      static_cast<void>(write_junit(not_done(options, report.error())).ok());
      return report.error();
    }
    if (Status status = write_junit(*report); !status) return status.error();
    if (console.json) {
      console.out << check_json(*report);
    } else {
      console.say(check_text(*report, console.paint));
    }
    return report->passed() ? 0 : static_cast<int>(ErrorCode::condition);
  });
}

}  // namespace stowage::cli
