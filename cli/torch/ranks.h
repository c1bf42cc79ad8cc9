// Ranks: the processes of a command that torchrun started once a rank (--distributed), as the verb
// of one of them sees the others. A rank's own child processes are the same rank.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/console.h"
#include "executor/distributed/rank_group.h"
#include "executor/distributed/rank_store.h"
#include "traces/result.h"

namespace stowage::cli {

struct RunFlags;

class Ranks {
 public:
  // `group`: this process's name among those of its rank; its peers have the same.
  Ranks(std::unique_ptr<executor::RankStore> store, std::string group);

  [[nodiscard]] executor::RankStore& store() { return *store_; }
  [[nodiscard]] bool is_first() const { return store_->rank() == 0; }
  // That of this process and its peers, joined by the first call, which waits for them. Errors:
  // RankGroup::join().
  [[nodiscard]] Result<executor::RankGroup*> group();
  // RankStore::check_same() among this process and its peers.
  [[nodiscard]] Status check_same(const std::string& key, const std::string& mine,
                                  const std::string& what);
  // What a child process is started with, so that it meets its peers: once a child, and in the same
  // order on all ranks.
  [[nodiscard]] std::vector<std::string> child_arguments();

 private:
  std::unique_ptr<executor::RankStore> store_;
  std::unique_ptr<executor::RankGroup> group_;
  std::string name_;
  std::int64_t children_ = 0;
};

// The body of a verb, as one rank of --distributed; without that option, the body. Fills
// flags.ranks for it. The first rank speaks for all: the others say nothing but how they fail. The
// exit code is the worst of all ranks, once all have ended; a rank that fails ends the others,
// which say why.
[[nodiscard]] Result<int> as_rank(RunFlags& flags, Console& console, const std::string& verb,
                                  const std::function<Result<int>(Console&)>& body);

// The same for a child process of a rank, which is told its group's name (--group): what it fails
// with the others' children say, too.
[[nodiscard]] Result<int> as_ranks_child(RunFlags& flags, const std::function<Result<int>()>& body);

// Lines of all ranks in their order, those of the others behind "rank 1: "; on the first rank, and
// no lines on the others. Errors: RankStore::gather().
[[nodiscard]] Result<std::vector<std::string>> lines_of_ranks(Ranks& ranks, const std::string& key,
                                                              const std::vector<std::string>& mine);

}  // namespace stowage::cli
