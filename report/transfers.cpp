#include "report/transfers.h"

namespace stowage::report {
namespace {

const simulator::StreamedParameter& parameter_of(const simulator::Schedule& schedule,
                                                 ResidencyId residency) {
  return schedule.parameters[schedule.residencies[residency.index()].parameter.index()];
}

}  // namespace

std::string name_of_copy(const Trace& trace, const simulator::Schedule& schedule, OffloadId offload,
                         ResidencyId residency) {
  if (residency.valid()) {
    const LayerId layer = trace.storages.layer[parameter_of(schedule, residency).storage.index()];
    return "parameter of " +
           (layer.valid() ? trace.string(trace.layers.name[layer.index()]) : std::string("-"));
  }
  if (!offload.valid()) return "-";
  const auto& saved = schedule.offloads[offload.index()].saved;
  return saved.empty() ? "-" : trace.string(trace.saved.site[saved.front().index()]);
}

Bytes bytes_of_copy(const simulator::Schedule& schedule, OffloadId offload, ResidencyId residency) {
  if (residency.valid()) return parameter_of(schedule, residency).bytes;
  return offload.valid() ? schedule.offloads[offload.index()].bytes : 0;
}

StorageId storage_of_copy(const simulator::Schedule& schedule, OffloadId offload,
                          ResidencyId residency) {
  if (residency.valid()) return parameter_of(schedule, residency).storage;
  return offload.valid() ? schedule.offloads[offload.index()].storage : StorageId{};
}

simulator::CopyMode mode_of_copy(const simulator::Schedule& schedule, OffloadId offload,
                                 ReloadId reload) {
  if (!offload.valid()) return simulator::CopyMode::lane;
  return reload.valid() ? schedule.reloads[reload.index()].copy_in
                        : schedule.offloads[offload.index()].copy_out;
}

}  // namespace stowage::report
