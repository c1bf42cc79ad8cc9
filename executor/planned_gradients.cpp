#include "executor/planned_gradients.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/holders.h"
#include "executor/planned_parameters.h"
#include "executor/saved_view.h"
#include "simulator/schedule/tenant_kind.h"

namespace stowage::executor {
namespace {

bool is_away(const at::Tensor& gradient) {
  return is_plain(gradient) && is_absent(*gradient.storage().unsafeGetStorageImpl());
}

}  // namespace

Result<PlannedGradients> PlannedGradients::create(Device& device, const Trace& trace,
                                                  const simulator::Schedule& schedule,
                                                  const std::vector<NamedTensor>& parameters,
                                                  std::byte* arena, bool poison_buffers) {
  std::vector<Gradient> gradients;
  const std::vector<StorageId> rows = parameter_rows(trace);
  std::vector<StateStorage> storages;
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.kind != &simulator::kGradient) continue;
    try {
      if (storages.empty()) storages = state_storages(device, parameters);
    } catch (const c10::Error& error) {  // of the guard of another plan
      return Error{ErrorCode::bad_input, error.what_without_backtrace(), "", "",
                   "one plan at a time has a model's parameters"};
    }
    const auto row =
        std::find(rows.begin(), rows.end(), trace.storages.parameter[tenant.storage.index()]);
    if (rows.size() != storages.size() || row == rows.end()) {
      return Error{
          ErrorCode::bad_input,
          "these are not the parameters that were recorded: " + std::to_string(storages.size()) +
              " storages, recorded were " + std::to_string(rows.size()),
          "", "",
          "pass the model's parameters in the order in which they were registered for "
          "recording"};
    }
    const auto number = static_cast<std::size_t>(row - rows.begin());
    gradients.push_back({storages[number].tensors, tenant.bytes, !tenant.previous.valid()});
    for (const NamedTensor& each : gradients.back().parameters) {
      if (!each.tensor.grad().defined() || !is_away(each.tensor.grad())) continue;
      return Error{ErrorCode::bad_input,
                   "the gradient of " + each.name + " is away under another plan", "", "",
                   "one plan at a time has a model's gradients"};
    }
  }
  PlannedGradients planned(device, schedule, simulator::kGradient,
                           std::vector<StateStorage>(gradients.size()), arena, poison_buffers);
  planned.gradients_ = std::move(gradients);
  for (const simulator::Stay& stay : schedule.stays) planned.is_made_.push_back(stay.is_made);
  planned.device_ = &device;
  return planned;
}

const at::Tensor* PlannedGradients::find(std::size_t index, const NamedTensor** parameter) const {
  for (const NamedTensor& each : gradients_[index].parameters) {
    const at::Tensor& gradient = each.tensor.grad();
    if (!gradient.defined() || !is_plain(gradient) || is_away(gradient)) continue;
    if (static_cast<Bytes>(gradient.storage().nbytes()) != gradients_[index].bytes) continue;
    if (device_->allocation_serial(gradient.storage().data()) < 0) continue;
    *parameter = &each;
    return &gradient;
  }
  return nullptr;
}

void PlannedGradients::store(StayId stay, StepReport& report) {
  if (is_made_[stay.index()]) {
    const std::size_t index = storage_of(stay);
    const NamedTensor* parameter = nullptr;
    const at::Tensor* const gradient = find(index, &parameter);
    TORCH_CHECK(gradient != nullptr, "stowage: the gradient of ",
                gradients_[index].parameters.front().name,
                " is not there where it was recorded, or has another size");
    streamed().bind(index, {parameter->name, *gradient});
  }
  StorageHolder::store(stay, report);
}

PlannedGradients::AtHome PlannedGradients::at_home(StayId stay) const {
  const std::size_t index = storage_of(stay);
  const at::Tensor gradient = streamed().bound(index);
  for (const NamedTensor& each : gradients_[index].parameters) {
    if (!each.tensor.grad().is_same(gradient)) continue;
    return {each.tensor, streamed().at_home(index, gradient), streamed().last_store(index)};
  }
  TORCH_CHECK(false, "stowage: the gradient of ", gradients_[index].parameters.front().name,
              " was exchanged before the host could update with it");
}

Bytes PlannedGradients::end() {
  const Bytes stored = StorageHolder::end();
  drop_ended();
  return stored;
}

Bytes PlannedGradients::abort() {
  const Bytes stored = StorageHolder::abort();
  drop_ended();
  return stored;
}

void PlannedGradients::drop_ended() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!gradients_[i].ends_with_step) continue;
    for (const NamedTensor& each : gradients_[i].parameters) each.tensor.mutable_grad().reset();
    if (streamed().bound(i).defined()) streamed().unbind(i);
  }
}

void PlannedGradients::drop_stale() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    const at::Tensor bound = streamed().bound(i);
    const auto& parameters = gradients_[i].parameters;
    const bool is_current =
        bound.defined() &&
        std::any_of(parameters.begin(), parameters.end(),
                    [&](const NamedTensor& each) { return each.tensor.grad().is_same(bound); });
    if (bound.defined() && !is_current) streamed().unbind(i);
  }
}

void PlannedGradients::adopt() {
  drop_stale();
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    const NamedTensor* parameter = nullptr;
    if (streamed().bound(i).defined()) {
      if (!streamed().is_present(i)) continue;  // at home
      streamed().unbind(i);                     // looked at anew
    }
    const at::Tensor* const gradient = find(i, &parameter);
    if (gradient == nullptr) continue;
    const bool is_held =
        holders(*gradient->unsafeGetTensorImpl(), gradient->use_count()) > 1 ||
        holders(*gradient->storage().unsafeGetStorageImpl(), gradient->storage().use_count()) > 1;
    if (!is_held) streamed().bind(i, {parameter->name, *gradient});
  }
  StorageHolder::adopt();
}

void PlannedGradients::materialise() {
  drop_stale();
  StorageHolder::materialise();
  // Another plan's step may drop them meanwhile; adopt() looks at what is there anew.
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (streamed().bound(i).defined() && streamed().is_present(i)) streamed().unbind(i);
  }
}

}  // namespace stowage::executor
