#include "cli/torch/ranks.h"

#include <algorithm>
#include <charconv>
#include <ostream>
#include <sstream>
#include <utility>

#include "cli/torch/run_request.h"
#include "cli/torch/session.h"
#include "executor/distributed/rendezvous.h"

namespace stowage::cli {

namespace {

Result<std::shared_ptr<Ranks>> meet(const RunFlags& flags, const std::string& group,
                                    executor::RankStore::Beats beats) {
  if (flags.device && *flags.device == "cuda") {
    return usage_error("--distributed with --device cuda",
                       "the command's ranks run on the CPU, over Gloo; on GPUs they do from "
                       "Python: docs/python.md");
  }
  const Result<executor::Rendezvous> rendezvous = executor::rendezvous_from_environment();
  if (!rendezvous) return rendezvous.error();
  executor::tell_children(*rendezvous);  // ahead of the store's threads
  auto store = executor::RankStore::connect(*rendezvous, beats);
  if (!store) return store.error();
  return std::make_shared<Ranks>(std::move(store).value(), group);
}

// What this rank says of the failure: its own, or, where it failed since another one did, that
// one's.
Error told(Error error, Ranks& ranks) {
  const std::string mine = "rank " + std::to_string(ranks.store().rank()) + ": ";
  const bool is_of_another = error.message.rfind("another rank ", 0) == 0;  // a child's words
  const bool is_lost = !is_of_another && executor::tells_of_lost_rank(error.message);
  if (is_lost) {
    error = {ErrorCode::environment, "another rank is gone: " + error.message, "", "",
             "see what that rank said"};
  }
  const std::string first = ranks.store().tell_failure(error.text());
  const bool is_own = !is_of_another && !is_lost;
  if (is_own || first.empty() || first.rfind(mine, 0) == 0) return error;
  return {error.code, "another rank failed: " + first, "", "", ""};
}

// The worst exit code of all ranks.
Result<int> worst(Ranks& ranks, int code) {
  const auto codes = ranks.store().gather("ends", std::to_string(code));
  if (!codes) return codes.error();
  for (const std::string& each : *codes) {
    int other = 0;
    std::from_chars(each.data(), each.data() + each.size(), other);
    code = std::max(code, other);
  }
  return code;
}

}  // namespace

Ranks::Ranks(std::unique_ptr<executor::RankStore> store, std::string group)
    : store_(std::move(store)), name_(std::move(group)) {}

Result<executor::RankGroup*> Ranks::group() {
  if (group_ == nullptr) {
    auto joined = executor::RankGroup::join(*store_, name_);
    if (!joined) return joined.error();
    group_ = std::move(joined).value();
  }
  return group_.get();
}

Status Ranks::check_same(const std::string& key, const std::string& mine, const std::string& what) {
  return store_->check_same(name_ + " " + key, mine, what);
}

std::vector<std::string> Ranks::child_arguments() {
  return {"--distributed", "--group", name_ + "." + std::to_string(++children_)};
}

Result<int> as_rank(RunFlags& flags, Console& console, const std::string& verb,
                    const std::function<Result<int>(Console&)>& body) {
  if (!flags.distributed) return body(console);
  Result<std::shared_ptr<Ranks>> met = meet(flags, verb, executor::RankStore::Beats::yes);
  if (!met) return met.error();
  flags.ranks = *met;
  Ranks& ranks = **met;
  std::ostream nowhere(nullptr);
  Console of_others(nowhere, console.err);
  of_others.json = console.json;
  of_others.quiet = true;
  of_others.files = console.files;
  Console& own = ranks.is_first() ? console : of_others;
  Result<int> result = 0;
  try {
    result = body(own);
  } catch (...) {
    static_cast<void>(ranks.store().tell_failure(current_exception_error().text()));
    throw;
  }
  if (result) result = worst(ranks, *result);
  if (result) return result;
  Error error = told(std::move(result).error(), ranks);
  if (ranks.is_first()) return error;
  error.message = "rank " + std::to_string(ranks.store().rank()) + ": " + error.message;
  return report_error(of_others, error);
}

Result<int> as_ranks_child(RunFlags& flags, const std::function<Result<int>()>& body) {
  if (!flags.distributed) return body();
  Result<std::shared_ptr<Ranks>> met =
      meet(flags, flags.group.value_or(""), executor::RankStore::Beats::no);
  if (!met) return met.error();
  flags.ranks = *met;
  Result<int> result = body();
  if (!result) return told(std::move(result).error(), **met);  // while its group is there
  return result;
}

Result<std::vector<std::string>> lines_of_ranks(Ranks& ranks, const std::string& key,
                                                const std::vector<std::string>& mine) {
  std::string text;
  for (const std::string& line : mine) text += line + "\n";
  const auto all = ranks.store().gather(key, text);
  if (!all) return all.error();
  std::vector<std::string> lines;
  for (std::size_t rank = 0; ranks.is_first() && rank < all->size(); ++rank) {
    std::istringstream each((*all)[rank]);
    for (std::string line; std::getline(each, line);) {
      lines.push_back(rank == 0 ? line : "rank " + std::to_string(rank) + ": " + line);
    }
  }
  return lines;
}

}  // namespace stowage::cli
