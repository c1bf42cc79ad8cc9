// The picture is a document that every XML reader takes, and shows the true peak.
#include "report/export_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "report/colours.h"
#include "report/svg_writer.h"
#include "tests/report/odd_names.h"
#include "tests/support/small_trace.h"
#include "traces/trace_file.h"

namespace stowage::report_tests {
namespace {

using ::testing::HasSubstr;

// Tags nest, attributes are quoted and stand once, entities are known, no stray markup. Enough for
// what SvgWriter can write; returns what is wrong.
std::string xml_problem(const std::string& text) {
  const auto entities_known = [](const std::string& part) {
    for (std::size_t at = part.find('&'); at != std::string::npos; at = part.find('&', at + 1)) {
      const std::string rest = part.substr(at, 6);
      if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
          !rest.starts_with("&quot;") && !rest.starts_with("&#39;")) {
        return false;
      }
    }
    return true;
  };
  std::vector<std::string> open;
  std::size_t at = text.find("?>");
  if (at == std::string::npos) return "no declaration";
  at += 2;
  while (at < text.size()) {
    const std::size_t tag = text.find('<', at);
    const std::string between = text.substr(at, tag - at);
    if (between.find('>') != std::string::npos) return "a stray >";
    if (!entities_known(between)) return "an unknown entity in: " + between;
    if (tag == std::string::npos) break;
    const std::size_t end = text.find('>', tag);
    if (end == std::string::npos) return "an open tag";
    std::string inside = text.substr(tag + 1, end - tag - 1);
    at = end + 1;
    if (inside.starts_with("/")) {
      if (open.empty() || open.back() != inside.substr(1)) return "closes " + inside;
      open.pop_back();
      continue;
    }
    const bool closed = inside.ends_with("/");
    if (closed) inside.pop_back();
    if (!entities_known(inside)) return "an unknown entity in: " + inside;
    if (std::count(inside.begin(), inside.end(), '"') % 2 != 0) return "a quote in: " + inside;
    if (inside.find('<') != std::string::npos) return "a < in: " + inside;
    if (!closed) open.push_back(inside.substr(0, inside.find(' ')));
  }
  return open.empty() ? "" : "never closes " + open.back();
}

TEST(ExportSvg, OddNamesStayNames) {
  const Trace trace = odd_trace();
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  const report::Simulation simulation = simulated(index, plan);
  const std::string svg =
      report::export_svg(report::planned_step(trace, simulation, plan, odd_name()));
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;a href=&quot;x&quot;&gt;&amp;&#39;b&#39;"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr("<a href")));
  EXPECT_THAT(svg, HasSubstr("budget on requested 5.00 kB"));
  EXPECT_THAT(svg, HasSubstr("time since step begin"));
  EXPECT_THAT(svg, HasSubstr("memory (bytes, 1000-based)"));
}

TEST(ExportSvg, ComputeHasTheColoursOfItsFamilies) {
  testing::MicroTrace t;
  for (const char* op : {"aten::mm", "aten::gelu"}) {
    t.run(100).begin_op(op);
    t.run(1000).end_op();
  }
  const Trace trace = t.finish();
  const std::string svg = report::export_svg(report::recorded_step(trace));
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("matrix products and convolutions"));
  EXPECT_THAT(svg, HasSubstr("elementwise"));
  EXPECT_THAT(svg, ::testing::Not(HasSubstr(">optimizer<")));
  for (const auto& [op, family] : {std::pair{"aten::mm", report::WorkFamily::matrix},
                                   {"aten::gelu", report::WorkFamily::elementwise}}) {
    const std::size_t tip = svg.find(std::string("<title>") + op);
    ASSERT_NE(tip, std::string::npos) << op;
    const std::string rectangle = svg.substr(svg.rfind("<rect", tip), tip);
    EXPECT_THAT(rectangle.substr(0, rectangle.find('>')), HasSubstr(report::colour_of(family)))
        << op;
  }
}

// A spike of no duration in a step of a second is still as high as the peak says: its column's top
// is where the peak is drawn, at 1 / 1.05 of the plot's height.
TEST(ExportSvg, APeakOfNoDurationIsDrawnAtFullHeight) {
  testing::MicroTrace t;
  t.existing(100);
  t.run(500'000'000);
  const auto spike = t.alloc(900);
  t.free(spike);
  t.run(500'000'000);
  const Trace trace = t.finish();
  const std::string svg = report::export_svg(report::recorded_step(trace));
  EXPECT_EQ(xml_problem(svg), "");
  // The plot is 300 high and ends at 384: 384 - 300 * 1000 / 1050 = 98.29.
  EXPECT_THAT(svg, HasSubstr("V98.29"));
  EXPECT_THAT(svg, HasSubstr("peak 1.00 kB"));
}

TEST(ExportSvg, AnEmptyLaneSaysWhy) {
  const Trace trace = testing::small_trace(2);
  const std::string svg = report::export_svg(report::recorded_step(trace));
  EXPECT_EQ(xml_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("a recorded step says nothing of stalls"));
  EXPECT_THAT(svg, HasSubstr("the trace has no device times"));
}

// A recording of a GPU has two clocks: launches run ahead of kernels.
TEST(ExportSvg, SaysWhoseTimeItIs) {
  const auto loaded = load_trace(std::string(STOWAGE_SOURCE_DIR) +
                                 "/traces/samples/mlp-l6-fp32-h200.trace.json.gz");
  ASSERT_TRUE(loaded.ok());
  const Trace& trace = loaded->trace;
  EXPECT_THAT(report::export_svg(report::recorded_step(trace)),
              HasSubstr("time since step begin: of the curve and the phases as the host launched, "
                        "of kernels and copies on the GPU"));
  const simulator::StepIndex index(trace);
  simulator::Plan plan;
  const report::Simulation simulation = simulated(index, plan);
  EXPECT_THAT(report::export_svg(report::planned_step(trace, simulation, plan, "planned")),
              HasSubstr("time since step begin, on the GPU<"));
  const Trace on_cpu = testing::small_trace(2);
  EXPECT_THAT(report::export_svg(report::recorded_step(on_cpu)),
              HasSubstr("time since step begin<"));
}

TEST(ExportSvg, IsADocumentOnRandomPlans) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomCase c(seed);
    report::Simulation simulation;
    simulation.schedule = c.schedule;
    simulation.result = c.result;
    simulation.detail = c.detail;
    simulation.stalls = report::explain_stalls(c.index, c.schedule, c.result, c.detail);
    const std::string svg =
        report::export_svg(report::planned_step(c.trace, simulation, simulator::Plan{}, "random"));
    EXPECT_EQ(xml_problem(svg), "") << seed;
    EXPECT_LT(svg.size(), 600'000U);
  }
}

TEST(SvgWriter, NumbersHaveTwoDecimalsAtMost) {
  EXPECT_EQ(report::svg_number(12), "12");
  EXPECT_EQ(report::svg_number(12.5), "12.5");
  EXPECT_EQ(report::svg_number(0.126), "0.13");
  EXPECT_EQ(report::svg_number(-0.001), "0");
}

}  // namespace
}  // namespace stowage::report_tests
