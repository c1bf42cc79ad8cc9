// A model recorded in this process, as verb `profile` records it in several.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cli/torch/micro_batches.h"
#include "cli/torch/session.h"
#include "traces/trace.h"

namespace stowage::testing {

// In which numbers a model trains, as the command line says it.
struct Precision {
  std::string dtype = "fp32";
  std::string autocast{};     // empty = none
  std::string grad_scaler{};  // likewise
  Precision() = default;
  Precision(std::string its_dtype, std::string its_autocast = {},  // NOLINT: a dtype alone is one
            std::string scaler = {})
      : dtype(std::move(its_dtype)),
        autocast(std::move(its_autocast)),
        grad_scaler(std::move(scaler)) {}
  Precision(const char* its_dtype) : dtype(its_dtype) {}  // NOLINT
};

struct RecordedModel {
  std::unique_ptr<cli::Session> session;
  std::shared_ptr<const Trace> trace;
};

// A session that has run nothing, one intra-op thread. Throws with the error's text when there is
// none.
[[nodiscard]] std::unique_ptr<cli::Session> make_fresh_session(const std::string& spec,
                                                               std::int64_t batch,
                                                               const std::string& optimizer);
// A session that has run as many steps as one that was recorded, one intra-op thread. Throws with
// the error's text when there is none.
[[nodiscard]] std::unique_ptr<cli::Session> make_session(const std::string& spec,
                                                         std::int64_t batch,
                                                         const std::string& optimizer,
                                                         const Precision& precision = {},
                                                         const cli::Parts& parts = {});

// Fails the test (throws) with the error's text when the model cannot be recorded.
[[nodiscard]] RecordedModel record_model(const std::string& spec, std::int64_t batch,
                                         const std::string& optimizer,
                                         const Precision& precision = {},
                                         const cli::Parts& parts = {});

}  // namespace stowage::testing
