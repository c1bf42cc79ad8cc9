// RunRequest: which step to run: model, sizes, precision, optimizer, seed, threads, device. From
// the command line, or from what a trace or a plan says it was made for.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "executor/autocast.h"
#include "executor/grad_scaler.h"
#include "executor/model_spec.h"
#include "executor/optimizer_spec.h"
#include "simulator/step/structure.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::cli {

inline constexpr std::int64_t kMostBatch = 1'000'000'000;
inline constexpr std::int64_t kMostThreads = 1024;

class Ranks;

struct RunRequest {
  executor::ModelSpec spec;    // complete: every option written out
  std::string device = "cpu";  // or "cuda"
  executor::Autocast autocast = executor::Autocast::none;
  executor::OptimizerSpec optimizer{};
  std::optional<executor::GradScalerSpec> grad_scaler{};
  std::int64_t seed = 1;
  std::int64_t threads = 0;  // 0 = PyTorch's choice
  bool deterministic = true;
  std::vector<simulator::Structure::Parts> micro_batches{};  // empty: all at once
  // Those that this process is one of: its batches are a share of theirs, and gradients are
  // reduced. Null: it trains alone.
  std::shared_ptr<Ranks> ranks{};

  [[nodiscard]] std::int64_t seq() const;  // 0 when the model has none
  // The same request as arguments of a child process: parse() of them gives it back. Of a rank,
  // for the next child.
  [[nodiscard]] std::vector<std::string> arguments() const;
};

// The options on the command line; absent ones are absent.
struct RunFlags {
  std::optional<std::string> device;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> seq;
  std::optional<std::string> dtype;
  std::optional<std::string> autocast;
  std::optional<std::string> optimizer;
  std::optional<std::string> grad_scaler;
  std::optional<std::string> attribute;
  std::optional<std::int64_t> seed;
  std::optional<std::int64_t> threads;
  bool distributed = false;
  std::optional<std::string> group;  // of a child process
  std::shared_ptr<Ranks> ranks;      // as_rank() fills it

  // For a step that these make.
  void declare(CommandLine& line);
  // For the step of a plan or a recording: what is not given is what `says` says ("the
  // recording's"). `threads_default` likewise.
  void declare(CommandLine& line, const std::string& says, const std::string& threads_default);
  // --distributed; `shows` an example of the verb.
  void declare_ranks(CommandLine& line, const std::string& shows);
  // Of a child process.
  void declare_group(CommandLine& line);

 private:
  void declare_all(CommandLine& line, const std::string& says, const std::string& threads_default);
};

// What shells offer where a model is asked for.
[[nodiscard]] std::vector<std::string> model_words();

// As a recording writes what they say of the training: options in one order, no autocast as empty.
[[nodiscard]] Result<RunFlags> recorded_form(RunFlags flags);

// Errors (usage): what parse_model_spec and the models refuse, a flag that contradicts the spec, a
// device that this build or machine does not have (environment); the model's file, or one that its
// options name, is an output of the command.
[[nodiscard]] Result<RunRequest> make_request(const std::string& model, const RunFlags& flags,
                                              CommandFiles& files);

// The step that a recording was made of, on the device that it was made on ("cpu" or "cuda"; empty
// = not said); of a batch, dtype or optimizer that is not said (0, empty), the model's own. Flags
// that say something else are a usage error.
[[nodiscard]] Result<RunRequest> make_request(const Run& run, const std::string& device,
                                              const RunFlags& flags, CommandFiles& files);

}  // namespace stowage::cli
