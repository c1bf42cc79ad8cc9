// RankGroup: the process group of one process among those of the other ranks, Gloo's on the CPU.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstdint>
#include <memory>
#include <string>

#include "executor/distributed/rank_store.h"
#include "traces/result.h"

namespace stowage::executor {

class RankGroup {
 public:
  // Of the processes of all ranks that give this name, each once a run; waits for them. `store`
  // outlives it. Errors: RankStore::gather()'s; environment, they cannot connect.
  [[nodiscard]] static Result<std::unique_ptr<RankGroup>> join(RankStore& store,
                                                               const std::string& name);
  // Connections end: a collective that another rank is in throws there.
  ~RankGroup() = default;
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  [[nodiscard]] const c10::intrusive_ptr<c10d::ProcessGroup>& group() const { return group_; }
  // Waits until Gloo has let go of what earlier collectives sent: it does so on a thread of its
  // own, at times late, and who counts bytes meanwhile would count those. A collective itself: on
  // all ranks or none.
  void settle() const;
  // Collectives that this rank has begun.
  [[nodiscard]] std::int64_t collectives() const;

 private:
  explicit RankGroup(c10::intrusive_ptr<c10d::ProcessGroup> group);
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  at::Tensor nothing_;  // what settle() sends
};

// Whether an error's text is that of a collective whose other rank is gone.
[[nodiscard]] bool tells_of_lost_rank(const std::string& message);

}  // namespace stowage::executor
