#include "gui/model/plan_tree.h"

#include <algorithm>
#include <set>
#include <utility>

namespace stowage::gui {
namespace {

class Builder {
 public:
  explicit Builder(PlanTree& tree) : tree_(tree), trace_(tree.trace()) {
    tree_.row_of_layer.assign(trace_.layers.size(), -1);
    tree_.row_of_saved.assign(trace_.saved.size(), -1);
  }

  void add_parameters() {
    tree_.streaming = streaming_layers_of(trace_);
    add_streaming(PlanRowKind::parameters, tree_.streaming);
  }

  void add_optimizer_state() {
    tree_.streaming_state = streaming_state_of(trace_);
    add_streaming(PlanRowKind::optimizer_state, tree_.streaming_state);
    std::vector<bool> is_known(trace_.storages.size(), false);
    for (const StreamingLayer& layer : tree_.streaming_state) {
      for (const StorageId storage : layer.storages) is_known[storage.index()] = true;
    }
    std::vector<Bytes> bytes(trace_.layers.size(), 0);
    for (std::size_t i = 0; i < trace_.storages.size(); ++i) {
      const LayerId layer = trace_.storages.layer[i];
      if (trace_.storages.storage_class[i] == StorageClass::optimizer_state && layer.valid() &&
          !is_known[i]) {
        bytes[layer.index()] += trace_.storages.bytes[i];
      }
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] == 0) continue;
      PlanRow row;
      row.kind = PlanRowKind::optimizer_state;
      row.layer = LayerId(i);
      row.bytes = bytes[i];
      add(std::move(row), layer_row(LayerId(i)));
    }
  }

  void add_saved() {
    // By storage, the rows of layers that it is counted in: a few.
    std::vector<std::vector<std::int32_t>> counted(trace_.storages.size());
    // At most: a layer that is not there yet gets its row with its first saved tensor.
    tree_.rows.reserve(tree_.rows.size() + trace_.layers.size() + trace_.saved.size());
    for (std::size_t i = 0; i < trace_.saved.size(); ++i) {
      const StorageId storage = trace_.saved.storage[i];
      PlanRow row;
      row.kind = PlanRowKind::saved;
      row.layer = trace_.saved.layer[i];
      row.saved = SavedId(i);
      row.bytes = storage.valid() ? trace_.storages.bytes[storage.index()] : 0;
      const Bytes bytes = row.bytes;
      tree_.row_of_saved[i] = add(std::move(row), layer_row(trace_.saved.layer[i]));
      if (!tree_.can_move(SavedId(i))) continue;
      std::int32_t at = layer_row(trace_.saved.layer[i]);
      for (; at >= 0; at = tree_.rows[static_cast<std::size_t>(at)].parent) {
        std::vector<std::int32_t>& rows = counted[storage.index()];
        if (std::find(rows.begin(), rows.end(), at) != rows.end()) continue;
        rows.push_back(at);
        tree_.rows[static_cast<std::size_t>(at)].bytes += bytes;
      }
    }
  }

 private:
  void add_streaming(PlanRowKind kind, const std::vector<StreamingLayer>& layers) {
    for (std::size_t i = 0; i < layers.size(); ++i) {
      PlanRow row;
      row.kind = kind;
      row.layer = layers[i].layer;
      row.streaming = static_cast<std::int32_t>(i);
      row.bytes = layers[i].bytes;
      add(std::move(row), layer_row(layers[i].layer));
    }
  }

  std::int32_t add(PlanRow row, std::int32_t parent) {
    const auto at = static_cast<std::int32_t>(tree_.rows.size());
    std::vector<std::int32_t>& beside =
        parent < 0 ? tree_.top : tree_.rows[static_cast<std::size_t>(parent)].children;
    row.parent = parent;
    row.place = static_cast<std::int32_t>(beside.size());
    beside.push_back(at);
    tree_.rows.push_back(std::move(row));
    return at;
  }

  // What is in "step" alone stands beside the outermost layers.
  std::int32_t layer_row(LayerId layer) {
    if (!layer.valid()) layer = LayerId(0);
    std::int32_t& known = tree_.row_of_layer[layer.index()];
    if (known >= 0) return known;
    const LayerId above = trace_.layers.parent[layer.index()];
    const bool at_top = !above.valid() || !trace_.layers.parent[above.index()].valid();
    const std::int32_t parent = at_top ? -1 : layer_row(above);
    PlanRow row;
    row.layer = layer;
    const std::int32_t at = add(std::move(row), parent);
    tree_.row_of_layer[layer.index()] = at;
    return at;
  }

  PlanTree& tree_;
  const Trace& trace_;
};

}  // namespace

PlanTree::PlanTree(TracePtr of) : data(std::move(of)) {
  Builder builder(*this);
  builder.add_parameters();
  builder.add_optimizer_state();
  builder.add_saved();
  // In forward order, "step" behind.
  const auto order = [this](std::int32_t at) {
    const std::int32_t place =
        trace().layers.forward_order[rows[static_cast<std::size_t>(at)].layer.index()];
    return place < 0 ? static_cast<std::int32_t>(trace().layers.size()) : place;
  };
  const auto sort = [&](std::vector<std::int32_t>& beside) {
    const auto inner = std::stable_partition(beside.begin(), beside.end(), [&](std::int32_t at) {
      return rows[static_cast<std::size_t>(at)].kind != PlanRowKind::layer;
    });
    std::stable_sort(inner, beside.end(),
                     [&](std::int32_t a, std::int32_t b) { return order(a) < order(b); });
    for (std::size_t i = 0; i < beside.size(); ++i) {
      rows[static_cast<std::size_t>(beside[i])].place = static_cast<std::int32_t>(i);
    }
  };
  sort(top);
  for (PlanRow& row : rows) {
    sort(row.children);
    row.children.shrink_to_fit();
  }
}

bool PlanTree::can_move(SavedId saved) const {
  const StorageId storage = trace().saved.storage[saved.index()];
  return storage.valid() && trace().storages.alloc_event[storage.index()].valid() &&
         trace().storages.device[storage.index()] == 0;
}

const StreamingLayer& PlanTree::streaming_of(const PlanRow& row) const {
  const bool is_state = row.kind == PlanRowKind::optimizer_state;
  return (is_state ? streaming_state : streaming)[static_cast<std::size_t>(row.streaming)];
}

std::string PlanTree::reason_to_stay(const PlanRow& row) const {
  if (row.streaming < 0) return "stays: the recording does not say whose it is";
  std::string first;
  for (const StorageId storage : streaming_of(row).storages) {
    const std::string& reason = data->index.model_state_uses().reason_to_stay(storage);
    if (reason.empty()) return {};
    if (first.empty()) first = reason;
  }
  return first;
}

std::size_t PlanTree::Targets::count(PlanRowKind kind) const {
  switch (kind) {
    case PlanRowKind::layer:
      return 0;
    case PlanRowKind::saved:
      return saved.size();
    case PlanRowKind::parameters:
      return parameters.size();
    case PlanRowKind::optimizer_state:
      return state.size();
  }
  return 0;
}

std::vector<std::int32_t> PlanTree::home_of_storages() const {
  constexpr std::int32_t kUnseen = -2;
  std::vector<std::int32_t> home(trace().storages.size(), kUnseen);
  const auto parent = [this](std::int32_t at) { return rows[static_cast<std::size_t>(at)].parent; };
  const auto holds = [&](std::int32_t layer, std::int32_t at) {
    while (at >= 0 && at != layer) at = parent(at);
    return at == layer;
  };
  for (std::size_t i = 0; i < trace().saved.size(); ++i) {
    if (!can_move(SavedId(i))) continue;
    std::int32_t& known = home[trace().saved.storage[i].index()];
    const std::int32_t layer = parent(row_of_saved[i]);
    if (known == kUnseen) known = layer;
    while (known >= 0 && !holds(known, layer)) known = parent(known);
  }
  std::replace(home.begin(), home.end(), kUnseen, -1);
  return home;
}

PlanTree::Targets PlanTree::targets_of(const std::vector<std::int32_t>& chosen,
                                       PlanRowKind of_layers) const {
  std::set<SavedId> saved;
  std::set<std::int32_t> streaming_rows;
  std::vector<std::pair<std::int32_t, bool>> open;  // row, chosen itself
  for (const std::int32_t at : chosen) open.emplace_back(at, true);
  while (!open.empty()) {
    const auto [at, itself] = open.back();
    open.pop_back();
    const PlanRow& row = rows[static_cast<std::size_t>(at)];
    for (const std::int32_t child : row.children) open.emplace_back(child, false);
    if (row.kind == PlanRowKind::layer) continue;
    if (row.kind == PlanRowKind::saved) {
      const bool is_meant = of_layers == PlanRowKind::saved && row.saved.valid();
      if (is_meant && (itself || can_move(row.saved))) saved.insert(row.saved);
    } else if ((itself || row.kind == of_layers) && reason_to_stay(row).empty()) {
      streaming_rows.insert(at);
    }
  }
  Targets targets;
  targets.saved.assign(saved.begin(), saved.end());
  // In order of layers: so are the rows of each kind.
  for (const std::int32_t at : streaming_rows) {
    const PlanRow& row = rows[static_cast<std::size_t>(at)];
    const bool is_state = row.kind == PlanRowKind::optimizer_state;
    (is_state ? targets.state : targets.parameters).push_back(streaming_of(row));
  }
  if (of_layers != PlanRowKind::saved) return targets;
  const std::set<std::int32_t> all(chosen.begin(), chosen.end());
  for (const std::int32_t at : all) {
    const PlanRow& row = rows[static_cast<std::size_t>(at)];
    std::int32_t above = row.parent;
    while (above >= 0 && all.count(above) == 0)
      above = rows[static_cast<std::size_t>(above)].parent;
    if (above >= 0) continue;
    if (row.kind == PlanRowKind::layer) targets.layers.push_back(row.layer);
    if (row.kind == PlanRowKind::saved && row.saved.valid()) targets.alone.push_back(row.saved);
  }
  return targets;
}

}  // namespace stowage::gui
