#include "executor/streamed_storages.h"

#include <ATen/ops/from_blob.h>
#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/device/needed_wait.h"
#include "executor/holders.h"
#include "executor/kept_tensor.h"
#include "executor/saved_view.h"

namespace stowage::executor {

namespace {

constexpr std::byte kPoison{0xff};  // makes floats NaN
constexpr const char* kOrAll = " (materialise_all() for optimizer state and gradients)";

std::string absent_text(const std::string& name) {
  return "stowage: " + name +
         " is not on the device: it streams under a plan. Call PlannedStep::materialise() first" +
         kOrAll;
}

// For who holds a view of it that is none of ours.
std::string absent_view_text(const std::string& name) {
  return "stowage: a view of " + name +
         " is read while it is not on the device: it streams under a plan, which knows "
         "nothing of this read. Call PlannedStep::materialise() first" +
         kOrAll + ", or let it stay";
}

// No memory, and an error at every access.
c10::Storage make_guard(const c10::Storage& real, const std::string& name) {
  auto guard = c10::make_intrusive<c10::StorageImpl>(
      c10::StorageImpl::use_byte_size_t{}, static_cast<std::int64_t>(real.nbytes()),
      c10::DataPtr(nullptr, real.device()), /*allocator=*/nullptr, /*resizable=*/false);
  guard->release_data_and_set_meta_custom_data_ptr_error_msg_(absent_text(name));
  return c10::Storage(std::move(guard));
}

void set_storage(const at::Tensor& tensor, const c10::Storage& storage) {
  c10::TensorImpl* const impl = tensor.unsafeGetTensorImpl();
  // A parameter made by detach() forbids it, for others' sake.
  const bool allowed = impl->allow_tensor_metadata_change();
  impl->set_allow_tensor_metadata_change(true);
  impl->set_storage_keep_dtype(storage);
  impl->set_allow_tensor_metadata_change(allowed);
}

c10::StorageImpl* storage_of(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
}

}  // namespace

std::vector<StateStorage> state_storages(const Device& device,
                                         const std::vector<NamedTensor>& tensors) {
  std::vector<StateStorage> storages;
  std::unordered_map<const c10::StorageImpl*, std::size_t> rows;
  for (const NamedTensor& each : tensors) {
    if (!is_plain(each.tensor)) continue;
    c10::StorageImpl* const storage = storage_of(each.tensor);
    auto found = rows.find(storage);
    if (found == rows.end()) {
      if (!has_no_memory_yet(*storage) && device.allocation_serial(storage->data()) < 0) continue;
      found = rows.emplace(storage, storages.size()).first;
      storages.emplace_back();
    }
    storages[found->second].tensors.push_back(each);
  }
  return storages;
}

StreamedStorages::StreamedStorages(Device& device, std::vector<Streamed> storages,
                                   bool poison_buffers)
    : device_(device), poison_buffers_(poison_buffers) {
  for (Streamed& streamed : storages) {
    Entry& entry = entries_.emplace_back();
    entry.bytes = streamed.bytes;
    entry.slot = streamed.slot;
    entry.what = streamed.what;
    if (streamed.storage.tensors.empty()) {
      entry.place = Place::none;
      continue;
    }
    const c10::Storage& real = streamed.storage.tensors.front().tensor.storage();
    entry.real_before = real.unsafeGetStorageImpl();
    const bool is_made = !has_no_memory_yet(*real.unsafeGetStorageImpl());
    entry.serial = is_made ? device.allocation_serial(real.data()) : -1;
    for (const NamedTensor& each : streamed.storage.tensors) {
      add_member(entry, each.tensor, each.name);
      // A view that autograd knows holds its base, which then is one of ours too.
      if (each.tensor.is_view()) add_member(entry, at::Tensor(each.tensor._base()), each.name);
    }
    const auto index = static_cast<std::int32_t>(entries_.size() - 1);
    by_storage_.emplace(entry.real_before, index);
    for (const Member& member : entry.members) {
      by_storage_.emplace(member.guard.unsafeGetStorageImpl(), index);
    }
  }
}

void StreamedStorages::add_member(Entry& entry, const at::Tensor& tensor,
                                  const std::string& name) const {
  for (const Member& member : entry.members) {
    if (member.tensor.is_same(tensor)) return;
  }
  const std::string whole = std::string(entry.what) + " " + name;
  entry.members.push_back({tensor, whole, make_guard(tensor.storage(), whole), 0});
}

void StreamedStorages::bind(std::size_t index, const NamedTensor& tensor) {
  static_cast<void>(tensor.tensor.storage().data());  // throws where it is away
  unbind(index);
  Entry& entry = entries_[index];
  add_member(entry, tensor.tensor, tensor.name);
  entry.real_before = storage_of(tensor.tensor);
  entry.place = Place::own;
  by_storage_.insert_or_assign(entry.real_before, static_cast<std::int32_t>(index));
  by_storage_.insert_or_assign(entry.members.front().guard.unsafeGetStorageImpl(),
                               static_cast<std::int32_t>(index));
  note_clean(entry);
}

void StreamedStorages::unbind(std::size_t index) {
  Entry& entry = entries_[index];
  by_storage_.erase(entry.real_before);
  for (const Member& member : entry.members) {
    by_storage_.erase(member.guard.unsafeGetStorageImpl());
  }
  if (entry.place == Place::present) point_at_guards(entry);
  entry.members.clear();
  entry.buffer.reset();
  entry.real = c10::Storage();
  entry.real_before = nullptr;
  entry.place = Place::none;
}

at::Tensor StreamedStorages::bound(std::size_t index) const {
  const Entry& entry = entries_[index];
  return entry.members.empty() ? at::Tensor() : entry.members.front().tensor;
}

Status StreamedStorages::check() const {
  const auto refuse = [](const Entry& entry, const std::string& why, const std::string& hint) {
    return Error{ErrorCode::bad_input, entry.members.front().name + " cannot stream: " + why, "",
                 "", hint};
  };
  for (const Entry& entry : entries_) {
    if (entry.place == Place::none) continue;
    const bool is_own = entry.place == Place::own;
    const bool at_real = is_own || entry.place == Place::present;
    const c10::StorageImpl* const real =
        is_own ? storage_of(entry.members.front().tensor) : entry.real.unsafeGetStorageImpl();
    for (const Member& member : entry.members) {
      const c10::StorageImpl* const expected = at_real ? real : member.guard.unsafeGetStorageImpl();
      if (storage_of(member.tensor) != expected) {
        return refuse(entry, "it was given other memory since the plan began",
                      "change parameters behind PlannedStep::materialise() only");
      }
    }
    const c10::Storage& held = is_own ? entry.members.front().tensor.storage() : entry.real;
    const bool is_made = !has_no_memory_yet(*held.unsafeGetStorageImpl());
    if (is_own && is_made &&
        (device_.allocation_serial(held.data()) < 0 ||
         static_cast<Bytes>(held.nbytes()) != entry.bytes)) {
      return refuse(entry, "its memory is not the device's, or of another size than recorded",
                    "move it back to the device");
    }
    const std::size_t known = (is_own ? 0 : 1) + (at_real ? entry.members.size() : 0);
    if (holders(*held.unsafeGetStorageImpl(), held.use_count()) != known) {
      return refuse(entry, "somebody else holds its memory",
                    "drop views of it, and graphs of earlier steps, or let it stay");
    }
  }
  return Unit{};
}

void StreamedStorages::point_at_memory(Entry& entry, c10::DataPtr memory) {
  make_present(*entry.real.unsafeGetStorageImpl(), std::move(memory));
  for (const Member& member : entry.members) set_storage(member.tensor, entry.real);
}

void StreamedStorages::point_at_guards(Entry& entry) {
  for (const Member& member : entry.members) set_storage(member.tensor, member.guard);
  make_absent(*entry.real.unsafeGetStorageImpl(), absent_view_text(entry.members.front().name));
}

bool StreamedStorages::is_dirty(const Entry& entry) {
  return entry.written ||
         std::any_of(entry.members.begin(), entry.members.end(), [](const Member& member) {
           return KeptTensor::version_of(member.tensor) != member.clean_version;
         });
}

void StreamedStorages::note_clean(Entry& entry) {
  entry.written = false;
  for (Member& member : entry.members) {
    member.clean_version = KeptTensor::version_of(member.tensor);
  }
}

Bytes StreamedStorages::store_dirty(Entry& entry) {
  if (entry.slot == nullptr || !is_dirty(entry)) return 0;
  const CopyTicket ticket =
      device_.copy_async(CopyLane::d2h, used(entry), memory_of(entry), entry.bytes);
  if (needed(Wait::store_dirty)) device_.wait_blocking(ticket);
  note_clean(entry);
  return entry.bytes;
}

void StreamedStorages::adopt() {
  for (const Entry& entry : entries_) {
    if (entry.place == Place::own) by_storage_.erase(entry.real_before);
  }
  for (Entry& entry : entries_) {
    if (entry.place != Place::own) continue;
    entry.real_before = storage_of(entry.members.front().tensor);
    by_storage_.emplace(entry.real_before, static_cast<std::int32_t>(&entry - entries_.data()));
  }
  for (Entry& entry : entries_) {
    if (entry.place != Place::own) continue;
    if (entry.slot == nullptr) {
      entry.store = {};
    } else if (has_no_memory_yet(*storage_of(entry.members.front().tensor))) {
      fill_home(*storage_of(entry.members.front().tensor), used(entry));
    } else {
      entry.store =
          device_.copy_async(CopyLane::d2h, used(entry), entry.real_before->data(), entry.bytes);
    }
    note_clean(entry);
  }
  for (Entry& entry : entries_) {
    if (entry.place != Place::own) continue;
    if (needed(Wait::adopt)) device_.wait_blocking(entry.store);
    entry.real = entry.members.front().tensor.storage();  // behind all that throws
    entry.place = Place::absent;
    point_at_guards(entry);
  }
}

void StreamedStorages::start_load(std::size_t index, std::int64_t tag) {
  Entry& entry = entries_[index];
  STOWAGE_ASSERT(entry.place == Place::absent);
  at::Tensor buffer = device_.allocate_buffer(entry.bytes, tag);
  if (entry.place != Place::absent) return;  // materialised meanwhile, by who was called there
  entry.buffer = std::move(buffer);
  entry.place = Place::loading;
  void* const memory = entry.buffer.mutable_data_ptr();
  if (poison_buffers_) device_.fill_on_compute(memory, kPoison, entry.bytes);
  entry.load = fill(entry, memory);
}

// Of what has no home with zeros, on the compute stream: no copy.
CopyTicket StreamedStorages::fill(const Entry& entry, void* memory) {
  if (entry.slot != nullptr) {
    return device_.copy_async(CopyLane::h2d, memory, used(entry), entry.bytes);
  }
  device_.fill_on_compute(memory, std::byte{0}, entry.bytes);
  return {};
}

void StreamedStorages::finish_load(std::size_t index) {
  Entry& entry = entries_[index];
  if (needed(Wait::await_load)) device_.wait(entry.load);
  if (entry.place == Place::present) return;
  STOWAGE_ASSERT(entry.place == Place::loading);
  // The buffer keeps the memory; the parameter's storage only points at it.
  point_at_memory(entry, c10::DataPtr(entry.buffer.mutable_data_ptr(), entry.real.device()));
  entry.place = Place::present;
}

void StreamedStorages::start_store(std::size_t index) {
  Entry& entry = entries_[index];
  STOWAGE_ASSERT(entry.place == Place::present || entry.place == Place::own);
  STOWAGE_ASSERT(entry.slot != nullptr);
  entry.store = device_.copy_async(CopyLane::d2h, used(entry), memory_of(entry), entry.bytes);
  note_clean(entry);
}

Bytes StreamedStorages::evict(std::size_t index) {
  Entry& entry = entries_[index];
  STOWAGE_ASSERT(entry.place == Place::present || entry.place == Place::own);
  if (needed(Wait::evict)) device_.wait(entry.store);
  const Bytes stored = store_dirty(entry);
  if (entry.place == Place::own) entry.real = entry.members.front().tensor.storage();
  point_at_guards(entry);
  entry.buffer.reset();
  entry.place = Place::absent;
  return stored;
}

Bytes StreamedStorages::hide() {
  Bytes stored = 0;
  for (Entry& entry : entries_) {
    if (entry.place != Place::present) continue;
    stored += store_dirty(entry);
    point_at_guards(entry);
    entry.place = Place::loading;
  }
  return stored;
}

Bytes StreamedStorages::give_up() {
  Bytes stored = 0;
  for (Entry& entry : entries_) {
    if (entry.place == Place::present) {
      stored += store_dirty(entry);
      point_at_guards(entry);
    } else if (entry.place != Place::loading) {
      continue;
    }
    entry.buffer.reset();
    entry.place = Place::absent;
  }
  return stored;
}

void StreamedStorages::materialise() {
  std::exception_ptr first;
  for (const bool absent : {false, true}) {
    for (Entry& entry : entries_) {
      if (entry.place == Place::own && needed(Wait::materialise)) device_.wait(entry.store);
      const bool is_away = entry.place != Place::own && entry.place != Place::none;
      if (!is_away || (entry.place == Place::absent) != absent) continue;
      try {
        materialise(entry);
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
  }
  if (first) std::rethrow_exception(first);
}

void StreamedStorages::materialise(Entry& entry) {
  if (entry.place == Place::absent) {
    at::Tensor buffer = device_.allocate_buffer(entry.bytes, kOffPlanTag);
    entry.load = fill(entry, buffer.mutable_data_ptr());
    entry.buffer = std::move(buffer);
  }
  if (needed(Wait::materialise)) device_.wait_blocking(entry.load);
  // The storage takes the buffer's memory over, and frees it from now on.
  point_at_memory(
      entry,
      std::move(entry.buffer.storage().unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
  entry.buffer.reset();
  entry.place = Place::own;
  entry.real = c10::Storage();  // its tensors alone hold it
}

const void* StreamedStorages::memory_of(const Entry& entry) {
  const bool is_own = entry.place == Place::own;
  return (is_own ? entry.members.front().tensor.storage() : entry.real).data();
}

bool StreamedStorages::is_present(std::size_t index) const {
  const Place place = entries_[index].place;
  return place == Place::own || place == Place::present;
}

std::int32_t StreamedStorages::index_of(const at::Tensor& tensor) const {
  const auto found = by_storage_.find(storage_of(tensor));
  return found == by_storage_.end() ? -1 : found->second;
}

bool StreamedStorages::shows(std::size_t index, const at::Tensor& tensor) const {
  if (!is_present(index)) return false;
  const Entry& entry = entries_[index];
  return std::none_of(entry.members.begin(), entry.members.end(), [&](const Member& member) {
    return storage_of(tensor) == member.guard.unsafeGetStorageImpl();
  });
}

void StreamedStorages::show(std::size_t index, const at::Tensor& tensor) const {
  if (!shows(index, tensor)) set_storage(tensor, entries_[index].real);
}

const void* StreamedStorages::memory(std::size_t index) const {
  STOWAGE_ASSERT(entries_[index].place == Place::present);
  return entries_[index].real.data();
}

void StreamedStorages::check_present(std::size_t index) const {
  TORCH_CHECK(is_present(index), absent_text(entries_[index].members.front().name));
}

at::Tensor StreamedStorages::value(const at::Tensor& tensor) const {
  const std::int32_t index = index_of(tensor);
  if (index < 0 || is_present(static_cast<std::size_t>(index))) return tensor;
  return at_home(static_cast<std::size_t>(index), tensor);
}

at::Tensor StreamedStorages::at_home(std::size_t index, const at::Tensor& tensor) const {
  std::byte* const begin =
      entries_[index].slot + tensor.storage_offset() * static_cast<std::int64_t>(tensor.itemsize());
  return at::from_blob(begin, tensor.sizes(), tensor.strides(),
                       at::TensorOptions(tensor.scalar_type()));
}

void StreamedStorages::rewritten_at_home(std::size_t index) {
  Entry& entry = entries_[index];
  STOWAGE_ASSERT(entry.place == Place::absent);
  for (const Member& member : entry.members) {
    torch::autograd::impl::bump_version(member.tensor);
  }
  note_clean(entry);
}

std::vector<at::Tensor> StreamedStorages::members(std::size_t index) const {
  std::vector<at::Tensor> tensors;
  for (const Member& member : entries_[index].members) tensors.push_back(member.tensor);
  return tensors;
}

}  // namespace stowage::executor
