// A program with folders named as Stowage's, which plans and simulates a recorded step.
#include <stowage/plan.h>
#include <stowage/result.h>
#include <stowage/simulate.h>
#include <stowage/trace.h>

#include <cstdio>

#include "executor/device/cpu_device.h"
#include "simulator/step/step_index.h"
#include "traces/trace.h"

namespace {

int fail(const stowage::Error& error) {
  std::fprintf(stderr, "%s\n", error.text().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const consumer::Trace own;
  std::printf("Stowage %s beside %s, %d\n", stowage::kVersion.data(), consumer::cpu_device(),
              own.lines + consumer::StepIndex().first);
  const auto loaded = stowage::load_trace(argv[1]);
  if (!loaded) return fail(loaded.error());
  const stowage::simulator::StepIndex index(loaded->trace);
  stowage::planner::PlanRequest request;
  request.budget_on = stowage::simulator::PeakKind::requested;
  request.budget = loaded->trace.peaks.requested.front() * 3 / 4;
  const auto outcome = stowage::planner::make_plan(index, request);
  if (!outcome) return fail(outcome.error());
  const auto plan =
      stowage::simulator::plan_from_json(stowage::simulator::plan_to_json(outcome->plan), "plan");
  if (!plan) return fail(plan.error());
  const auto simulation = stowage::report::simulate(index, *plan, "plan");
  if (!simulation) return fail(simulation.error());
  return simulation->result.peak_requested == outcome->predicted.peak_requested ? 0 : 1;
}
