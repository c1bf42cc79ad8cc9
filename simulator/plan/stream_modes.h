// How the parameters of a plan's shards stream.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace stowage::simulator {

// off: they stay. forward: they leave after their forward and come back for their backward, then
// stay until their next forward is over. backward: they leave after their backward (and after the
// optimizer), come back for their next forward, then stay until their backward. always: they are on
// the device only around their uses in forward, in backward and in the optimizer.
enum class StreamMode : std::uint8_t { off, forward, backward, always };

// One mode for all shards, or one for each.
class StreamModes {
 public:
  StreamModes() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): one mode is that of all shards
  StreamModes(StreamMode all) : all_(all) {}
  // By shard, at least one.
  explicit StreamModes(std::vector<StreamMode> by_shard) : by_shard_(std::move(by_shard)) {
    const StreamMode first = by_shard_.front();
    const bool same = std::all_of(by_shard_.begin(), by_shard_.end(),
                                  [&](StreamMode mode) { return mode == first; });
    if (!same) return;
    all_ = first;
    by_shard_.clear();
  }

  // Off behind the last shard where each has one.
  [[nodiscard]] StreamMode of(std::size_t shard) const {
    if (by_shard_.empty()) return all_;
    return shard < by_shard_.size() ? by_shard_[shard] : StreamMode::off;
  }
  // Empty: one mode for all.
  [[nodiscard]] const std::vector<StreamMode>& by_shard() const { return by_shard_; }
  // Nothing streams.
  [[nodiscard]] bool off() const { return by_shard_.empty() && all_ == StreamMode::off; }

  bool operator==(const StreamModes&) const = default;

 private:
  StreamMode all_ = StreamMode::off;
  std::vector<StreamMode> by_shard_;  // not all the same
};

}  // namespace stowage::simulator
