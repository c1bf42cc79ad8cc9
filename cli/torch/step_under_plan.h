// A step in which what a plan computes again runs again, and nothing moves: for recordings of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/torch/run_request.h"
#include "cli/torch/session.h"
#include "profiler/torch/passes.h"
#include "profiler/torch/step_recorder.h"
#include "simulator/schedule/schedule.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

// The files of a plan, as the command was given them.
struct PlanFiles {
  std::string plan;
  std::optional<std::string> trace;  // else where the plan says
};

class StepUnderPlan {
 public:
  // Errors: those of load_plan_inputs(); usage where the plan's trace is not to be found.
  [[nodiscard]] static Result<StepUnderPlan> load(const PlanFiles& files,
                                                  const std::optional<std::string>& model,
                                                  const RunFlags& flags, CommandFiles& command);

  [[nodiscard]] const RunRequest& request() const { return request_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  // The plan moves something, which a recording leaves where it is.
  [[nodiscard]] bool moves() const { return moves_; }
  // Something of the plan runs again or in micro-batches; else it is the plain step.
  [[nodiscard]] bool changes_step() const { return !structure_.empty(); }
  // What a recorder has to do again.
  [[nodiscard]] const profiler::RunsAgain& again() const { return again_; }
  // The session's steps, under an executor that keeps everything: for steps that nobody observes.
  // The functions hold it; the session outlives them.
  [[nodiscard]] Result<profiler::StepFunctions> functions(Session& session) const;

 private:
  RunRequest request_;
  std::shared_ptr<const Trace> trace_;
  simulator::Structure structure_;
  simulator::Schedule nothing_moves_;
  profiler::RunsAgain again_;
  std::vector<std::string> warnings_;
  bool moves_ = false;
};

}  // namespace stowage::cli
