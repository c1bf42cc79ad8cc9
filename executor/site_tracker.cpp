#include "executor/site_tracker.h"

#include "traces/result.h"

namespace stowage::executor {

void SiteTracker::reset() {
  // The map keeps its keys (frames of the next step view them); only the counts restart.
  for (auto& [path, count] : calls_) count = 0;
  frames_.clear();
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
  frames_.push_back({entry->first, entry->second++, 0});
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
  const auto pass = backward_depth_ > 0 ? simulator::Pass::backward : simulator::Pass::forward;
  return {frame.path, frame.call, frame.packs++, pass, micro_batch_};
}

}  // namespace stowage::executor
