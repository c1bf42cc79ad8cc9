// `stowage export`: formats and their choice, goldens, every sample, and the readers that others
// use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "cli/verbs.h"
#include "tests/cli/golden.h"
#include "tests/cli/process.h"
#include "tests/support/slowdown.h"
#include "tests/support/small_trace.h"
#include "traces/file_io.h"
#include "traces/trace_file.h"

namespace stowage::cli_tests {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::small_trace;
using Json = nlohmann::json;

class Export : public ::testing::Test {
 protected:
  void SetUp() override {
    trace_ = folder_.file("t.json.gz");
    ASSERT_TRUE(save_trace(trace_, small_trace(3)).ok());
  }
  static Outcome export_of(const std::string& trace, std::vector<std::string> more) {
    std::ostringstream out;
    std::ostringstream err;
    more.insert(more.begin(), trace);
    const int code = cli::verb_export(more, out, err);
    return {code, out.str(), err.str()};
  }
  Outcome exported(std::vector<std::string> more) const {
    return export_of(trace_, std::move(more));
  }
  // To stdout; must succeed.
  std::string text(std::vector<std::string> more) const {
    more.insert(more.end(), {"-o", "-"});
    const Outcome outcome = exported(more);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }
  std::string usage(std::vector<std::string> more) const {
    const Outcome outcome = exported(std::move(more));
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(count_lines(outcome.err), 1) << outcome.err;
    return outcome.err;
  }

  TemporaryFolder folder_;
  std::string trace_;
};

TEST_F(Export, FilesAreAsTheyWere) {
  const std::vector<std::string> planned = {"--policy", "save_on_cpu"};
  const auto with = [&planned](std::vector<std::string> more) {
    more.insert(more.end(), planned.begin(), planned.end());
    return more;
  };
  const std::regex version("\"writer\":\"stowage [^\"]*\"");
  expect_golden("export_chrome.json",
                std::regex_replace(text(with({"--format", "chrome"})), version, "\"writer\":\"\""));
  expect_golden("export.svg", text(with({"--format", "svg"})));
  for (const char* table : {"memory", "storages", "stalls", "timeline"}) {
    expect_golden(std::string("export_") + table + ".csv",
                  text(with({"--format", "csv", "--table", table})));
  }
}

TEST_F(Export, TheEndingSaysTheFormat) {
  const std::pair<const char*, const char*> cases[] = {
      {"a.json", "chrome"}, {"a.json.gz", "chrome"},    {"a.svg", "svg"},
      {"a.csv", "csv"},     {"a.pickle", "memory-viz"}, {"a.pkl.gz", "memory-viz"}};
  for (const auto& [name, format] : cases) {
    const Outcome outcome = exported({"-o", folder_.file(name), "--json"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["schema"], "stowage-export/1");
    EXPECT_EQ(json["format"], format) << name;
    EXPECT_EQ(json["is_simulated"], false);
    EXPECT_EQ(json["step_ns"], 19'000'000);
    EXPECT_EQ(json["peak_requested_bytes"], 9'408'000);
    const auto whole = read_file(folder_.file(name));  // unpacked
    ASSERT_TRUE(whole.ok());
    EXPECT_EQ(json["bytes"], whole->size()) << name;
  }
  EXPECT_THAT(usage({"-o", folder_.file("a.txt")}), HasSubstr("does not say the format"));
  EXPECT_THAT(usage({"-o", "-"}), HasSubstr("does not say the format"));
}

TEST_F(Export, APlanIsShownBesideTheRecordedStep) {
  const Json json = Json::parse(text({"--policy", "save_on_cpu", "--format", "chrome"}));
  std::vector<std::string> processes;
  int arrows = 0;
  for (const Json& event : json["traceEvents"]) {
    if (event["name"] == "process_name")
      processes.push_back(event["args"]["name"].get<std::string>());
    arrows += event["ph"] == "f";
  }
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_THAT(processes[0], HasSubstr("recorded"));
  EXPECT_THAT(processes[1], HasSubstr("policy save_on_cpu"));
  EXPECT_EQ(json["otherData"]["model"], "small:layers=3");
  // save_on_cpu copies and waits at once: its reloads are drawn, and each has its use.
  EXPECT_EQ(arrows, 3);
}

TEST_F(Export, OptionsThatDoNotGoTogether) {
  const std::string file = folder_.file("a.json");
  EXPECT_THAT(usage({"-o", file, "--table", "memory"}), HasSubstr("--table is for CSV"));
  EXPECT_THAT(usage({"-o", file, "--format", "svgz"}), HasSubstr("did you mean svg?"));
  EXPECT_THAT(usage({"-o", file, "--format", "csv", "--table", "storage"}),
              HasSubstr("did you mean storages?"));
  EXPECT_THAT(usage({"-o", file, "--set", "link.duplex=1"}), HasSubstr("--set without"));
  EXPECT_THAT(usage({"-o", file, "--plan", "p", "--policy", "resident"}), HasSubstr("exclude"));
  EXPECT_THAT(usage({"-o", trace_, "--format", "chrome"}), HasSubstr("-o"));
  EXPECT_THAT(usage({}), HasSubstr("-o"));
  const Outcome both = exported({"-o", "-", "--format", "svg", "--json"});
  EXPECT_EQ(both.code, 2);
  EXPECT_EQ(exported({"-o", folder_.file("none/a.svg")}).code, 4);
  EXPECT_EQ(export_of(folder_.file("none.json"), {"-o", file}).code, 3);
}

TEST_F(Export, APlanOverItsBudgetIsDrawnAndWarnedAbout) {
  const std::string plan = folder_.write(
      "p.json", R"({"schema": "stowage-plan/1", "budget": {"device": "1MB", "on": "requested"}})");
  const Outcome outcome = exported({"--plan", plan, "-o", folder_.file("a.svg")});
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.err, HasSubstr("does not keep its budget"));
  EXPECT_THAT(read_text(folder_.file("a.svg")), HasSubstr("budget on requested 1.00 MB"));
}

Outcome run_program(const std::string& program, std::vector<std::string> args) {
  Command command;
  command.program = program;
  command.args = std::move(args);
  return run(command);
}

bool have(const std::string& program, const std::string& argument) {
  return run_program(program, {argument}).code == 0;
}

// The highest sum of the allocations in the pickle is the table's, blocks fill their segments, the
// picture parses.
constexpr const char* kReadBack =
    "import csv, pickle, sys, xml.dom.minidom\n"
    "s = pickle.load(open(sys.argv[1], 'rb'))\n"
    "live, now, most = {}, 0, 0\n"
    "for e in s['device_traces'][0]:\n"
    "    if e['action'] == 'alloc':\n"
    "        assert e['addr'] not in live\n"
    "        live[e['addr']] = e['size']; now += e['size']\n"
    "    elif e['action'] == 'free_completed':\n"
    "        now -= live.pop(e['addr'])\n"
    "    most = max(most, now)\n"
    "for g in s['segments']:\n"
    "    assert g['total_size'] == sum(b['size'] for b in g['blocks'])\n"
    "rows = list(csv.DictReader(open(sys.argv[2], newline='')))\n"
    "assert most == max(int(r['requested_bytes']) for r in rows)\n"
    "xml.dom.minidom.parse(sys.argv[3])\n"
    "print(most)";

// Every sample, as recorded or with everything offloaded (both with STOWAGE_EVERY_CASE), in every
// format; read by what others read them with, where that is there.
TEST_F(Export, EverySampleInEveryFormat) {
  const bool python = have("/usr/bin/python3", "--version");
  const bool xmllint = have("/usr/bin/xmllint", "--version");
  int samples = 0;
  for (const auto& entry : fs::directory_iterator(STOWAGE_SOURCE_DIR "/traces/samples")) {
    if (entry.path().extension() != ".gz") continue;
    ++samples;
    for (const bool planned : {false, true}) {
      if (testing::stride() != 1 && planned != (samples % 2 == 0)) continue;
      for (const char* ending : {"json", "svg", "csv", "pickle"}) {
        const std::string file = folder_.file(std::string("out.") + ending);
        std::vector<std::string> more = {"-o", file, "--json"};
        if (planned) more.insert(more.end(), {"--policy", "save_on_cpu"});
        const Outcome outcome = export_of(entry.path().string(), more);
        ASSERT_EQ(outcome.code, 0) << entry.path() << " " << ending << ": " << outcome.err;
        EXPECT_EQ(Json::parse(outcome.out)["is_simulated"], planned);
      }
      const Json chrome = Json::parse(read_text(folder_.file("out.json")));
      EXPECT_GT(chrome["traceEvents"].size(), 100U);
      if (xmllint) {
        const Outcome read = run_program("/usr/bin/xmllint", {"--noout", folder_.file("out.svg")});
        EXPECT_EQ(read.code, 0) << read.err;
      }
      if (python) {
        const Outcome read =
            run_program("/usr/bin/python3", {"-c", kReadBack, folder_.file("out.pickle"),
                                             folder_.file("out.csv"), folder_.file("out.svg")});
        EXPECT_EQ(read.code, 0) << entry.path() << read.err;
        EXPECT_GT(read.out.size(), 4U);
      }
    }
  }
  EXPECT_GE(samples, 5);
}

}  // namespace
}  // namespace stowage::cli_tests
