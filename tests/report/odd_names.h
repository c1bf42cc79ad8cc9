// A planned step whose names no format likes.
#pragma once

#include <string>

#include "report/simulation.h"
#include "report/step_view.h"
#include "tests/report/report_case.h"

namespace stowage::report_tests {

inline std::string odd_name() {
  return "<a href=\"x\">&'b',\"c\";\r\nsecond line\t\x01 \xFF=1+1 " + std::string(500, 'q') + " €";
}

inline Trace odd_trace() {
  testing::MicroTrace t;
  t.begin_layer(odd_name());
  t.begin_op(odd_name() + "op");
  const auto a = t.alloc(1000);
  const auto s = t.pack(a);
  t.run(100).end_op();
  t.let_go(a);
  t.end_layer(odd_name());
  t.run(500).begin_layer("b");
  t.end_layer("b");
  t.run(500).backward();
  t.begin_op(odd_name() + "backward");
  t.drop(t.unpack(s));
  t.free(a);
  t.run(50).end_op();
  Trace trace = t.finish();
  trace.run.model = odd_name();
  return trace;
}

// Everything offloaded, back on demand.
inline report::Simulation simulated(const simulator::StepIndex& index, simulator::Plan& plan) {
  plan.saved.emplace_back();
  plan.saved[0].decision = simulator::Decision::offload;
  plan.saved[0].reload.kind = simulator::ReloadPoint::Kind::unpack;
  plan.budget.device = 5000;
  plan.budget.on = simulator::PeakKind::requested;
  auto simulation = report::simulate(index, plan, "");
  EXPECT_TRUE(simulation.ok()) << (simulation.ok() ? "" : simulation.error().text());
  return std::move(*simulation);
}

}  // namespace stowage::report_tests
