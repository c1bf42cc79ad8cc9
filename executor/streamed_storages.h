// StreamedStorages: storages of parameters, of an optimizer's state or of gradients that are on the
// device only for a while. Each one's bytes live in a slot of host memory; a load brings them into
// a buffer, a store takes them back, an eviction gives the buffer up. Knows no plan:
// executor/storage_holder.h says when.
//
//   own memory --adopt, evict--> absent --start_load--> loading --finish_load--> present
//   present    --evict--> absent, --hide--> loading
//   any place  --materialise--> own memory
// One that another tensor is in each step (a gradient) has none ahead of bind(), and is in its own
// memory behind that.
//
// What PyTorch sees. The StorageImpl stays the same one all the time, so that views that autograd
// saved see the bytes of the next load, and keep no device memory alive. While it is not present it
// has its size and no memory, and every access to it, through a view that somebody kept, throws
// c10::Error with its name, on the CPU, ahead of any kernel. The known tensors point at a *guard*
// then: a storage of the same size that always throws. Nothing here counts as a write (version
// counters stay), and no op observer sees it.
//
// A storage is *dirty* when a version counter of it differs from the one at its last copy to the
// host, or mark_dirty() said so since; its eviction then copies first. A write that counts no
// version (through .data() or a raw pointer) is not seen by itself.
//
// Not thread-safe; on a GPU everything is issued on the compute stream and the two lanes.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/arena_use.h"
#include "executor/device/device.h"
#include "executor/model.h"
#include "traces/result.h"

namespace stowage::executor {

// One storage and all known tensors that lie in it: one as a rule, several when parameters are tied
// or flattened.
struct StateStorage {
  std::vector<NamedTensor> tensors;
  [[nodiscard]] Bytes bytes() const {
    return static_cast<Bytes>(tensors.front().tensor.storage().nbytes());
  }
};

// The storages of these tensors, each once, in order of their first one; those without bytes on the
// device have none, but for what has no memory yet (executor/absent_storage.h). Of a model's
// parameters this is the order of the rows of class `parameter` in a trace.
[[nodiscard]] std::vector<StateStorage> state_storages(const Device& device,
                                                       const std::vector<NamedTensor>& tensors);

class StreamedStorages {
 public:
  struct Streamed {
    StateStorage storage;  // without tensors: what bind() will give
    Bytes bytes = 0;
    // So much host memory, of nobody else; null: it has no home, so that what is written to it is
    // lost when it leaves, and it comes back as zeros.
    std::byte* slot = nullptr;
    const char* what = "parameter";  // ahead of its name, in messages
  };

  // `device` and the slots outlive it, but for slots after materialise(). Every storage is in its
  // own memory until adopt().
  StreamedStorages(Device& device, std::vector<Streamed> storages, bool poison_buffers);

  // Error (bad_input): somebody else holds the memory of a storage (a view of it, a graph of an
  // earlier step that was not dropped), or it was given other memory, which it may be in its own
  // place only (as large, and the device's). Throws what a guard of another owner throws.
  [[nodiscard]] Status check() const;

  // Copies what is in its own memory out and frees that memory, in order; returns when done. What
  // has no memory yet fills its slot.
  // Precondition: check(). When a copy throws, what was not done stays in its own memory and can be
  // adopted again; copies may be under way then.
  void adopt();
  // Allocates a buffer with this tag and queues the copy into it. Precondition: absent. Throws
  // c10::OutOfMemoryError; then nothing changed.
  void start_load(std::size_t index, std::int64_t tag);
  // Compute issued from now on finds it present. Does nothing else when it is already.
  void finish_load(std::size_t index);
  // Queues the copy to its slot of one that is present, or in its own memory.
  void start_store(std::size_t index);
  // Compute waits for the store, then the memory is given up. Returns the bytes that had to be
  // copied first, the CPU waiting, because they were dirty: 0 when every write was stored.
  Bytes evict(std::size_t index);
  // The storage is this tensor's from now on, in its own memory, whoever else holds it; what it was
  // before is given up. Precondition: it has the bytes, of the device. Throws c10::Error where its
  // memory is away under another plan.
  void bind(std::size_t index, const NamedTensor& tensor);
  // It is none any more.
  void unbind(std::size_t index);
  // The tensor of bind(); undefined behind unbind().
  [[nodiscard]] at::Tensor bound(std::size_t index) const;
  // It is about to be written without a version (PyTorch's SGD writes through .data()).
  void mark_dirty(std::size_t index) { entries_[index].written = true; }
  // Nobody can touch what is present until its next finish_load(): for the time between steps, in
  // which host slots have all bytes. Returns the bytes stored first because they were dirty.
  Bytes hide();
  // Gives up all memory that is not a storage's own, after what is dirty was stored; returns the
  // bytes stored so. For after an exception: allocates nothing. Precondition: the device was waited
  // for (Device::synchronize).
  Bytes give_up();
  // Brings everything back into memory of its own: first what is on the device, which needs no new
  // memory, then the rest. May throw c10::OutOfMemoryError, the first one: everything that has room
  // is back by then and stays, and the rest is absent as before: nothing is lost.
  void materialise();

  [[nodiscard]] bool is_present(std::size_t index) const;  // in its own memory or loaded
  // Without device memory: start_load() may be called.
  [[nodiscard]] bool is_absent(std::size_t index) const {
    return entries_[index].place == Place::absent;
  }
  // The one whose storage this tensor shares, -1 = none.
  [[nodiscard]] std::int32_t index_of(const at::Tensor& tensor) const;
  // Whether a tensor that lies in it can be read.
  [[nodiscard]] bool shows(std::size_t index, const at::Tensor& tensor) const;
  // A tensor of this storage that was made while it was away (a detached one) sees its memory, too.
  // Precondition: present.
  void show(std::size_t index, const at::Tensor& tensor) const;
  // Its memory on the device. Precondition: present.
  [[nodiscard]] const void* memory(std::size_t index) const;
  // Throws c10::Error that names it when a tensor that shares its storage cannot be read.
  void check_present(std::size_t index) const;
  // The serial of its memory at its first adoption: one number for all its buffers.
  [[nodiscard]] std::int64_t serial(std::size_t index) const { return entries_[index].serial; }
  // The tensor itself while it is present, else a CPU tensor over its slot: not to be written,
  // valid until the next load. Precondition: it has a home; copies are done (Device::synchronize).
  [[nodiscard]] at::Tensor value(const at::Tensor& tensor) const;
  // A CPU tensor in the form of `tensor`, which lies in this storage, over its slot: for who
  // updates it there. Precondition: it has a home.
  [[nodiscard]] at::Tensor at_home(std::size_t index, const at::Tensor& tensor) const;
  // Its slot is being given other bytes: versions are raised, as of a write, and the slot has them.
  // Precondition: absent.
  void rewritten_at_home(std::size_t index);
  // The last start_store().
  [[nodiscard]] CopyTicket last_store(std::size_t index) const { return entries_[index].store; }
  // The tensors of a storage, as they were given; empty where bind() gives them.
  [[nodiscard]] std::vector<at::Tensor> members(std::size_t index) const;
  // Of all copies since it was made, where the slots lie in one arena.
  [[nodiscard]] const ArenaUse& arena_use() const { return arena_use_; }

 private:
  enum class Place : std::uint8_t { none, own, absent, loading, present };
  struct Member {
    at::Tensor tensor;
    std::string name;
    c10::Storage guard;
    std::int64_t clean_version = 0;  // the host slot has its bytes of this version
  };
  struct Entry {
    std::vector<Member> members;  // every TensorImpl that may point at the storage
    const char* what = "";
    c10::Storage real;  // null in its own memory: then nobody but the members holds it
    const c10::StorageImpl* real_before = nullptr;  // the last one, for by_storage_
    Bytes bytes = 0;
    std::byte* slot = nullptr;
    std::int64_t serial = -1;
    Place place = Place::own;
    at::Tensor buffer;
    CopyTicket load;
    CopyTicket store;
    bool written = false;  // since the last copy to the host, as mark_dirty() says
  };

  void add_member(Entry& entry, const at::Tensor& tensor, const std::string& name) const;
  void point_at_memory(Entry& entry, c10::DataPtr memory);
  void point_at_guards(Entry& entry);
  // Of one that is present, or in its own memory.
  [[nodiscard]] static const void* memory_of(const Entry& entry);
  [[nodiscard]] static bool is_dirty(const Entry& entry);
  static void note_clean(Entry& entry);
  Bytes store_dirty(Entry& entry);
  CopyTicket fill(const Entry& entry, void* memory);
  // The slot of one, for a copy of all of it.
  std::byte* used(const Entry& entry) {
    arena_use_.copied(entry.slot, entry.bytes);
    return entry.slot;
  }
  void materialise(Entry& entry);

  Device& device_;
  std::vector<Entry> entries_;
  bool poison_buffers_;
  ArenaUse arena_use_;
  std::unordered_map<const c10::StorageImpl*, std::int32_t> by_storage_;  // real ones and guards
};

}  // namespace stowage::executor
