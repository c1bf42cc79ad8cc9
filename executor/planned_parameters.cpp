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

std::vector<StorageId> parameter_rows(const Trace& trace) {
  std::vector<StorageId> rows;
  for (std::size_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages.storage_class[s] == StorageClass::parameter) rows.emplace_back(s);
  }
  return rows;
}

Status check_rows(const Trace& trace, const std::vector<StorageId>& rows,
                  const std::vector<ParameterStorage>& storages) {
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

Result<PlannedParameters> PlannedParameters::create(Device& device, const Trace& trace,
                                                    const simulator::Schedule& schedule,
                                                    std::vector<NamedTensor> parameters,
                                                    std::byte* arena, bool poison_buffers) {
  const std::vector<StorageId> rows = parameter_rows(trace);
  std::vector<ParameterStorage> storages;
  try {
    storages = parameter_storages(device, parameters);
  } catch (const c10::Error& error) {  // of the guard of another plan
    return Error{ErrorCode::bad_input, error.what_without_backtrace(), "", "",
                 "one plan at a time has a model's parameters"};
  }
  const Status same = check_rows(trace, rows, storages);
  std::vector<StreamedParameters::Streamed> streamed;
  std::vector<std::int32_t> row_of(schedule.tenants.size(), -1);
  for (std::size_t t = 0; t < schedule.tenants.size(); ++t) {
    const Tenant& each = schedule.tenants[t];
    if (each.kind != &simulator::kParameter) continue;
    if (!same) return same.error();
    const auto row = std::find(rows.begin(), rows.end(), each.storage);
    STOWAGE_ASSERT(row != rows.end());
    const ParameterStorage& storage = storages[static_cast<std::size_t>(row - rows.begin())];
    STOWAGE_ASSERT(each.bytes == storage.bytes());
    row_of[t] = static_cast<std::int32_t>(streamed.size());
    streamed.push_back({storage, arena + each.host_offset});
  }
  PlannedParameters planned(device, std::move(parameters), std::move(streamed), poison_buffers);
  for (const simulator::Stay& stay : schedule.stays) {
    planned.stays_.push_back({row_of[stay.tenant.index()], stay.wraps});
  }
  for (const Tenant& each : schedule.tenants) {
    if (each.kind == &simulator::kParameter) planned.bytes_.push_back(each.bytes);
  }
  for (std::size_t i = 0; same && i < rows.size(); ++i) {
    for (const NamedTensor& each : storages[i].tensors) {
      planned.rows_.emplace(each.tensor.unsafeGetTensorImpl(), rows[i]);
    }
    planned.names_.emplace(rows[i].value, storages[i].tensors.front().name);
  }
  if (Status status = planned.streamed_.check(); !status) return status.error();
  return planned;
}

void PlannedParameters::begin() {
  const Status status = streamed_.check();
  TORCH_CHECK(status.ok(), "stowage: ", status.error().text());
  streamed_.adopt();
  for (std::size_t i = 0; i < stays_.size(); ++i) {
    if (stays_[i].streamed < 0 || !stays_[i].wraps) continue;
    const std::size_t parameter = streamed_of(StayId(i));
    if (streamed_.is_absent(parameter)) {
      streamed_.start_load(parameter, static_cast<std::int64_t>(i));
    }
    streamed_.finish_load(parameter);
  }
}

void PlannedParameters::load(StayId stay, StepReport& report) {
  const std::size_t parameter = streamed_of(stay);
  streamed_.start_load(parameter, stay.value);
  report.loaded_bytes += bytes_[parameter];
}

void PlannedParameters::await(StayId stay) {
  streamed_.finish_load(streamed_of(stay));
}

void PlannedParameters::store(StayId stay, StepReport& report) {
  const std::size_t parameter = streamed_of(stay);
  streamed_.start_store(parameter);
  report.stored_bytes += bytes_[parameter];
}

void PlannedParameters::evict(StayId stay, StepReport& report) {
  report.unplanned_stored_bytes += streamed_.evict(streamed_of(stay));
}

std::vector<NamedTensor> PlannedParameters::values() const {
  std::vector<NamedTensor> values;
  for (const NamedTensor& each : parameters_) {
    values.push_back({each.name, streamed_.value(each.tensor)});
  }
  return values;
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
  return streamed_.serial(static_cast<std::size_t>(index));
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
