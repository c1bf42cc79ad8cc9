// StatePager: model state (parameters, optimizer state) on the host while a step is recorded that
// does not fit the device with it. No plan is known yet, so each piece comes to the device when an
// op needs it, and those that were not used for longest leave when they are many. A trace does not
// show it: every piece has one serial, and is there all the time.
//
//   use()         ahead of an op: what it is given is on the device; the CPU waits for the copies
//   end_op()      behind an outermost op: more than `most_bytes` leave
//   pin(), unpin()  around the time in which something holds the memory of a piece
//   rest()        between steps: everything leaves
//   restore()     behind the last step: everything comes back
//
// Optimizer state that no step has made yet (executor/absent_storage.h) begins with zeros, as a
// rule. Zeros::stay: it has no home then, since a recording needs no training: each of its loads is
// zeros again, and the host need not hold it. Zeros::are_trained: it has one, as all else.
//
// Used by one thread at a time, but for unpin().
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "executor/device/device.h"
#include "executor/device/host_arena.h"
#include "executor/model.h"
#include "executor/streamed_storages.h"
#include "profiler/assembly/raw_pass.h"
#include "traces/result.h"

namespace stowage::profiler {

class StatePager {
 public:
  enum class Zeros : std::uint8_t { stay, are_trained };

  // Takes what these have in memory of their own; `optimizer_state` by names as in
  // RegisteredTensors. `device` outlives it. Null where it cannot: somebody else holds the memory
  // of one (StreamedStorages::check()). Errors: of Device::host_arena().
  [[nodiscard]] static Result<std::unique_ptr<StatePager>> create(
      executor::Device& device, const std::vector<executor::NamedTensor>& parameters,
      const std::vector<executor::NamedTensor>& optimizer_state, Bytes most_bytes,
      Zeros zeros = Zeros::stay);
  StatePager(const StatePager&) = delete;
  StatePager& operator=(const StatePager&) = delete;
  // As restore(), where keep_until_restored() was asked for and nobody did (an exception), as far
  // as there is room.
  ~StatePager();

  void keep_until_restored() { must_restore_ = true; }

  // Whether use() would have something to load.
  [[nodiscard]] bool needs(c10::ArrayRef<const c10::IValue> inputs) const;
  // c10::OutOfMemoryError where there is no room for one even when the others have left.
  void use(c10::ArrayRef<const c10::IValue> inputs);
  void use(const at::Tensor& tensor);
  [[nodiscard]] bool has_too_many() const { return present_bytes_ > most_bytes_; }
  void end_op();
  void rest();
  // Brings everything back into memory of its own; what has no home is zeros. Error (condition):
  // there is no room for all of it, and what has none is lost with the pager.
  [[nodiscard]] Status restore();
  // The piece that the tensor lies in, which is on the device until as many unpin() of it; -1 = it
  // lies in none.
  [[nodiscard]] std::int32_t pin(const at::Tensor& tensor);
  void unpin(std::int32_t piece);

  // The same tensors, those that are away as CPU tensors over their homes, valid until they are
  // used; those that no update has made yet are left out. Precondition: the device was waited for
  // (Device::synchronize); Zeros::are_trained.
  [[nodiscard]] std::vector<executor::NamedTensor> values(
      const std::vector<executor::NamedTensor>& tensors) const;

  // A parameter is about to be updated: it is there, and it and its state are going to be written.
  // What is there of them stays until end_update().
  void begin_update(const at::Tensor& parameter);
  void end_update();

  // Of the piece that the tensor lies in, -1 for state ahead of its first update; none: it lies in
  // none.
  [[nodiscard]] std::optional<std::int64_t> serial_of(const at::Tensor& tensor) const;
  [[nodiscard]] const std::vector<RawStorage>& pieces() const { return pieces_; }
  [[nodiscard]] bool is_piece(std::int64_t serial) const;
  // Whether that is the memory in which a piece is on the device.
  [[nodiscard]] bool is_buffer(std::int64_t serial) const { return by_buffer_.contains(serial); }

  // State that the first step would have made: behind so many events of the device's history.
  struct Birth {
    std::size_t events = 0;
    std::size_t piece = 0;
  };
  [[nodiscard]] const std::vector<Birth>& births() const { return births_; }

 private:
  StatePager(executor::Device& device, executor::HostArena arena,
             std::vector<executor::StreamedStorages::Streamed> streamed, Bytes most_bytes);

  [[nodiscard]] std::int32_t piece_of(const at::Tensor& tensor) const;
  void load(std::size_t piece);
  // The one that was not used for longest; false: there is none.
  bool evict_one();
  void evict(std::size_t piece);
  void hold(std::size_t piece);

  executor::Device& device_;
  executor::HostArena arena_;
  executor::StreamedStorages storages_;
  Bytes most_bytes_;
  std::vector<RawStorage> pieces_;  // their classes and parameters are not known here
  std::vector<bool> is_unmade_;     // optimizer state ahead of its first update
  std::unordered_multimap<const at::TensorImpl*, std::size_t> of_parameter_;
  std::vector<Birth> births_;
  bool must_restore_ = false;
  Bytes present_bytes_ = 0;
  std::vector<std::size_t> present_;                         // the last one used is last
  std::unordered_map<std::int64_t, std::size_t> by_buffer_;  // serials of what is present
  std::mutex mutex_;                                         // guards pins_
  std::vector<int> pins_;
  std::vector<std::size_t> updating_;  // pieces of the update that goes on
  std::vector<std::size_t> held_;      // of these, those that are pinned
};

}  // namespace stowage::profiler
