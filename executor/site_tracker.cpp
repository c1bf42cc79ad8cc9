#include "executor/site_tracker.h"

#include <utility>

#include "traces/result.h"
#include "traces/trace.h"

namespace stowage::executor {

void SiteTracker::reset() {
  // The map keeps its keys (frames of the next step view them); only the counts restart.
  for (auto& [path, count] : calls_) count = 0;
  frames_.clear();
  again_.clear();
  noted_.clear();
  const auto root = calls_.try_emplace("step", 0).first;
  frames_.push_back({root->first, 0, 0});
  backward_depth_ = micro_batch_ = 0;
  is_behind_backward_ = false;
}

void SiteTracker::enter(std::string_view path) {
  if (is_behind_backward_ && backward_depth_ == 0) {
    ++micro_batch_;
    is_behind_backward_ = false;
  }
  auto entry = calls_.find(path);
  if (entry == calls_.end()) entry = calls_.try_emplace(std::string(path), 0).first;
  if (!again_.empty()) {
    Again& again = again_.back();
    const bool is_known =
        again.next < again.calls->size() && (*again.calls)[again.next].path == path;
    frames_.push_back({entry->first, is_known ? (*again.calls)[again.next].call : -1, 0});
    ++again.next;
    return;
  }
  for (Calls& calls : noted_) calls.push_back({entry->first, entry->second});
  frames_.push_back({entry->first, entry->second++, 0});
}

std::int32_t SiteTracker::next_call(std::string_view path) const {
  const auto entry = calls_.find(path);
  return entry == calls_.end() ? 0 : entry->second;
}

SiteTracker::Calls SiteTracker::take_noted_calls() {
  if (noted_.empty()) return {};
  Calls calls = std::move(noted_.back());
  noted_.pop_back();
  return calls;
}

void SiteTracker::begin_again(const Calls& calls) {
  again_.push_back({&calls, 0, frames_.size()});
}

std::vector<std::string_view> SiteTracker::open_again() const {
  STOWAGE_ASSERT(!again_.empty());
  std::vector<std::string_view> open;
  for (std::size_t f = frames_.size(); f > again_.back().frames; --f) {
    open.push_back(frames_[f - 1].path);
  }
  return open;
}

void SiteTracker::end_again() {
  STOWAGE_ASSERT(!again_.empty() && frames_.size() == again_.back().frames);
  again_.pop_back();
}

void SiteTracker::leave() {
  STOWAGE_ASSERT(frames_.size() > 1);
  frames_.pop_back();
}

void SiteTracker::backward_end() {
  if (backward_depth_ > 0 && --backward_depth_ == 0) is_behind_backward_ = true;
}

Site SiteTracker::next_pack() {
  Frame& frame = frames_.back();
  return {frame.path, frame.call, frame.packs++, pass(), micro_batch_};
}

Site SiteTracker::input(std::int32_t input) const {
  const Frame& frame = frames_.back();
  return {frame.path, frame.call, boundary_ordinal(input), pass(), micro_batch_};
}

simulator::Pass SiteTracker::pass() const {
  if (!again_.empty()) return simulator::Pass::recompute;
  return backward_depth_ > 0 ? simulator::Pass::backward : simulator::Pass::forward;
}

}  // namespace stowage::executor
