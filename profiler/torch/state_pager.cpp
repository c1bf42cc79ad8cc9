#include "profiler/torch/state_pager.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "executor/absent_storage.h"
#include "executor/device/first_line.h"
#include "executor/dispatched_op.h"
#include "executor/optimizer.h"
#include "executor/saved_view.h"
#include "simulator/schedule/schedule.h"

namespace stowage::profiler {

namespace {

using executor::NamedTensor;
using executor::StateStorage;
using executor::StreamedStorages;

c10::StorageImpl& storage_of(const StateStorage& state) {
  return *state.tensors.front()
              .tensor.unsafeGetTensorImpl()
              ->unsafe_storage()
              .unsafeGetStorageImpl();
}

bool begins_as_zeros(const StateStorage& state) {
  return executor::has_no_memory_yet(storage_of(state)) &&
         executor::begins_as_zeros(storage_of(state));
}

Bytes slot_bytes(const StateStorage& state, StatePager::Zeros zeros) {
  if (zeros == StatePager::Zeros::stay && begins_as_zeros(state)) return 0;
  constexpr Bytes kAlignment = simulator::kHostSlotAlignment;
  return (state.bytes() + kAlignment - 1) / kAlignment * kAlignment;
}

// A number that no allocation has.
std::int64_t new_serial(executor::Device& device) {
  const at::Tensor memory = device.allocate_buffer(1, executor::kOffPlanTag);
  return device.allocation_serial(memory.const_data_ptr());
}

}  // namespace

Result<std::unique_ptr<StatePager>> StatePager::create(
    executor::Device& device, const std::vector<NamedTensor>& parameters,
    const std::vector<NamedTensor>& optimizer_state, Bytes most_bytes, Zeros zeros) {
  std::vector<StateStorage> states = executor::state_storages(device, parameters);
  const std::size_t first_state = states.size();
  for (StateStorage& each : executor::state_storages(device, optimizer_state)) {
    states.push_back(std::move(each));
  }
  Bytes bytes = 0;
  for (const StateStorage& each : states) bytes += slot_bytes(each, zeros);
  Result<executor::HostArena> arena = device.host_arena(bytes);
  if (!arena) return std::move(arena).error();
  std::vector<StreamedStorages::Streamed> streamed;
  std::byte* slot = arena->data();
  for (std::size_t i = 0; i < states.size(); ++i) {
    const Bytes own = slot_bytes(states[i], zeros);
    const char* const what = i < first_state ? "parameter" : "optimizer state";
    streamed.push_back({states[i], states[i].bytes(), own > 0 ? slot : nullptr, what});
    slot += own;
  }
  std::unique_ptr<StatePager> pager(
      new StatePager(device, std::move(arena).value(), std::move(streamed), most_bytes));
  for (std::size_t i = first_state; i < states.size(); ++i) {
    pager->is_unmade_[i] = executor::has_no_memory_yet(storage_of(states[i]));
    const NamedTensor* const owner =
        executor::owner_of_state(states[i].tensors.front().name, parameters);
    if (owner == nullptr) continue;
    pager->of_parameter_.emplace(owner->tensor.unsafeGetTensorImpl(), i);
  }
  if (!pager->storages_.check()) return std::unique_ptr<StatePager>();
  pager->storages_.adopt();
  return pager;
}

StatePager::StatePager(executor::Device& device, executor::HostArena arena,
                       std::vector<StreamedStorages::Streamed> streamed, Bytes most_bytes)
    : device_(device),
      arena_(std::move(arena)),
      storages_(device, streamed, /*poison_buffers=*/false),
      most_bytes_(most_bytes),
      is_unmade_(streamed.size(), false),
      pins_(streamed.size(), 0) {
  for (std::size_t i = 0; i < streamed.size(); ++i) {
    pieces_.push_back({storages_.serial(i), streamed[i].storage.bytes()});
  }
}

StatePager::~StatePager() {
  if (!must_restore_) return;
  try {
    static_cast<void>(restore());
  } catch (const std::exception&) {
    // A device that failed: there is nothing to bring anything back to.
  }
}

Status StatePager::restore() {
  must_restore_ = false;
  try {
    device_.synchronize();
    storages_.materialise();
  } catch (const c10::OutOfMemoryError& error) {
    return Error{ErrorCode::condition,
                 "model state that was on the host while the step was recorded does not fit the "
                 "device any more, and is lost: " +
                     executor::first_line(error.what_without_backtrace()),
                 "", "", "load it again; drop gradients and optimizer state ahead of a recording"};
  }
  return Unit{};
}

bool StatePager::needs(c10::ArrayRef<const c10::IValue> inputs) const {
  bool found = false;
  for (const c10::IValue& input : inputs) {
    executor::visit_tensors(input, [&](const at::Tensor& tensor, std::int32_t) {
      const std::int32_t piece = piece_of(tensor);
      found = found || (piece >= 0 && !storages_.shows(static_cast<std::size_t>(piece), tensor));
    });
  }
  return found;
}

void StatePager::use(c10::ArrayRef<const c10::IValue> inputs) {
  std::vector<std::int32_t> pinned;  // one does not drive another one out
  try {
    for (const c10::IValue& input : inputs) {
      executor::visit_tensors(
          input, [&](const at::Tensor& tensor, std::int32_t) { pinned.push_back(pin(tensor)); });
    }
  } catch (...) {
    for (const std::int32_t piece : pinned) unpin(piece);
    throw;
  }
  for (const std::int32_t piece : pinned) unpin(piece);
}

void StatePager::use(const at::Tensor& tensor) {
  const std::int32_t found = piece_of(tensor);
  if (found < 0) return;
  const auto piece = static_cast<std::size_t>(found);
  if (storages_.is_absent(piece)) {
    load(piece);
  } else if (present_.back() != piece) {
    present_.erase(std::find(present_.begin(), present_.end(), piece));
    present_.push_back(piece);
  }
  storages_.show(piece, tensor);
  hold(piece);
}

void StatePager::hold(std::size_t piece) {
  const auto is_in = [piece](const std::vector<std::size_t>& pieces) {
    return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
  };
  if (!is_in(updating_) || is_in(held_)) return;
  held_.push_back(piece);
  const std::lock_guard lock(mutex_);
  ++pins_[piece];
}

void StatePager::load(std::size_t piece) {
  for (;;) {
    try {
      storages_.start_load(piece, executor::kOffPlanTag);
      break;
    } catch (const c10::OutOfMemoryError&) {
      if (!evict_one()) throw;
    }
  }
  storages_.finish_load(piece);
  device_.synchronize();
  present_.push_back(piece);
  present_bytes_ += pieces_[piece].bytes;
  by_buffer_[device_.allocation_serial(storages_.memory(piece))] = piece;
}

bool StatePager::evict_one() {
  const auto oldest = std::find_if(present_.begin(), present_.end(), [this](std::size_t piece) {
    const std::lock_guard lock(mutex_);
    return pins_[piece] == 0;
  });
  if (oldest == present_.end()) return false;
  evict(*oldest);
  return true;
}

void StatePager::evict(std::size_t piece) {
  by_buffer_.erase(device_.allocation_serial(storages_.memory(piece)));
  storages_.evict(piece);
  present_.erase(std::find(present_.begin(), present_.end(), piece));
  present_bytes_ -= pieces_[piece].bytes;
}

void StatePager::end_op() {
  while (has_too_many() && evict_one()) {
  }
}

void StatePager::rest() {
  while (evict_one()) {
  }
}

std::int32_t StatePager::pin(const at::Tensor& tensor) {
  const std::int32_t piece = piece_of(tensor);
  if (piece < 0) return -1;
  use(tensor);
  const std::lock_guard lock(mutex_);
  ++pins_[static_cast<std::size_t>(piece)];
  return piece;
}

void StatePager::unpin(std::int32_t piece) {
  if (piece < 0) return;
  const std::lock_guard lock(mutex_);
  --pins_[static_cast<std::size_t>(piece)];
}

std::vector<NamedTensor> StatePager::values(const std::vector<NamedTensor>& tensors) const {
  std::vector<NamedTensor> values;
  for (const NamedTensor& each : tensors) {
    const std::int32_t piece = piece_of(each.tensor);
    if (piece >= 0 && is_unmade_[static_cast<std::size_t>(piece)]) continue;
    values.push_back({each.name, piece >= 0 ? storages_.value(each.tensor) : each.tensor});
  }
  return values;
}

void StatePager::begin_update(const at::Tensor& parameter) {
  end_update();  // of one that threw
  const auto [begin, end] = of_parameter_.equal_range(parameter.unsafeGetTensorImpl());
  for (auto each = begin; each != end; ++each) updating_.push_back(each->second);
  if (const std::int32_t piece = piece_of(parameter); piece >= 0) {
    updating_.push_back(static_cast<std::size_t>(piece));
    use(parameter);
    storages_.mark_dirty(static_cast<std::size_t>(piece));
  }
  std::vector<std::size_t> made;
  for (auto each = begin; each != end; ++each) {
    const std::size_t piece = each->second;
    if (is_unmade_[piece]) made.push_back(piece);
    is_unmade_[piece] = false;
  }
  if (made.empty()) return;
  std::sort(made.begin(), made.end());
  const std::size_t events = device_.setup_history().events.size();
  for (const std::size_t piece : made) {
    pieces_[piece].serial = new_serial(device_);
    births_.push_back({events, piece});
  }
}

void StatePager::end_update() {
  for (const std::size_t piece : held_) unpin(static_cast<std::int32_t>(piece));
  held_.clear();
  updating_.clear();
}

std::int32_t StatePager::piece_of(const at::Tensor& tensor) const {
  if (!executor::is_plain(tensor)) return -1;
  const std::int32_t known = storages_.index_of(tensor);
  if (known >= 0 || by_buffer_.empty()) return known;
  const auto found = by_buffer_.find(device_.allocation_serial(tensor.storage().data()));
  return found == by_buffer_.end() ? -1 : static_cast<std::int32_t>(found->second);
}

std::optional<std::int64_t> StatePager::serial_of(const at::Tensor& tensor) const {
  const std::int32_t piece = piece_of(tensor);
  if (piece < 0) return std::nullopt;
  return pieces_[static_cast<std::size_t>(piece)].serial;
}

bool StatePager::is_piece(std::int64_t serial) const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const RawStorage& piece) { return piece.serial == serial; });
}

}  // namespace stowage::profiler
