// CSV tables, read back by a reader of RFC 4180.
#include "report/export_csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "report/text_escape.h"
#include "tests/report/odd_names.h"
#include "tests/support/random_chain.h"
#include "tests/support/small_trace.h"

namespace stowage::report_tests {
namespace {

using report::CsvTable;
using Row = std::vector<std::string>;

// Rows end with CRLF; quotes may hold anything, doubled quotes themselves.
std::vector<Row> read_csv(const std::string& text) {
  std::vector<Row> rows;
  Row row;
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c != '"') {
        field += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        field += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      EXPECT_TRUE(field.empty()) << "a quote inside a field";
      quoted = true;
    } else if (c == ',') {
      row.push_back(std::move(field));
      field.clear();
    } else if (c == '\r') {
      EXPECT_EQ(text[i + 1], '\n');
      ++i;
      row.push_back(std::move(field));
      field.clear();
      rows.push_back(std::move(row));
      row.clear();
    } else {
      EXPECT_NE(c, '\n');
      field += c;
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_TRUE(row.empty() && field.empty()) << "the last row has no end";
  return rows;
}

std::map<std::string, std::string> named(const std::vector<Row>& rows, std::size_t row) {
  std::map<std::string, std::string> out;
  for (std::size_t i = 0; i < rows[0].size(); ++i) out[rows[0][i]] = rows[row][i];
  return out;
}

const CsvTable kAll[] = {CsvTable::memory, CsvTable::storages, CsvTable::stalls,
                         CsvTable::timeline};

// odd_names.h: 1000 B made at 0, out from 0 to 1000, released at layer b (600, then 400 ns more to
// wait), back on demand at 1500 .. 2500: figures below.
TEST(ExportCsv, TablesSayWhatHappensWhateverTheNames) {
  const Trace trace = odd_trace();
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  const report::Simulation simulation = simulated(index, plan);
  const report::StepView step = report::planned_step(trace, simulation, plan, "plan");
  for (const CsvTable table : kAll) {
    const auto rows = read_csv(report::export_csv(step, table));
    ASSERT_GT(rows.size(), 1U) << report::name_of(table);
    for (const Row& row : rows) EXPECT_EQ(row.size(), rows[0].size()) << report::name_of(table);
  }
  const auto storages = read_csv(report::export_csv(step, CsvTable::storages));
  ASSERT_EQ(storages.size(), 2U);
  const auto storage = named(storages, 1);
  EXPECT_EQ(storage.at("bytes"), "1000");
  EXPECT_EQ(storage.at("class"), "activation");
  EXPECT_EQ(storage.at("made_by"), report::valid_utf8(odd_name() + "op"));
  EXPECT_EQ(storage.at("moves"), "yes");
  EXPECT_EQ(storage.at("copy_out_start_ns"), "0");
  EXPECT_EQ(storage.at("copy_out_end_ns"), "1000");
  EXPECT_EQ(storage.at("returns"), "1");
  EXPECT_EQ(storage.at("stall_ns"), std::to_string(simulation.result.stall_ns));
  const auto stalls = read_csv(report::export_csv(step, CsvTable::stalls));
  ASSERT_EQ(stalls.size(), 1 + simulation.result.stalls.size());
  EXPECT_EQ(named(stalls, 1).at("duration_ns"), std::to_string(simulation.stalls[0].duration));
}

TEST(ExportCsv, ClassesAddUpToTheRequestedBytes) {
  const Trace trace = testing::small_trace(3);
  const auto rows = read_csv(report::export_csv(report::recorded_step(trace), CsvTable::memory));
  std::int64_t most = 0;
  for (std::size_t r = 1; r < rows.size(); ++r) {
    std::int64_t sum = 0;
    for (const auto& [name, value] : named(rows, r)) {
      const bool counter = name.starts_with("requested") || name.starts_with("active") ||
                           name.starts_with("reserved");
      if (name.ends_with("_bytes") && !counter) sum += std::stoll(value);
    }
    const auto row = named(rows, r);
    EXPECT_EQ(std::to_string(sum), row.at("requested_bytes"));
    most = std::max(most, sum);
  }
  EXPECT_EQ(most, testing::small_trace_peak(3));
}

// What runs again is of a phase of its own, in every lane's order of events.
TEST(ExportCsv, TheTimelineSaysOfWhichPhaseASpanIs) {
  std::mt19937_64 random(3);
  const Trace trace = testing::random_chain(random, 3);
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  plan.recompute = {{"layers.1"}};
  const auto simulation = report::simulate(index, plan, "");
  ASSERT_TRUE(simulation.ok()) << simulation.error().text();
  const Trace& unrolled = simulation->index->trace();
  const auto view = report::planned_step(unrolled, *simulation, plan, "plan");
  const auto rows = read_csv(report::export_csv(view, CsvTable::timeline));
  std::map<std::string, std::map<std::string, int>> count;  // by phase, layer
  for (std::size_t r = 1; r < rows.size(); ++r) {
    const auto row = named(rows, r);
    if (row.at("lane") == "compute") ++count[row.at("phase")][row.at("layer")];
  }
  ASSERT_EQ(count.count("recompute"), 1U);
  EXPECT_GT(count["recompute"]["layers.1"], 0);
  EXPECT_EQ(count["recompute"].size(), 1U);
  for (const char* layer : {"layers.0", "layers.1", "layers.2"}) {
    EXPECT_GT(count["forward"][layer], 0) << layer;
  }
  EXPECT_EQ(count.count(""), 0U);
}

TEST(ExportCsv, TablesAreKnownByName) {
  for (const CsvTable table : kAll) {
    EXPECT_EQ(report::csv_table_of(report::name_of(table)), table);
  }
  EXPECT_EQ(report::csv_table_of("storage"), std::nullopt);
}

}  // namespace
}  // namespace stowage::report_tests
