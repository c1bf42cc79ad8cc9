#include "cli/torch/session.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <torch/headeronly/version.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "cli/torch/device_choice.h"
#include "cli/torch/ranks.h"
#include "executor/attribution_spec.h"
#include "executor/device/first_line.h"
#include "executor/distributed/bucket_reducer.h"
#include "executor/run_options.h"
#include "executor/saved_tensor_engine.h"
#include "executor/user_code.h"
#include "simulator/step/unroll.h"

namespace stowage::cli {

namespace {

// Of the step, as far as all ranks have the same.
std::string step_text(const RunRequest& request) {
  return request.spec.text() + " batch=" + std::to_string(request.spec.batch) + " " +
         request.spec.dtype + " autocast=" + executor::to_string(request.autocast) +
         " optimizer=" + executor::to_string(request.optimizer) + " grad-scaler=" +
         (request.grad_scaler ? executor::to_string(*request.grad_scaler) : "none") +
         " seed=" + std::to_string(request.seed) +
         " micro-batches=" + simulator::parts_text(request.micro_batches);
}

Result<const executor::RankGroup*> group_of(const RunRequest& request) {
  if (request.ranks == nullptr) return static_cast<const executor::RankGroup*>(nullptr);
  const Result<executor::RankGroup*> group = request.ranks->group();
  if (!group) return group.error();
  if (Status status = request.ranks->check_same("step", step_text(request), "the step"); !status) {
    return status.error();
  }
  return static_cast<const executor::RankGroup*>(*group);
}

executor::TrainingOptions training_options(const RunRequest& request,
                                           const executor::RankGroup* group) {
  executor::TrainingOptions options{.optimizer = request.optimizer,
                                    .seed = request.seed,
                                    .file = request.spec.file(),
                                    .autocast = request.autocast,
                                    .grad_scaler = request.grad_scaler};
  if (group == nullptr) return options;
  executor::RankStore& store = request.ranks->store();
  options.share = {.rank = store.rank(), .ranks = store.ranks()};
  options.make_reduction = [group](const std::vector<executor::NamedTensor>& parameters) {
    return std::make_unique<executor::BucketReducer>(*group, parameters);
  };
  return options;
}

}  // namespace

Error current_exception_error() {
  try {
    throw;
  } catch (const c10::OutOfMemoryError& error) {
    return {ErrorCode::condition,
            "out of memory: " + executor::first_line(error.what_without_backtrace()), "", "",
            "plan for a smaller --budget, or use a smaller model or batch"};
  } catch (const c10::Error& error) {
    return {ErrorCode::bad_input, executor::first_line(error.what_without_backtrace()), "", "", ""};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::environment, "out of host memory", "", "", "use a smaller model or batch"};
  } catch (const std::exception& error) {
    return {ErrorCode::internal, executor::first_line(error.what()), "", "", ""};
  } catch (...) {
    return {ErrorCode::internal, executor::thrown_text(), "", "", ""};
  }
}

Session::Session(RunRequest request, executor::Device& device, const executor::RankGroup* group,
                 std::unique_ptr<executor::TrainingStep> step)
    : request_(std::move(request)),
      group_(group),
      device_(&device),
      step_(std::move(step)),
      division_(request_.micro_batches) {
  if (!request_.micro_batches.empty()) divided_ = executor::InstalledDriver(division_);
}

Result<std::unique_ptr<Session>> Session::create(const RunRequest& request) {
  Result<executor::Device*> device = open_device(request.device);
  if (!device) return device.error();
  executor::install_saved_tensor_engine();
  if (Status status = executor::apply_run_options({.deterministic = request.deterministic,
                                                   .tf32 = request.spec.dtype == "tf32",
                                                   .threads = request.threads});
      !status) {
    return status.error();
  }
  return guarded([&]() -> Result<std::unique_ptr<Session>> {
    const Result<const executor::RankGroup*> group = group_of(request);
    if (!group) return group.error();
    Result<std::unique_ptr<executor::Model>> model =
        executor::make_model(request.spec, (*device)->torch_device(), request.seed);
    if (!model) return model.error();
    Result<std::vector<executor::AttributedLayers>> attributed =
        executor::parse_attribution(executor::attribution_of(request.spec));
    if (!attributed) return attributed.error();
    executor::TrainingOptions options = training_options(request, *group);
    options.attributed = std::move(attributed).value();
    auto step =
        std::make_unique<executor::TrainingStep>(**device, std::move(model).value(), options);
    return std::unique_ptr<Session>(new Session(request, **device, *group, std::move(step)));
  });
}

std::optional<std::int64_t> Session::collectives() const {
  if (group_ == nullptr) return std::nullopt;
  return group_->collectives();
}

std::int64_t Session::ranks() const {
  return request_.ranks == nullptr ? 1 : request_.ranks->store().ranks();
}

profiler::StepFunctions Session::functions() {
  profiler::StepFunctions functions;
  functions.prepare = [this](std::int64_t index) { step_->prepare(index); };
  functions.step = [this] {
    last_loss_ = step_->step();
    const std::vector<std::string> unasked = division_.unasked();
    TORCH_CHECK(unasked.empty(), "the model has no part named '", unasked.front(),
                "' that runs in micro-batches");
  };
  functions.registered = [this] {
    return profiler::RegisteredTensors{step_->parameters(), step_->buffers(),
                                       step_->model().inputs(), step_->optimizer_state()};
  };
  functions.make_state = [this] { static_cast<void>(step_->state_maker()(step_->parameters())); };
  functions.gradients_last = !request_.optimizer.in_backward;
  functions.casts_parameters = !executor::recorded_text(request_.autocast).empty();
  if (step_->host_updater() && !request_.optimizer.keeps_gradients) {
    functions.updates = profiler::host_update_kind(request_.optimizer, step_->parameters());
  }
  return functions;
}

Run Session::run() const {
  Run run;
  run.source = "recorded";
  run.model = request_.spec.text();
  run.batch = request_.spec.batch;
  run.seq = request_.seq();
  run.dtype = request_.spec.dtype;
  run.autocast = executor::recorded_text(request_.autocast);
  run.optimizer = executor::to_string(request_.optimizer);
  if (request_.grad_scaler) run.grad_scaler = executor::to_string(*request_.grad_scaler);
  run.seed = request_.seed;
  run.steps = 1;
  run.threads = at::get_num_threads();
  run.deterministic = request_.deterministic;
  return run;
}

Environment Session::environment() const {
  Environment env;
  env.torch = TORCH_VERSION;
  device_->describe(env);
  return env;
}

void Session::set_memory_limit(Bytes limit) {
  device_->set_memory_limit(limit);
}

}  // namespace stowage::cli
