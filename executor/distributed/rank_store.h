// RankStore: what the ranks of a run tell each other beside their collectives, through c10d's
// store: whether they run the same step, how it ended, and why.
//
// Nobody waits for a rank that is gone: who waits hears of the first failure that any rank tells,
// and of a rank whose signs of life stop. All calls but the constructor's connecting are a round
// trip to the store.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "executor/distributed/rendezvous.h"
#include "traces/result.h"

namespace stowage::executor {

// For whatever one rank waits for: the others' processes to start, a collective, an answer.
inline constexpr std::chrono::milliseconds kRankTimeLimit = std::chrono::minutes(5);

class RankStore {
 public:
  enum class Beats : std::uint8_t { no, yes };

  // Connects, and makes the store where the rendezvous says so. With beats the object gives signs
  // of life for its rank: one object a rank, that lives as long as what the rank does, its child
  // processes among it. Errors (environment): nobody answers there.
  [[nodiscard]] static Result<std::unique_ptr<RankStore>> connect(const Rendezvous& rendezvous,
                                                                  Beats beats);
  // Who made the store waits until no other rank with beats needs it, 15 s for those to come that
  // have not.
  ~RankStore();
  RankStore(const RankStore&) = delete;
  RankStore& operator=(const RankStore&) = delete;

  [[nodiscard]] std::int64_t rank() const { return rendezvous_.rank; }
  [[nodiscard]] std::int64_t ranks() const { return rendezvous_.ranks; }

  // What each rank says under this key, in the order of ranks; waits for all of them. A key is used
  // once. Errors (environment): a rank failed, and how; a rank is gone; the store is.
  [[nodiscard]] Result<std::vector<std::string>> gather(const std::string& key,
                                                        const std::string& mine);
  // All ranks say the same under this key, which `what` names ("the plan"). Errors: gather()'s;
  // bad_input on all ranks, with the first rank that says something else.
  [[nodiscard]] Status check_same(const std::string& key, const std::string& mine,
                                  const std::string& what);
  // Tells the others why this rank ends. The first failure of all ranks: "rank 1: out of memory",
  // this one's if no other was told before; empty where the store is gone.
  std::string tell_failure(const std::string& reason);

  // A part of the store that only users of this name see, over a connection of its own.
  [[nodiscard]] c10::intrusive_ptr<c10d::Store> part(const std::string& name) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Waited {
    std::string beat;  // the last that was seen
    Clock::time_point since;
  };

  RankStore(Rendezvous rendezvous, c10::intrusive_ptr<c10d::Store> store, Beats beats);
  [[nodiscard]] bool has(const std::string& key);
  [[nodiscard]] std::string get(const std::string& key);
  [[nodiscard]] Status wait_for(std::int64_t rank, const std::string& key);
  [[nodiscard]] bool is_silent(std::int64_t rank, Waited& waited);
  void beat();
  void leave();

  Rendezvous rendezvous_;
  c10::intrusive_ptr<c10d::Store> store_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread beats_;
};

}  // namespace stowage::executor
