#include "executor/site_tracker.h"

#include "traces/result.h"

namespace stowage::executor {

void SiteTracker::reset() {
  // The map keeps its keys (frames of the next step view them); only the counts restart.
  for (auto& [path, count] : calls_) count = 0;
  frames_.clear();
  const auto root = calls_.try_emplace("step", 0).first;
  frames_.push_back({root->first, 0, 0});
}

void SiteTracker::enter(std::string_view path) {
  auto entry = calls_.find(path);
  if (entry == calls_.end()) entry = calls_.try_emplace(std::string(path), 0).first;
  frames_.push_back({entry->first, entry->second++, 0});
}

void SiteTracker::leave() {
  STOWAGE_ASSERT(frames_.size() > 1);
  frames_.pop_back();
}

Site SiteTracker::next_pack() {
  Frame& frame = frames_.back();
  return {frame.path, frame.call, frame.packs++};
}

}  // namespace stowage::executor
