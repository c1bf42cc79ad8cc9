// SiteTracker: where in the step the program is, in layers, so that every saved tensor gets its
// stable name (site). Counts a layer's calls and the packs inside each call.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stowage::executor {

// One saved tensor's place: pack number `ordinal` inside call number `call` of the innermost layer.
struct Site {
  std::string_view layer;  // valid until the tracker's next reset()
  std::int32_t call = 0;
  std::int32_t ordinal = 0;
};

class SiteTracker {
 public:
  // Begins a step. Outside any layer the path is "step".
  void reset();
  // Allocates at a path's first call only.
  void enter(std::string_view path);
  // Leaves the innermost layer. A layer left by an exception is dropped by the next reset().
  void leave();
  // The site of the next pack; counts it.
  Site next_pack();
  [[nodiscard]] std::string_view innermost() const { return frames_.back().path; }

 private:
  struct Frame {
    std::string_view path;
    std::int32_t call = 0;
    std::int32_t packs = 0;
  };
  // Lets a view be looked up without a copy.
  struct PathHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // Keys own the paths of the frames.
  std::unordered_map<std::string, std::int32_t, PathHash, std::equal_to<>> calls_;
  std::vector<Frame> frames_;
};

}  // namespace stowage::executor
