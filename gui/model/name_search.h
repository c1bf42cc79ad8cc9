// Find: ops, layers, saved tensors and kernels whose name holds a text.
#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "gui/model/view_state.h"
#include "traces/trace.h"

namespace stowage::gui {

struct SearchHit {
  Selection what;  // an op (those inside others, too), a layer, a saved tensor, a storage, a kernel
  EventId event;   // where it is: op_begin, first layer_forward_begin, pack, alloc, its launch
  bool operator==(const SearchHit&) const = default;
};

// In order of events; case does not count. "#123" alone, or "activation #123"
// as name_of() says it, is the storage in row 123. Kernels (copies and memsets, too), whose names
// hold those of ops, are found where nothing else is. An empty text finds nothing. A stopped search
// answers with what it has. Cost: O(strings + ops + events + saved + kernels log kernels).
[[nodiscard]] std::vector<SearchHit> search(const Trace& trace, const std::string& text,
                                            const std::stop_token& stop = {});

// A layer's name for people: "layers.3.mlp"; "outside of all layers" of none and of the root, which
// files and the command line call "step".
[[nodiscard]] std::string layer_words(const Trace& trace, LayerId layer);

// What is selected, in words: "aten::mm in layers.3.mlp", "layers.3.mlp#2 (58.7 MB)".
[[nodiscard]] std::string name_of(const Trace& trace, const Selection& selection);

// Where a selection begins in the trace; none for kinds that are of a replay.
[[nodiscard]] EventId event_of(const Trace& trace, const Selection& selection);

}  // namespace stowage::gui
