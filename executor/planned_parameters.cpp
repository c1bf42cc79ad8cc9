#include "executor/planned_parameters.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "simulator/schedule/tenant_kind.h"

namespace stowage::executor {

using simulator::Tenant;

namespace {

Error other_parameters(const std::string& what) {
  return {ErrorCode::bad_input, "these are not the parameters that were recorded: " + what, "", "",
          "pass the model's parameters in the order in which they were registered for recording"};
}

Status check_rows(const Trace& trace, const std::vector<StorageId>& rows,
                  const std::vector<StateStorage>& storages) {
  if (rows.size() != storages.size()) {
    return other_parameters(std::to_string(storages.size()) + " storages, recorded were " +
                            std::to_string(rows.size()));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Bytes recorded = trace.storages.bytes[rows[i].index()];
    if (storages[i].bytes() == recorded) continue;
    return other_parameters(storages[i].tensors.front().name + " has " +
                            std::to_string(storages[i].bytes()) + " bytes, recorded were " +
                            std::to_string(recorded));
  }
  return Unit{};
}

}  // namespace

std::vector<StorageId> parameter_rows(const Trace& trace) {
  std::vector<StorageId> rows;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) rows.emplace_back(s);
  }
  return rows;
}

PlannedParameters::PlannedParameters(Device& device, const simulator::Schedule& schedule,
                                     std::vector<NamedTensor> parameters,
                                     const std::vector<StateStorage>& storages, std::byte* arena,
                                     bool poison_buffers)
    : StorageHolder(device, schedule, simulator::kParameter, storages, arena, poison_buffers),
      device_(device),
      parameters_(std::move(parameters)) {}

Result<PlannedParameters> PlannedParameters::create(Device& device, const Trace& trace,
                                                    const simulator::Schedule& schedule,
                                                    std::vector<NamedTensor> parameters,
                                                    std::byte* arena, bool poison_buffers) {
  const std::vector<StorageId> rows = parameter_rows(trace);
  std::vector<StateStorage> storages;
  try {
    storages = state_storages(device, parameters);
  } catch (const c10::Error& error) {  // of the guard of another plan
    return Error{ErrorCode::bad_input, error.what_without_backtrace(), "", "",
                 "one plan at a time has a model's parameters"};
  }
  const Status same = check_rows(trace, rows, storages);
  std::vector<StateStorage> streamed;
  for (const Tenant& each : schedule.tenants) {
    if (each.kind != &simulator::kParameter) continue;
    if (!same) return same.error();
    const auto row = std::find(rows.begin(), rows.end(), each.storage);
    STOWAGE_ASSERT(row != rows.end());
    streamed.push_back(storages[static_cast<std::size_t>(row - rows.begin())]);
  }
  PlannedParameters planned(device, schedule, std::move(parameters), streamed, arena,
                            poison_buffers);
  for (std::size_t i = 0; same && i < rows.size(); ++i) {
    for (const NamedTensor& each : storages[i].tensors) {
      planned.rows_.emplace(each.tensor.unsafeGetTensorImpl(), rows[i]);
    }
    planned.names_.emplace(rows[i].value, storages[i].tensors.front().name);
  }
  if (Status status = planned.check(); !status) return status.error();
  return planned;
}

std::vector<at::Tensor> PlannedParameters::tensors() const {
  std::vector<at::Tensor> tensors;
  for (const NamedTensor& each : parameters_) {
    if (rows_.contains(each.tensor.unsafeGetTensorImpl())) tensors.push_back(each.tensor);
  }
  return tensors;
}

std::int64_t PlannedParameters::serial_of(const at::Tensor& tensor) const {
  const std::int32_t index = index_of(tensor);
  if (index < 0) return device_.allocation_serial(tensor.storage().data());
  return streamed().serial(static_cast<std::size_t>(index));
}

std::string PlannedParameters::update_difference(StorageId expected,
                                                 const at::Tensor& parameter) const {
  if (rows_.empty()) return "";
  const auto found = rows_.find(parameter.unsafeGetTensorImpl());
  if (found != rows_.end() && found->second == expected) return "";
  const auto name_of_row = [&](StorageId row) {
    const auto name = names_.find(row.value);
    return name == names_.end() ? std::string("another one") : name->second;
  };
  return "is of " + name_of_row(found == rows_.end() ? StorageId() : found->second) +
         ", recorded was " + name_of_row(expected);
}

}  // namespace stowage::executor
