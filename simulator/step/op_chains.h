// Chains of single ops: which saved tensors a few ops of the forward make again from what is there
// then, without running a layer, and why others cannot be made so.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/grouped.h"
#include "simulator/step/op_spans.h"
#include "simulator/step/segments.h"
#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::simulator {

// What a recording says of its ops. It must outlive this. Cost: O(recording).
class ChainFinder {
 public:
  explicit ChainFinder(const Trace& recording);

  // Why the storage of a saved tensor cannot be made again: it is no tensor of the step's own on
  // the device; the primitive op that made it does not return it; that op or one that writes into
  // it in place later is none that may run by itself (element-wise ones, reductions, normalisation,
  // casts, joins, products of batches: none that draws random numbers or keeps state) or writes
  // something else. Cost: O(its uses).
  [[nodiscard]] Status check(SavedId saved) const;

  // Of a primitive op.
  [[nodiscard]] std::pair<EventId, EventId> events_of(OpId op) const {
    return {spans_.begin(op), spans_.end(op)};
  }

  // The chains that make the tensors saved at these sites again, sorted by trigger. A chain makes
  // what backward asks for first, and on its way everything else of theirs that it comes by; what
  // it needs besides is held from forward on when it is saved anyway, or takes fewer bytes than
  // what it would be made of. Errors (bad_input), each naming the site, at "/ops/N": no such site;
  // those of check(); its storage is saved at another site that is not made again, or backward does
  // not ask for it, or does so ahead of a pack, or it is written behind its pack; what the chain
  // reads is written before it would run; it would be of a thousand ops. Cost: O(recording).
  [[nodiscard]] Result<std::vector<Segment>> find(const std::vector<std::string>& sites) const;

 private:
  struct Chain {
    std::set<StorageId> made;
    std::set<OpId> ops;
    std::vector<TensorId> inputs;
  };
  // Of a list of sites.
  struct GivenUp {
    std::vector<bool> storages;     // by storage
    std::vector<std::size_t> site;  // by saved tensor: its place in the list, or the list's size
  };
  // The op that makes it and those that write into it, in order.
  [[nodiscard]] std::vector<OpId> makers_of(StorageId storage) const;
  [[nodiscard]] std::string why_not_written(StorageId storage, std::uint32_t use) const;
  [[nodiscard]] std::string why_not(StorageId storage) const;  // empty: it can
  [[nodiscard]] Result<GivenUp> storages_at(const std::vector<std::string>& sites) const;
  [[nodiscard]] Bytes bytes_to_hold(StorageId storage, const std::vector<bool>& given_up,
                                    std::vector<Bytes>& known, int depth) const;
  void make(StorageId storage, const std::vector<bool>& given_up, std::vector<Bytes>& known,
            Chain& chain) const;
  [[nodiscard]] Result<Segment> segment_of(const Chain& chain, UnpackId trigger,
                                           std::vector<SavedId> saved) const;
  // One op behind the other, and what is allocated in one is of that; a damaged recording may say
  // otherwise.
  [[nodiscard]] Status check_order(const Segment& segment) const;
  [[nodiscard]] Status check_unwritten(const Segment& segment) const;
  // A writing use of an op that is composed of others, one of which has the same use.
  [[nodiscard]] bool is_of_inner_op(std::uint32_t use) const;
  [[nodiscard]] std::int32_t call_at(LayerId layer, EventId event) const;
  [[nodiscard]] bool is_made(StorageId storage) const {
    return storage.valid() && trace_.storages.alloc_event[storage.index()].valid();
  }
  [[nodiscard]] StorageId storage_of_use(std::uint32_t use) const {
    return trace_.tensors.storage[trace_.uses.tensor[use].index()];
  }

  const Trace& trace_;
  OpSpans spans_;
  Grouped<std::uint32_t> uses_of_;  // by op
  Grouped<std::uint32_t> used_by_;  // by storage: rows of uses
  Grouped<SavedId> saved_of_;       // by storage
  Grouped<UnpackId> unpacks_of_;    // by saved tensor
  EventId backward_;                // the first unpack; invalid: there is none
  bool has_primitives_ = false;
};

}  // namespace stowage::simulator
