// PlannedParameters: the part of a Schedule that moves parameters, on a running step
// (executor/storage_holder.h), and what the step's driver has to know of parameters besides.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "executor/storage_holder.h"
#include "simulator/schedule/schedule.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

// Rows of storages of class `parameter`, in order: those of state_storages() of the parameters that
// were recorded.
[[nodiscard]] std::vector<StorageId> parameter_rows(const Trace& trace);

class PlannedParameters final : public StorageHolder {
 public:
  // `parameters` are the model's, in the order in which the recording knew them; may be empty when
  // nothing streams. `arena` has the schedule's size and outlives all but materialised parameters.
  // Errors (bad_input): other parameters than the trace's, by number or bytes;
  // StreamedStorages::check().
  [[nodiscard]] static Result<PlannedParameters> create(Device& device, const Trace& trace,
                                                        const simulator::Schedule& schedule,
                                                        std::vector<NamedTensor> parameters,
                                                        std::byte* arena, bool poison_buffers);

  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // Those whose gradients a recording knows.
  [[nodiscard]] std::vector<at::Tensor> tensors() const;
  // Of every parameter.
  [[nodiscard]] std::vector<NamedTensor> values() const { return values_of(parameters_); }

  // Number of the streamed parameter whose memory `tensor` shares, -1 = none.
  [[nodiscard]] std::int32_t index_of(const at::Tensor& tensor) const {
    return streamed().index_of(tensor);
  }
  // Throws c10::Error that names it when it is not on the device. `index` -1: does nothing.
  void check_present(std::int32_t index) const {
    if (index >= 0) streamed().check_present(static_cast<std::size_t>(index));
  }
  // Of the trace's storages; none: it is no recorded parameter.
  [[nodiscard]] StorageId row_of(const at::Tensor& parameter) const {
    const auto found = rows_.find(parameter.unsafeGetTensorImpl());
    return found == rows_.end() ? StorageId() : found->second;
  }
  // One number for a storage, however often it was loaded; -1 = memory that is not the device's.
  [[nodiscard]] std::int64_t serial_of(const at::Tensor& tensor) const;
  // The optimizer is about to write it.
  void note_update(const at::Tensor& parameter) {
    const std::int32_t index = index_of(parameter);
    if (index >= 0) streamed().mark_dirty(static_cast<std::size_t>(index));
  }
  // A streamed parameter at home, where the host is about to update it. Precondition: it is away.
  [[nodiscard]] at::Tensor update_at_home(const at::Tensor& parameter) {
    const auto index = static_cast<std::size_t>(index_of(parameter));
    streamed().rewritten_at_home(index);
    return streamed().at_home(index, parameter);
  }
  // What is wrong with an update of `parameter` where one of `expected` was recorded; empty = right
  // or not known.
  [[nodiscard]] std::string update_difference(StorageId expected,
                                              const at::Tensor& parameter) const;

 private:
  PlannedParameters(Device& device, const simulator::Schedule& schedule,
                    std::vector<NamedTensor> parameters, const std::vector<StateStorage>& storages,
                    std::byte* arena, bool poison_buffers);

  Device& device_;
  std::vector<NamedTensor> parameters_;
  std::unordered_map<const at::TensorImpl*, StorageId> rows_;
  std::unordered_map<std::int32_t, std::string> names_;  // by row of storages
};

}  // namespace stowage::executor
