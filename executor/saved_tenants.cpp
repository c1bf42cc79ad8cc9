#include "executor/saved_tenants.h"

#include <c10/util/Exception.h>

#include "executor/device/needed_wait.h"
#include "executor/kept_tensor.h"
#include "traces/result.h"

namespace stowage::executor {

using simulator::CopyMode;
using simulator::Stay;
using simulator::Tenant;

namespace {

constexpr std::byte kPoison{0xff};  // makes floats NaN

// In-place writes are seen through the version counter, which a detached handle shares.
void check_not_written(const at::Tensor& source, std::int64_t version) {
  const std::int64_t now = KeptTensor::version_of(source);
  if (now != version) throw_modified_in_place(source, version, now);
}

}  // namespace

SavedTenants::SavedTenants(Device& device, const Trace& trace, const simulator::Schedule& schedule,
                           std::byte* arena, const PlannedStepOptions& options)
    : device_(device),
      trace_(trace),
      schedule_(schedule),
      arena_(arena),
      options_(options),
      homes_(schedule.tenants.size()),
      buffers_(schedule.stays.size()),
      loads_(schedule.tenants.size(), 0),
      overlapping_(schedule.tenants.size()) {
  for (const Stay& stay : schedule_.stays) {
    if (!stay.is_made) ++loads_[stay.tenant.index()];
  }
  find_overlaps();
}

void SavedTenants::find_overlaps() {
  const std::vector<Tenant>& tenants = schedule_.tenants;
  for (std::size_t a = 0; a < tenants.size(); ++a) {
    for (std::size_t b = 0; b < a && !tenants[a].has_own_home; ++b) {
      const Tenant& x = tenants[a];
      const Tenant& y = tenants[b];
      const bool apart =
          x.host_offset >= y.host_offset + y.bytes || y.host_offset >= x.host_offset + x.bytes;
      if (apart || y.has_own_home) continue;
      overlapping_[a].push_back(TenantId(b));
      overlapping_[b].push_back(TenantId(a));
    }
  }
}

void SavedTenants::begin() {
  for (std::size_t t = 0; t < homes_.size(); ++t) homes_[t].loads_left = loads_[t];
}

void SavedTenants::drop_all() {
  for (Home& home : homes_) home = {};
  for (Buffer& buffer : buffers_) buffer = {};
}

void SavedTenants::keep(TenantId tenant, const at::Tensor& tensor) {
  Home& home = homes_[tenant.index()];
  home.source = tensor.tensor_data();
  home.version = KeptTensor::version_of(tensor);
}

at::Tensor SavedTenants::view(StayId stay, const SavedView& view) const {
  const at::Tensor& buffer = buffers_[stay.index()].tensor;
  STOWAGE_ASSERT(buffer.defined());
  // All views of the buffer count versions together, so that a backward that writes into what it
  // was handed is seen at the next use of the same bytes.
  check_not_written(buffer, 0);
  at::Tensor tensor = view.over(buffer.storage(), tenant_of(stay).begin);
  tensor.unsafeGetTensorImpl()->set_version_counter(
      buffer.unsafeGetTensorImpl()->version_counter());
  return tensor;
}

at::Tensor SavedTenants::load_off_plan(TenantId id, const SavedView& view, StepReport& report) {
  const Tenant& tenant = schedule_.tenants[id.index()];
  TORCH_CHECK(homes_[id.index()].slot_valid,
              "stowage: a saved tensor is used outside the plan and its host slot was already "
              "given to another one; record the step as it now is and plan again");
  const at::Tensor buffer = device_.allocate_buffer(tenant.bytes, kOffPlanTag);
  if (tenant.bytes > 0) {
    device_.wait(homes_[id.index()].store);  // where another thread is still to leave the plan
    const CopyTicket ticket =
        device_.copy_async(CopyLane::h2d, buffer.mutable_data_ptr(), used(tenant), tenant.bytes);
    if (needed(Wait::load_off_plan)) device_.wait_blocking(ticket);
  }
  report.reloaded_bytes += tenant.bytes;
  return view.over(buffer.storage(), tenant.begin);
}

void SavedTenants::store(StayId stay, StepReport& report) {
  const TenantId id = schedule_.stays[stay.index()].tenant;
  const Tenant& tenant = schedule_.tenants[id.index()];
  const CopyMode mode = schedule_.stays[stay.index()].store_mode;
  Home& home = homes_[id.index()];
  STOWAGE_ASSERT(home.source.defined());
  for (const TenantId other : overlapping_[id.index()]) homes_[other.index()].slot_valid = false;
  home.slot_valid = true;
  report.offloaded_bytes += tenant.bytes;
  if (tenant.bytes == 0) return;
  const auto has = static_cast<Bytes>(home.source.storage().nbytes());
  TORCH_CHECK(tenant.begin + tenant.bytes <= has, "stowage: the storage of the tensor saved at ",
              trace_.string(trace_.saved.site[tenant.saved.front().index()]),
              " was made smaller behind its saving: it has ", has, " bytes, and ", tenant.begin,
              " to ", tenant.begin + tenant.bytes, " are to be copied");
  const auto* const source = static_cast<const std::byte*>(home.source.storage().data());
  if (mode == CopyMode::compute) {
    device_.copy_on_compute(used(tenant), source + tenant.begin, tenant.bytes);
    return;
  }
  home.store = device_.copy_async(CopyLane::d2h, used(tenant), source + tenant.begin, tenant.bytes);
  if (mode == CopyMode::blocking && needed(Wait::blocking_offload)) {
    device_.wait_blocking(home.store);
  }
}

void SavedTenants::evict_made(StayId stay) {
  Home& home = home_of(stay);
  if (needed(Wait::release)) device_.wait(home.store);
  // Only a version that never changed proves that the copy read what was saved.
  check_not_written(home.source, home.version);
  home.source.reset();
}

void SavedTenants::load(StayId stay, StepReport& report) {
  const Tenant& tenant = tenant_of(stay);
  const CopyMode mode = schedule_.stays[stay.index()].load_mode;
  Buffer& buffer = buffers_[stay.index()];
  buffer.tensor = device_.allocate_buffer(tenant.bytes, stay.value);
  report.reloaded_bytes += tenant.bytes;
  if (tenant.bytes == 0) return;
  void* const destination = buffer.tensor.mutable_data_ptr();
  if (options_.poison_device) device_.fill_on_compute(destination, kPoison, tenant.bytes);
  if (mode == CopyMode::compute) {
    device_.copy_on_compute(destination, used(tenant), tenant.bytes);
    return;
  }
  buffer.load = device_.copy_async(CopyLane::h2d, destination, used(tenant), tenant.bytes);
  if (mode == CopyMode::blocking && needed(Wait::blocking_reload)) {
    device_.wait_blocking(buffer.load);
  }
}

void SavedTenants::await(StayId stay) {
  if (needed(Wait::await)) device_.wait(buffers_[stay.index()].load);
}

void SavedTenants::evict(StayId stay, StepReport&) {
  if (schedule_.stays[stay.index()].is_made) return evict_made(stay);
  buffers_[stay.index()].tensor.reset();
  Home& home = home_of(stay);
  if (--home.loads_left > 0) return;
  if (!options_.poison_host) return;
  // Compute has awaited its last load, so nothing reads the slot after what compute does next.
  const Tenant& tenant = tenant_of(stay);
  device_.fill_on_compute(slot(tenant), kPoison, tenant.bytes);
  home.slot_valid = false;
}

void SavedTenants::leave_plan() {
  for (Home& home : homes_) {
    if (!home.source.defined()) continue;
    if (needed(Wait::leave_plan_offloads)) device_.wait(home.store);
    check_not_written(home.source, home.version);
    home.source.reset();
  }
  for (Buffer& buffer : buffers_) {
    if (needed(Wait::leave_plan_reloads)) device_.wait(buffer.load);
    buffer.tensor.reset();
  }
}

}  // namespace stowage::executor
