#include "cli/torch/recorded_values.h"

#include <utility>

#include "cli/torch/device_choice.h"
#include "cli/torch/run_request.h"

namespace stowage::cli {

namespace {

class Checker {
 public:
  explicit Checker(const ReadFrom& from) : from_(from) {}

  void number(const char* key, std::int64_t value, std::int64_t most) {
    if (value == 0 || (value >= 1 && value <= most)) return;
    note(from_.run + "/" + key,
         usage_error(std::string(key) + " " + std::to_string(value) + " is not allowed",
                     "a whole number from 1 to " + std::to_string(most)));
  }

  template <class Parse>
  void text(const char* key, const std::string& value, const Parse& parse) {
    if (value.empty()) return;
    if (const auto read = parse(value); !read) note(from_.run + "/" + key, read.error());
  }

  void device(const std::string& name) {
    if (name.empty()) return;
    if (const auto chosen = choose_device(name); !chosen) note(from_.device, chosen.error());
  }

  // What is a mistake in a command is one in this file; a GPU that is missing is not.
  void note(const std::string& pointer, Error error) {
    if (error_ || error.code != ErrorCode::usage) return;
    error.code = ErrorCode::bad_input;
    error.file = from_.file;
    error.pointer = pointer;
    error_ = std::move(error);
  }

  [[nodiscard]] Status status() const {
    if (error_) return *error_;
    return Unit{};
  }

 private:
  const ReadFrom& from_;
  std::optional<Error> error_;
};

}  // namespace

Run said_by(const simulator::PlanTarget& target) {
  Run run;
  run.model = target.model;
  run.batch = target.batch;
  run.seq = target.seq;
  run.dtype = target.dtype;
  run.autocast = target.autocast;
  run.optimizer = target.optimizer;
  run.grad_scaler = target.grad_scaler;
  run.threads = target.threads;
  run.seed = 1;
  return run;
}

ReadFrom read_from_plan(const std::string& file) {
  return {file, "/for", "/for/device"};
}

ReadFrom read_from_trace(const std::string& file) {
  return {file, "/run", "/env/device"};
}

Status check_recorded_values(const Run& run, const std::string& device, const ReadFrom& from) {
  Checker checker(from);
  const auto spec_of = [&](const std::string& dtype) -> Result<executor::ModelSpec> {
    Result<executor::ModelSpec> spec = executor::parse_model_spec(run.model);
    if (!spec) return spec;
    if (run.batch > 0) spec->batch = run.batch;
    if (!dtype.empty()) spec->dtype = dtype;
    return executor::complete_model_spec(*spec);
  };
  checker.number("batch", run.batch, kMostBatch);
  checker.number("threads", run.threads, kMostThreads);
  checker.device(device);
  checker.text("model", run.model, [&](const std::string&) { return spec_of(""); });
  if (!run.model.empty()) checker.text("dtype", run.dtype, spec_of);
  checker.text("autocast", run.autocast, executor::parse_autocast);
  checker.text("optimizer", run.optimizer, executor::parse_optimizer);
  checker.text("grad_scaler", run.grad_scaler, executor::parse_grad_scaler);
  return checker.status();
}

}  // namespace stowage::cli
