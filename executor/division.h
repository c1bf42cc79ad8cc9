// Which tails of a step run in parts of the batch, for steps without a plan: the reference of a
// planned one, and recordings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/step_driver.h"
#include "simulator/step/structure.h"

namespace stowage::executor {

// A driver that does nothing else; others are put in front of it.
class Division final : public StepDriver {
 public:
  explicit Division(std::vector<simulator::Structure::Parts> parts) : parts_(std::move(parts)) {}

  std::optional<std::int32_t> parts(std::string_view segment) override;
  // Those that no step has asked for by now: it has no such tail.
  [[nodiscard]] std::vector<std::string> unasked() const;

  std::unique_ptr<torch::autograd::SavedVariableHooks> make_hooks() override { return nullptr; }
  void layer_event(LayerEvent /*event*/, std::string_view /*path*/) override {}
  void backward_begin() override {}
  void backward_end() override {}
  void parameter_update(UpdateEvent /*event*/, const at::Tensor& /*parameter*/) override {}

 private:
  std::vector<simulator::Structure::Parts> parts_;
  std::set<std::string, std::less<>> asked_;
};

// In how many parts `segment` runs; 1 where none of `all` says.
[[nodiscard]] std::int32_t parts_among(const std::vector<simulator::Structure::Parts>& all,
                                       std::string_view segment);

}  // namespace stowage::executor
