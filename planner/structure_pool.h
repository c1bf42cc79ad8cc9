// The structures that `auto` chooses among. Layers are of a kind when their names differ in numbers
// only; of each kind so many run again, from the first on or up to the last. What ops make again is
// of a kind likewise (planner/op_families.h): of all layers at first, those that free the most for
// their work ahead of the others. Kinds are mixed a few layers at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "simulator/step/segments.h"
#include "simulator/step/step_index.h"
#include "simulator/step/structure.h"
#include "traces/units.h"

namespace stowage::planner {

class Pins;

class StructurePool {
 public:
  // Members of the pool that run again: a kind's number, a layer's number in it; sorted.
  using Members = std::vector<std::pair<std::size_t, std::size_t>>;

  static constexpr std::size_t kMostKinds = 4;  // of layers: those that free the most bytes
  static constexpr std::size_t kMostFamilies =
      10;  // of ops: those that free them for the least work
  static constexpr std::size_t kMostCounts = 6;
  static constexpr std::size_t kMostSegments = 400;
  static constexpr std::size_t kFewMembers = 8;  // of all kinds together

  StructurePool() = default;  // empty
  // Depends on the recording alone, on whether tensors may be `copied` instead, and on what is
  // `pinned` (null: nothing): no member has that run again, nor lies in or around it. Cost:
  // kMostSegments times SegmentFinder::find() at most.
  explicit StructurePool(const simulator::StepIndex& recorded, bool copied = true,
                         const Pins* pinned = nullptr);

  // Nothing can run again.
  [[nodiscard]] bool empty() const { return kinds_.empty(); }
  // Of one kind of layers each, at most kMostCounts counts of it, or what ops make again, so many
  // kinds of it; the least work first. Where asked for also every set of kFewMembers at most.
  enum class Starts : std::uint8_t { by_kind, every_set_of_few };
  [[nodiscard]] std::vector<Members> starts(Starts which) const;
  // Some layers of a kind more, or fewer, of ops also all or none. A layer that runs again gives
  // way to one around or inside of it; what is saved in it, ops do not make again. At most
  // `most` that free more bytes, the most for their work first, and as many that work less, the
  // most for their bytes first. Beside these all layers of a kind for what gives way to them,
  // whatever that is worth: near the floor one layer alone lowers no peak.
  [[nodiscard]] std::vector<Members> neighbours(const Members& members, std::size_t most) const;

  // Names of the layers of the kind of layers that frees the most bytes, in order of forward.
  [[nodiscard]] std::vector<std::string> largest_kind() const;
  [[nodiscard]] simulator::Structure structure(const Members& members) const;
  // That runs again: no step with this structure is shorter than compute with it.
  [[nodiscard]] Nanoseconds work(const Members& members) const;

 private:
  struct Layer {
    std::vector<std::string> names;  // of the layer, or sites
    EventId first;                   // [first, end)
    EventId end;
    Nanoseconds work = 0;
    Bytes bytes = 0;  // that it makes, saves, and that are gone in forward when it runs again
  };
  struct Kind {
    bool is_ops = false;
    std::vector<Layer> layers;  // in order of forward
    Bytes bytes = 0;
    Nanoseconds work = 0;
  };
  [[nodiscard]] static Layer layer_of(const simulator::StepIndex& index, const std::string& name,
                                      const simulator::Segment& segment);
  [[nodiscard]] const Layer& layer(const Members::value_type& member) const {
    return kinds_[member.first].layers[member.second];
  }
  [[nodiscard]] std::vector<Members> swaps(const Members& members) const;
  // But the empty one; 2^members.
  [[nodiscard]] std::vector<Members> every_set() const;
  [[nodiscard]] std::vector<Members> most_worth(const Members& members,
                                                const std::vector<Members>& all,
                                                std::size_t most) const;
  [[nodiscard]] Bytes bytes(const Members& members) const;
  void add_kinds_of_layers(const simulator::StepIndex& recorded, const Pins* pinned);
  void add(Members& members, const Members::value_type& member) const;
  [[nodiscard]] bool overlap(const Members::value_type& a, const Members::value_type& b) const;

  std::vector<Kind> kinds_;
};

}  // namespace stowage::planner
