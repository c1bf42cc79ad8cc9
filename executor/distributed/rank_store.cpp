#include "executor/distributed/rank_store.h"

#include <c10/util/Exception.h>

#include <exception>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>

#include "executor/device/first_line.h"

namespace stowage::executor {

namespace {

constexpr std::chrono::milliseconds kBeat = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kSilence = std::chrono::seconds(15);  // of a rank that is gone
constexpr std::chrono::milliseconds kPoll{2};
constexpr const char* kFailure = "failure";

std::string at_rank(const char* what, std::int64_t rank) {
  return std::string(what) + "/" + std::to_string(rank);
}

c10::intrusive_ptr<c10d::Store> connection(const Rendezvous& rendezvous, bool makes_store) {
  c10d::TCPStoreOptions options;
  options.port = rendezvous.port;
  options.isServer = makes_store;
  options.numWorkers = static_cast<std::size_t>(rendezvous.ranks);
  options.waitWorkers = false;
  options.timeout = kRankTimeLimit;
  return c10::make_intrusive<c10d::PrefixStore>(
      "stowage/" + rendezvous.attempt,
      c10::make_intrusive<c10d::TCPStore>(rendezvous.address, options));
}

std::string text_of(const std::exception& error) {
  const auto* const torch = dynamic_cast<const c10::Error*>(&error);
  return first_line(torch != nullptr ? torch->what_without_backtrace() : error.what());
}

Error store_is_gone(const std::exception& error) {
  return {ErrorCode::environment,
          "the ranks' store is gone, and with it the first rank or torchrun: " + text_of(error), "",
          "", "see what that rank said"};
}

}  // namespace

Result<std::unique_ptr<RankStore>> RankStore::connect(const Rendezvous& rendezvous, Beats beats) {
  try {
    c10::intrusive_ptr<c10d::Store> store = connection(rendezvous, rendezvous.makes_store());
    return std::unique_ptr<RankStore>(new RankStore(rendezvous, std::move(store), beats));
  } catch (const std::exception& error) {
    return Error{ErrorCode::environment,
                 "the ranks cannot meet at " + rendezvous.address + ":" +
                     std::to_string(rendezvous.port) + ": " + text_of(error),
                 "", "", "MASTER_ADDR and MASTER_PORT say where; torchrun sets them"};
  }
}

RankStore::RankStore(Rendezvous rendezvous, c10::intrusive_ptr<c10d::Store> store, Beats beats)
    : rendezvous_(std::move(rendezvous)), store_(std::move(store)) {
  if (beats == Beats::yes) beats_ = std::thread([this] { beat(); });
}

RankStore::~RankStore() {
  if (!beats_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  over_.notify_all();
  beats_.join();
  leave();
}

void RankStore::beat() {
  std::unique_lock lock(mutex_);
  for (std::int64_t beats = 0; !is_over_; ++beats) {
    try {
      store_->set(at_rank("beat", rank()), std::to_string(beats));
    } catch (const std::exception&) {
      return;  // whoever waits learns it likewise
    }
    over_.wait_for(lock, kBeat, [this] { return is_over_; });
  }
}

void RankStore::leave() {
  try {
    store_->set(at_rank("left", rank()), std::string("1"));
    if (!rendezvous_.makes_store()) return;
    const Clock::time_point begin = Clock::now();
    for (std::int64_t other = 1; other < ranks(); ++other) {
      Waited waited{"", begin};
      // One that comes later than that hears that nobody is there.
      const auto never_came = [&] {
        return Clock::now() - begin > kSilence && !has(at_rank("beat", other));
      };
      while (!has(at_rank("left", other)) && !never_came() && !is_silent(other, waited)) {
        std::this_thread::sleep_for(kPoll);
      }
    }
  } catch (const std::exception&) {
    // Nobody can be waited for.
  }
}

bool RankStore::has(const std::string& key) {
  return store_->check({key});
}

std::string RankStore::get(const std::string& key) {
  return store_->get_to_str(key);
}

// Since the last beat that was seen, or, of a rank that has not begun, since `waited` began.
bool RankStore::is_silent(std::int64_t rank, Waited& waited) {
  const std::string key = at_rank("beat", rank);
  const bool has_begun = has(key);
  if (has_begun) {
    if (std::string beat = get(key); beat != waited.beat) {
      waited = {std::move(beat), Clock::now()};
    }
  }
  return Clock::now() - waited.since > (has_begun ? kSilence : kRankTimeLimit);
}

Status RankStore::wait_for(std::int64_t rank, const std::string& key) {
  Waited waited{"", Clock::now()};
  const Clock::time_point begin = Clock::now();
  while (!has(key)) {
    if (has(kFailure)) {
      if (has(key)) break;  // it was said ahead of the failure, which may be about it
      return Error{ErrorCode::environment, "another rank failed: " + get(kFailure), "", "", ""};
    }
    const bool is_late = Clock::now() - begin > kRankTimeLimit;
    if (is_late || is_silent(rank, waited)) {
      return Error{ErrorCode::environment,
                   "rank " + std::to_string(rank) +
                       (is_late ? " does not come to where the others are"
                                : " gives no sign of life any more"),
                   "", "", "see what that rank said"};
    }
    std::this_thread::sleep_for(kPoll);
  }
  return Unit{};
}

Result<std::vector<std::string>> RankStore::gather(const std::string& key,
                                                   const std::string& mine) {
  try {
    store_->set(at_rank(key.c_str(), rank()), mine);
    std::vector<std::string> all;
    for (std::int64_t each = 0; each < ranks(); ++each) {
      const std::string place = at_rank(key.c_str(), each);
      if (Status status = wait_for(each, place); !status) return status.error();
      all.push_back(get(place));
    }
    return all;
  } catch (const std::exception& error) {
    return store_is_gone(error);
  }
}

Status RankStore::check_same(const std::string& key, const std::string& mine,
                             const std::string& what) {
  const Result<std::vector<std::string>> all = gather(key, mine);
  if (!all) return all.error();
  for (std::size_t each = 1; each < all->size(); ++each) {
    if ((*all)[each] == all->front()) continue;
    return Error{ErrorCode::bad_input,
                 what + " of rank " + std::to_string(each) +
                     " is not that of rank 0: " + (*all)[each] + " and " + all->front(),
                 "", "", "give all ranks the same files and options"};
  }
  return Unit{};
}

std::string RankStore::tell_failure(const std::string& reason) {
  try {
    return store_->compareSet(kFailure, std::string(),
                              "rank " + std::to_string(rank()) + ": " + reason);
  } catch (const std::exception&) {
    return {};
  }
}

c10::intrusive_ptr<c10d::Store> RankStore::part(const std::string& name) const {
  return c10::make_intrusive<c10d::PrefixStore>(name, connection(rendezvous_, false));
}

}  // namespace stowage::executor
