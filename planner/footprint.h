// Footprint of a storage: the device bytes that it and its reload buffers hold over the step, for
// each way to treat it, when it leaves as early and returns as late as it can ("tight"). No plan
// holds fewer bytes with the same choice, so bounds are made of footprints; and the plan with
// `pack` and `unpack` as its points, parameters loaded on demand, holds exactly these. The same for
// the parameters of a layer, which stream together.
//
// Positions: 2e is the moment ahead of event e; at an anchor, when the instructions ahead of it are
// done (a reload on demand has its buffer). 2e+1 is the moment when event e itself and all
// instructions at it are done. Nothing is allocated or freed by an anchor's own action, so no
// moment between is higher. Spans are half-open ranges of positions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/step/step_index.h"
#include "traces/units.h"

namespace stowage::planner {

// keep: as recorded. Of a storage with saved tensors, shared: one copy out and back; separate: one
// copy a saved view, one back an unpack ("share": false). Of a layer's parameters, forward and
// always: they stream ("stream": "forward", "stream": true).
enum class Choice : std::uint8_t { keep, shared, separate, forward, always };
inline constexpr std::size_t kChoices = 5;

struct FootprintSpan {
  std::int32_t first = 0;
  std::int32_t last = 0;  // one behind
  Bytes bytes = 0;
};

// What a plan can move: a storage of this step with at least one saved tensor that can be
// offloaded, or the parameters of one layer that can stream.
struct Movable {
  std::vector<StorageId> storages;  // one, or the parameters of a layer and the layers inside
  LayerId layer;  // whose parameters they are (streaming_layers.h); none for saved tensors
  std::array<bool, kChoices> allowed{true, false, false, false, false};
  std::array<std::vector<FootprintSpan>, kChoices> spans;
  // When it can leave: its first pack; the end of the parameters' last use in forward.
  EventId first_pack;
  Bytes shared_range = 0;    // bytes that the shared copy moves
  std::vector<Bytes> views;  // of each saved tensor: what the separate copies move
  // Unpacks in order, and the bytes of the view of each. Of parameters: where the last of them is
  // back for the first use behind forward at the latest, if there is one, and the bytes of all that
  // come back so. These only rank parameters for the search: each has uses of its own, which are
  // in parameter_spans(), and bounds go by those.
  std::vector<EventId> unpack_events;
  std::vector<Bytes> unpack_bytes;
  // A choice with at most as many bytes as every other one at every position, if there is one.
  std::int32_t dominant = -1;

  [[nodiscard]] bool is_layer() const { return layer.valid(); }

  [[nodiscard]] Bytes bytes_at(Choice choice, std::int32_t position) const;
  // Positions at which any choice's bytes change, in order, each once.
  [[nodiscard]] std::vector<std::int32_t> breakpoints() const;
};

class Footprints {
 public:
  // Counts the bytes that estimate() counts for `kind`: requested, else the smallest blocks that
  // can hold them (active bytes are at least that, reserved ones at least the active ones). Cost:
  // O(events + saved log saved).
  explicit Footprints(const simulator::StepIndex& index,
                      simulator::PeakKind kind = simulator::PeakKind::requested);

  [[nodiscard]] const simulator::StepIndex& index() const { return *index_; }
  [[nodiscard]] const std::vector<Movable>& movable() const { return movable_; }
  [[nodiscard]] std::int32_t positions() const { return positions_; }
  // Bytes at each position with everything kept.
  [[nodiscard]] const std::vector<Bytes>& resident() const { return resident_; }
  // What a storage and a reload buffer count as.
  [[nodiscard]] Bytes storage_bytes(StorageId storage) const;
  [[nodiscard]] Bytes buffer_bytes(Bytes bytes) const;

  // Positions at which any footprint changes, in order, 0 among them. Up to the next one choices
  // differ by the same bytes everywhere.
  [[nodiscard]] std::vector<std::int32_t> segment_starts() const;

  // Bytes at each position with these choices, one per movable; O(positions + spans).
  [[nodiscard]] std::vector<Bytes> curve(const std::vector<Choice>& choices) const;
  // The smallest bytes of any choice, storage by storage, at each position.
  [[nodiscard]] std::vector<Bytes> lowest_curve() const;

  // What of a parameter that can stream is on the device with this choice.
  [[nodiscard]] const std::vector<FootprintSpan>& parameter_spans(StorageId parameter,
                                                                  Choice choice) const;

  // As decisions: offloaded storages with these points, copies on the lanes. Parameters that stream
  // are one shard and loaded automatically: which shard they are of means nothing then. A plan
  // streams in one way: `always` for all where one of them does.
  [[nodiscard]] simulator::Decisions decisions(const std::vector<Choice>& choices,
                                               simulator::ReleasePoint release,
                                               simulator::ReloadPoint reload) const;
  // `pack` and `unpack`, and a budget of 0 for the automatic loads, which are on demand then: holds
  // curve(choices), or less where a `forward` becomes `always`.
  [[nodiscard]] simulator::Decisions tight(const std::vector<Choice>& choices) const;

 private:
  void find_saved();
  void find_parameters();
  void find_dominant(Movable& movable);
  void add_layer(const Movable& movable, Choice choice, simulator::Decisions& out) const;
  void add_parameters(Choice choice);

  const simulator::StepIndex* index_;
  bool by_block_;
  std::int32_t positions_;
  std::vector<Movable> movable_;
  std::vector<LayerId> streaming_layer_;                     // by storage
  std::map<LayerId, std::vector<StorageId>> parameters_of_;  // those of each such layer
  // Of parameters that can stream, by storage: kept, forward, always.
  std::vector<std::array<std::vector<FootprintSpan>, 3>> parameter_spans_;
  std::vector<Bytes> resident_;
  std::vector<Bytes> immovable_;
};

}  // namespace stowage::planner
