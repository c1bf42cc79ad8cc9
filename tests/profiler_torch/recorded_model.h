// A model recorded in this process, as verb `profile` records it in several.
#pragma once

#include <memory>
#include <string>

#include "cli/torch/micro_batches.h"
#include "cli/torch/session.h"
#include "traces/trace.h"

namespace stowage::testing {

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
                                                         const std::string& dtype = "fp32",
                                                         const cli::Parts& parts = {});

// Fails the test (throws) with the error's text when the model cannot be recorded.
[[nodiscard]] RecordedModel record_model(const std::string& spec, std::int64_t batch,
                                         const std::string& optimizer,
                                         const std::string& dtype = "fp32",
                                         const cli::Parts& parts = {});

}  // namespace stowage::testing
