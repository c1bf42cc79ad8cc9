#include "executor/planned_optimizer_state.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "executor/optimizer.h"
#include "executor/planned_parameters.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::executor {
namespace {

constexpr const char* kHint =
    "run a step without the plan first, which makes it, or let it stay on the device; pass it in "
    "PlannedStepOptions::optimizer_state";

// The storages of each parameter's state, by row of the parameter in the trace.
std::map<StorageId, std::vector<StateStorage>> state_by_parameter(
    const Device& device, const Trace& trace, const std::vector<NamedTensor>& parameters,
    const std::vector<NamedTensor>& state) {
  std::map<std::string, StorageId> row_of;
  const std::vector<StorageId> rows = parameter_rows(trace);
  const std::vector<StateStorage> storages = state_storages(device, parameters);
  for (std::size_t i = 0; i < std::min(rows.size(), storages.size()); ++i) {
    for (const NamedTensor& each : storages[i].tensors) row_of.emplace(each.name, rows[i]);
  }
  std::map<StorageId, std::vector<StateStorage>> all;
  for (StateStorage& storage : state_storages(device, state)) {
    const NamedTensor* const owner = owner_of_state(storage.tensors.front().name, parameters);
    const auto row = owner != nullptr ? row_of.find(owner->name) : row_of.end();
    if (row != row_of.end()) all[row->second].push_back(std::move(storage));
  }
  return all;
}

Error not_there(const Trace& trace, const simulator::Tenant& tenant, const std::string& what) {
  return {ErrorCode::bad_input,
          "the plan streams optimizer state of " + tenant.kind->place(trace, tenant) + " (" +
              std::to_string(tenant.bytes) + " bytes), " + what,
          "", "", kHint};
}

// Those whose state the schedule moves. Empty where they are not the recorded ones.
std::vector<NamedTensor> parameters_with_moved_state(const Device& device, const Trace& trace,
                                                     const simulator::Schedule& schedule,
                                                     const std::vector<NamedTensor>& parameters) {
  const std::vector<StorageId> rows = parameter_rows(trace);
  const std::vector<StateStorage> storages = state_storages(device, parameters);
  std::vector<NamedTensor> moved;
  if (rows.size() != storages.size()) return moved;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool moves = std::any_of(
        schedule.tenants.begin(), schedule.tenants.end(), [&](const simulator::Tenant& tenant) {
          return tenant.kind == &simulator::kOptimizerState &&
                 trace.storages.parameter[tenant.storage.index()] == rows[i];
        });
    if (!moves) continue;
    moved.insert(moved.end(), storages[i].tensors.begin(), storages[i].tensors.end());
  }
  return moved;
}

}  // namespace

Result<PlannedOptimizerState> PlannedOptimizerState::create(
    Device& device, const Trace& trace, const simulator::Schedule& schedule,
    const std::vector<NamedTensor>& parameters, const GiveState& state, std::byte* arena,
    bool poison_buffers) {
  const bool moves = std::any_of(
      schedule.tenants.begin(), schedule.tenants.end(),
      [](const simulator::Tenant& tenant) { return tenant.kind == &simulator::kOptimizerState; });
  std::map<StorageId, std::vector<StateStorage>> there;
  try {
    if (moves && state) {
      there = state_by_parameter(
          device, trace, parameters,
          state(parameters_with_moved_state(device, trace, schedule, parameters)));
    }
  } catch (const c10::Error& error) {  // of the guard of another plan
    return Error{ErrorCode::bad_input, error.what_without_backtrace(), "", "",
                 "one plan at a time has an optimizer's state"};
  }
  std::vector<StateStorage> streamed;
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.kind != &simulator::kOptimizerState) continue;
    // Pieces of one parameter and size have the same updates.
    std::vector<StateStorage>& pieces = there[trace.storages.parameter[tenant.storage.index()]];
    if (pieces.empty()) return not_there(trace, tenant, "which is not there");
    const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const StateStorage& each) {
      return each.bytes() == tenant.bytes;
    });
    if (piece == pieces.end()) return not_there(trace, tenant, "and there is none of that size");
    streamed.push_back(std::move(*piece));
    pieces.erase(piece);
  }
  PlannedOptimizerState planned(device, schedule, simulator::kOptimizerState, streamed, arena,
                                poison_buffers);
  if (Status status = planned.check(); !status) return status.error();
  for (std::size_t i = 0; i < streamed.size(); ++i) {
    const NamedTensor* const owner = owner_of_state(streamed[i].tensors.front().name, parameters);
    planned.of_parameter_.emplace(owner->tensor.unsafeGetTensorImpl(), i);
    planned.tensors_.push_back(streamed[i].tensors);
  }
  return planned;
}

std::vector<NamedTensor> PlannedOptimizerState::at_home(const at::Tensor& parameter) const {
  std::vector<NamedTensor> state;
  const auto [begin, end] = of_parameter_.equal_range(parameter.unsafeGetTensorImpl());
  for (auto each = begin; each != end; ++each) {
    for (const NamedTensor& piece : tensors_[each->second]) {
      state.push_back({piece.name, streamed().at_home(each->second, piece.tensor)});
    }
  }
  return state;
}

void PlannedOptimizerState::note_update(const at::Tensor& parameter) {
  const auto [begin, end] = of_parameter_.equal_range(parameter.unsafeGetTensorImpl());
  for (auto each = begin; each != end; ++each) streamed().mark_dirty(each->second);
}

}  // namespace stowage::executor
