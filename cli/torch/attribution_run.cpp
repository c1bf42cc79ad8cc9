#include "cli/torch/attribution_run.h"

#include <memory>
#include <thread>
#include <utility>

#include "cli/torch/attribution_results_json.h"
#include "cli/torch/child_process.h"
#include "cli/torch/results_json.h"
#include "cli/torch/session.h"

namespace stowage::cli {

namespace {

Result<std::unique_ptr<executor::PlannedStep>> planned_step(Session& session,
                                                            const PlanInputs& plan) {
  executor::PlannedStepOptions options;
  options.structure = plan.structure;
  options.older = session.step().older_tensors();
  return executor::PlannedStep::create(session.device(), plan.trace, plan.schedule,
                                       session.step().parameters(), std::move(options));
}

struct Part {
  Status status = Unit{};
  std::string result;
  std::string file;
};

Part part_in_child(std::int64_t number, const std::vector<std::string>& arguments) {
  Part part;
  Result<ScratchFile> result = ScratchFile::create();
  if (!result) return {result.error(), "", ""};
  Result<ScratchFile> output = ScratchFile::create();
  if (!output) return {output.error(), "", ""};
  std::vector<std::string> words = {"attribute-part",
                                    "--part",
                                    std::to_string(number),
                                    "--result-fd",
                                    std::to_string(result->descriptor()),
                                    "--output-fd",
                                    std::to_string(output->descriptor())};
  words.insert(words.end(), arguments.begin(), arguments.end());
  if (Status status = run_child(words); !status) return {status.error(), "", ""};
  for (const auto& [scratch, text] :
       {std::pair{&*result, &part.result}, std::pair{&*output, &part.file}}) {
    Result<std::string> content = scratch->content();
    if (!content) return {content.error(), "", ""};
    *text = std::move(content).value();
  }
  return part;
}

}  // namespace

Result<AttributionRun> attribute_part(const RunRequest& request, const AttributionOptions& options,
                                      std::int64_t part) {
  Result<std::unique_ptr<Session>> made = Session::create(request);
  if (!made) return made.error();
  Session& session = **made;
  if (options.memory_limit) session.set_memory_limit(*options.memory_limit);
  std::unique_ptr<executor::PlannedStep> plan;
  if (options.plan != nullptr) {
    Result<std::unique_ptr<executor::PlannedStep>> planned = planned_step(session, *options.plan);
    if (!planned) return planned.error();
    plan = std::move(planned).value();
  }
  MeasureOptions measured;
  measured.course.steps = 1;
  measured.first_batch = part;
  Result<MeasuredRun> run = measure(session, plan.get(), measured);
  if (plan != nullptr) plan->leave_parameters();
  if (!run) return run.error();
  Result<std::string> file = safetensors_of(session.step().attributions());
  if (!file) return file.error();
  return AttributionRun{{std::move(run).value()}, std::move(file).value()};
}

Result<AttributionRun> attribute_on_devices(std::int64_t devices,
                                            const std::vector<std::string>& arguments) {
  std::vector<Part> parts(static_cast<std::size_t>(devices));
  std::vector<std::thread> threads;  // a child dies with the thread that started it
  for (std::size_t k = 0; k < parts.size(); ++k) {
    threads.emplace_back(
        [&, k] { parts[k] = part_in_child(static_cast<std::int64_t>(k), arguments); });
  }
  for (std::thread& thread : threads) thread.join();
  AttributionRun all;
  std::vector<std::string> files;
  for (Part& part : parts) {
    if (!part.status) return part.status.error();
    Result<MeasuredRun> run = measured_run_from_json(part.result);
    if (!run) return run.error();
    all.runs.push_back(std::move(run).value());
    files.push_back(std::move(part.file));
  }
  Result<std::string> file = concatenated(files);
  if (!file) return file.error();
  all.file = std::move(file).value();
  return all;
}

}  // namespace stowage::cli
