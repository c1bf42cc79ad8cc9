#include "tests/profiler_torch/twin_sessions.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "tests/profiler_torch/test_device.h"
#include "tests/support/schedule_parts.h"

namespace stowage::testing {

std::unique_ptr<torch::autograd::SavedVariableHooks> WatchedDriver::make_hooks() {
  return next_ == nullptr ? nullptr : next_->make_hooks();
}

void WatchedDriver::layer_event(executor::LayerEvent event, std::string_view path) {
  static constexpr const char* kNames[] = {"forward_begin ", "forward_end ", "backward_begin ",
                                           "backward_end "};
  at_(kNames[static_cast<std::size_t>(event)] + std::string(path));
  if (next_ != nullptr) next_->layer_event(event, path);
}

void WatchedDriver::backward_begin() {
  if (next_ != nullptr) next_->backward_begin();
}

void WatchedDriver::backward_end() {
  if (next_ != nullptr) next_->backward_end();
}

void WatchedDriver::parameter_update(executor::UpdateEvent event, const at::Tensor& parameter) {
  at_(event == executor::UpdateEvent::begin ? "update_begin" : "update_end");
  if (next_ != nullptr) next_->parameter_update(event, parameter);
}

Bits bits_of(executor::Device& device, const std::vector<executor::NamedTensor>& tensors) {
  Bits bits;
  for (const auto& each : tensors) bits.push_back(fetch(device, each.tensor));
  return bits;
}

TwinSessions::TwinSessions(const std::string& spec, std::int64_t batch,
                           const std::string& optimizer, const Precision& precision,
                           const cli::Parts& parts)
    : twin_(make_session(spec, batch, optimizer, precision, parts)),
      recorded_(record_model(spec, batch, optimizer, precision, parts)),
      index_(*recorded_.trace) {
  const auto copy = [&](const auto& to, const auto& from) {
    if (to.size() != from.size()) throw std::runtime_error("the twins differ");
    const Bits bits = bits_of(device(), from);
    for (std::size_t i = 0; i < to.size(); ++i) store(device(), to[i].tensor, bits[i]);
  };
  copy(twin().parameters(), planned().parameters());
  copy(twin().optimizer_state(), planned().optimizer_state());
}

simulator::Schedule TwinSessions::stream(simulator::ParameterPlan::Stream stream,
                                         std::optional<std::int32_t> prefetch) const {
  simulator::Decisions decisions;
  decisions.saved.resize(trace().saved.size());
  decisions.parameters.shard_of.assign(trace().storages.size(), -1);
  decisions.parameters.stream = stream;
  decisions.parameters.prefetch = prefetch;
  std::map<std::int32_t, std::int32_t> shards;  // by layer
  for (std::size_t s = 0; s < trace().storages.size(); ++s) {
    if (trace().storages.storage_class[s] != StorageClass::parameter) continue;
    const auto next = static_cast<std::int32_t>(shards.size());
    decisions.parameters.shard_of[s] =
        shards.try_emplace(trace().storages.layer[s].value, next).first->second;
  }
  auto lowering = simulator::lower(index_, decisions);
  if (!lowering) throw std::runtime_error(lowering.error().text());
  if (testing::parameters_of(lowering->schedule).empty())
    throw std::runtime_error("nothing streams");
  return std::move(lowering->schedule);
}

std::unique_ptr<executor::PlannedStep> TwinSessions::plan(const simulator::Schedule& schedule,
                                                          executor::OffPlan off_plan,
                                                          const simulator::Structure& structure) {
  executor::PlannedStepOptions options;
  options.structure = structure;
  options.off_plan = off_plan;
  options.older = planned().older_tensors();
  options.optimizer_state = planned().state_maker();
  options.update_on_host = planned().host_updater();
  options.poison_host = true;
  options.poison_device = true;
  auto plan =
      executor::PlannedStep::create(device(), recorded_.trace, testing::in_test_memory(schedule),
                                    planned().parameters(), options);
  if (!plan) throw std::runtime_error(plan.error().text());
  return std::move(plan).value();
}

TwinSessions::Result TwinSessions::run_planned(executor::PlannedStep& plan, std::int64_t k,
                                               const WatchedDriver::Watch& watch) {
  Result result;
  planned().prepare(k);
  device().synchronize();
  device().reset_peak();
  try {
    plan.begin_step();
    std::optional<WatchedDriver> driver;
    if (watch) driver.emplace(&plan, watch);
    result.loss = planned().step();
  } catch (const std::exception& error) {
    result.error = error.what();
    plan.abort_step();
    return result;
  }
  auto report = plan.end_step();
  if (!report) throw std::runtime_error(report.error().text());
  result.report = *report;
  result.peak = report->memory.peak_requested;
  return result;
}

TwinSessions::Result TwinSessions::run_twin(std::int64_t k, const WatchedDriver::Watch& watch) {
  Result result;
  twin().prepare(k);
  device().synchronize();
  device().reset_peak();
  try {
    std::optional<WatchedDriver> driver;
    if (watch) driver.emplace(nullptr, watch);
    result.loss = twin().step();
  } catch (const std::exception& error) {
    result.error = error.what();
    device().synchronize();
    return result;
  }
  result.peak = device().memory().peak_requested;
  return result;
}

void expect_same_bits(executor::Device& device, const std::vector<executor::NamedTensor>& ours,
                      const std::vector<executor::NamedTensor>& twins) {
  ASSERT_EQ(ours.size(), twins.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto a = fetch(device, ours[i].tensor);
    const auto b = fetch(device, twins[i].tensor);
    ASSERT_EQ(a.size(), b.size()) << ours[i].name;
    std::size_t different = 0;
    for (std::size_t at = 0; at < a.size(); ++at) different += a[at] == b[at] ? 0U : 1U;
    EXPECT_EQ(different, 0U) << "of " << a.size() << " bytes of " << ours[i].name;
  }
}

void TwinSessions::expect_same_state(executor::PlannedStep& plan, bool gradients) {
  expect_same_bits(device(), plan.values(), twin().parameters());
  expect_same_bits(device(), plan.values(planned().optimizer_state()), twin().optimizer_state());
  if (gradients) expect_same_bits(device(), plan.values(planned().gradients()), twin().gradients());
}

TwinSessions::Result TwinSessions::expect_same_step(executor::PlannedStep& plan, std::int64_t k) {
  const Result reference = run_twin(k);
  const Result result = run_planned(plan, k);
  EXPECT_EQ(result.error, "");
  EXPECT_EQ(result.loss, reference.loss);
  expect_same_state(plan);
  return result;
}

}  // namespace stowage::testing
