// PlannedParameters: the part of a Schedule that moves parameters, on a running step. Owned by
// PlannedStep::State; private to executor/planned_*.cpp.
//
//   adopt()            once, when the plan is made: what streams leaves its own memory
//   begin()            what goes on over a step's end is loaded, if it is not there from the step
//                      before; what materialise() brought back, all of it or not, is adopted first
//   load() .. evict()  the schedule's instructions
//   end()              on plan: what goes on over the step's end is hidden until begin()
//   abort()            off plan or after an exception: everything leaves, dirty bytes are stored
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/device.h"
#include "executor/model.h"
#include "executor/planned_step.h"
#include "executor/streamed_parameters.h"
#include "executor/tenant_holder.h"
#include "simulator/schedule/schedule.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

class PlannedParameters final : public TenantHolder {
 public:
  // `parameters` are the model's, in the order in which the recording knew them; may be empty when
  // nothing streams. `arena` has the schedule's size and outlives all but materialised parameters.
  // Errors (bad_input): other parameters than the trace's, by number or bytes;
  // StreamedParameters::check().
  [[nodiscard]] static Result<PlannedParameters> create(Device& device, const Trace& trace,
                                                        const simulator::Schedule& schedule,
                                                        std::vector<NamedTensor> parameters,
                                                        std::byte* arena, bool poison_buffers);

  void adopt() { streamed_.adopt(); }
  // Throws c10::Error when somebody else holds a parameter's memory, c10::OutOfMemoryError.
  void begin();
  void load(StayId stay, StepReport& report) override;
  void await(StayId stay) override;
  void store(StayId stay, StepReport& report) override;
  void evict(StayId stay, StepReport& report) override;
  void leave_plan() override { materialise(); }
  // Behind the step's last instruction. Returns the bytes stored because they were dirty.
  Bytes end() { return streamed_.hide(); }
  // Gives all up; returns the bytes stored because they were dirty. The device has been waited for.
  Bytes abort() { return streamed_.give_up(); }
  void materialise() { streamed_.materialise(); }

  [[nodiscard]] const std::vector<NamedTensor>& parameters() const { return parameters_; }
  // Those whose gradients a recording knows.
  [[nodiscard]] std::vector<at::Tensor> tensors() const;
  // Every parameter, as StreamedParameters::value() has it. The device has been waited for.
  [[nodiscard]] std::vector<NamedTensor> values() const;

  [[nodiscard]] const ArenaUse& arena_use() const { return streamed_.arena_use(); }

  // Number of the streamed parameter whose memory `tensor` shares, -1 = none.
  [[nodiscard]] std::int32_t index_of(const at::Tensor& tensor) const {
    return streamed_.index_of(tensor);
  }
  // Throws c10::Error that names it when it is not on the device. `index` -1: does nothing.
  void check_present(std::int32_t index) const {
    if (index >= 0) streamed_.check_present(static_cast<std::size_t>(index));
  }
  // One number for a storage, however often it was loaded; -1 = memory that is not the device's.
  [[nodiscard]] std::int64_t serial_of(const at::Tensor& tensor) const;
  // The optimizer is about to write it.
  void note_update(const at::Tensor& parameter) {
    const std::int32_t index = index_of(parameter);
    if (index >= 0) streamed_.mark_dirty(static_cast<std::size_t>(index));
  }
  // What is wrong with an update of `parameter` where one of `expected` was recorded; empty = right
  // or not known.
  [[nodiscard]] std::string update_difference(StorageId expected,
                                              const at::Tensor& parameter) const;

 private:
  PlannedParameters(Device& device, std::vector<NamedTensor> parameters,
                    std::vector<StreamedParameters::Streamed> streamed, bool poison_buffers)
      : device_(device),
        parameters_(std::move(parameters)),
        streamed_(device, std::move(streamed), poison_buffers) {}

  Device& device_;
  std::vector<NamedTensor> parameters_;
  // A stay of a parameter: which of the streamed ones, and whether it goes on over the step's end.
  struct ParameterTenant {
    std::int32_t streamed = -1;  // -1: the stay is no parameter's
    bool wraps = false;
  };
  [[nodiscard]] std::size_t streamed_of(StayId stay) const {
    return static_cast<std::size_t>(stays_[stay.index()].streamed);
  }

  StreamedParameters streamed_;         // in order of their tenants
  std::vector<ParameterTenant> stays_;  // by stay
  std::vector<Bytes> bytes_;            // in order of their tenants
  std::unordered_map<const at::TensorImpl*, StorageId> rows_;
  std::unordered_map<std::int32_t, std::string> names_;  // by row of storages
};

}  // namespace stowage::executor
