#include "executor/storage_holder.h"

#include <c10/util/Exception.h>

#include <utility>

#include "simulator/schedule/tenant_kind.h"

namespace stowage::executor {
namespace {

std::vector<StreamedStorages::Streamed> in_slots(const simulator::Schedule& schedule,
                                                 const simulator::TenantKind& kind,
                                                 const std::vector<StateStorage>& storages,
                                                 std::byte* arena) {
  std::vector<StreamedStorages::Streamed> streamed;
  for (const simulator::Tenant& tenant : schedule.tenants) {
    if (tenant.kind != &kind) continue;
    const StateStorage& storage = storages[streamed.size()];
    STOWAGE_ASSERT(storage.tensors.empty() || tenant.bytes == storage.bytes());
    streamed.push_back({storage, tenant.bytes, arena + tenant.host_offset, kind.name});
  }
  return streamed;
}

}  // namespace

StorageHolder::StorageHolder(Device& device, const simulator::Schedule& schedule,
                             const simulator::TenantKind& kind,
                             const std::vector<StateStorage>& storages, std::byte* arena,
                             bool poison_buffers)
    : streamed_(device, in_slots(schedule, kind, storages, arena), poison_buffers) {
  std::vector<std::int32_t> row_of(schedule.tenants.size(), -1);
  for (std::size_t t = 0; t < schedule.tenants.size(); ++t) {
    if (schedule.tenants[t].kind != &kind) continue;
    row_of[t] = static_cast<std::int32_t>(bytes_.size());
    bytes_.push_back(schedule.tenants[t].bytes);
  }
  STOWAGE_ASSERT(bytes_.size() == storages.size());
  for (const simulator::Stay& stay : schedule.stays) {
    stays_.push_back({row_of[stay.tenant.index()], stay.wraps});
  }
}

void StorageHolder::put_away() {
  const Status status = streamed_.check();
  TORCH_CHECK(status.ok(), "stowage: ", status.error().text());
  streamed_.adopt();
}

void StorageHolder::begin() {
  for (std::size_t i = 0; i < stays_.size(); ++i) {
    if (stays_[i].storage < 0 || !stays_[i].wraps) continue;
    const std::size_t storage = storage_of(StayId(i));
    if (streamed_.is_absent(storage)) streamed_.start_load(storage, static_cast<std::int64_t>(i));
    streamed_.finish_load(storage);
  }
}

void StorageHolder::load(StayId stay, StepReport& report) {
  const std::size_t storage = storage_of(stay);
  streamed_.start_load(storage, stay.value);
  report.loaded_bytes += bytes_[storage];
}

void StorageHolder::await(StayId stay) {
  streamed_.finish_load(storage_of(stay));
}

void StorageHolder::store(StayId stay, StepReport& report) {
  const std::size_t storage = storage_of(stay);
  streamed_.start_store(storage);
  report.stored_bytes += bytes_[storage];
}

void StorageHolder::evict(StayId stay, StepReport& report) {
  report.unplanned_stored_bytes += streamed_.evict(storage_of(stay));
}

std::vector<NamedTensor> StorageHolder::values_of(const std::vector<NamedTensor>& tensors) const {
  std::vector<NamedTensor> values;
  for (const NamedTensor& each : tensors) {
    values.push_back({each.name, streamed_.value(each.tensor)});
  }
  return values;
}

}  // namespace stowage::executor
