#include "simulator/step/step_names.h"

namespace stowage::simulator {
namespace {

template <class IdT>
std::vector<IdT> as_they_are(std::size_t rows) {
  std::vector<IdT> ids;
  ids.reserve(rows);
  for (std::size_t row = 0; row < rows; ++row) ids.emplace_back(row);
  return ids;
}

}  // namespace

StepNames::StepNames(const std::vector<StepSource>& sources, Trace& trace) {
  const Trace& recording = *sources.front().trace;
  trace.strings = recording.strings;
  trace.lists = recording.lists;
  trace.layers = recording.layers;
  maps_.push_back({as_they_are<StringId>(trace.strings.size()),
                   as_they_are<ListId>(trace.lists.size()),
                   as_they_are<LayerId>(trace.layers.size())});
  if (sources.size() == 1) return;
  for (const StringId id : maps_[0].strings) strings_.emplace(trace.string(id), id);
  for (const ListId id : maps_[0].lists) lists_.emplace(trace.list(id), id);
  for (const LayerId id : maps_[0].layers) layers_.emplace(trace.layers.name[id.index()], id);
  for (std::size_t s = 1; s < sources.size(); ++s) {
    maps_.push_back(sources[s].trace.get() == &recording ? maps_[0]
                                                         : add(*sources[s].trace, trace));
  }
}

StepNames::Maps StepNames::add(const Trace& source, Trace& trace) {
  Maps maps;
  for (const std::string& text : source.strings) {
    const auto [at, is_new] = strings_.emplace(text, StringId(trace.strings.size()));
    if (is_new) trace.strings.push_back(text);
    maps.strings.push_back(at->second);
  }
  for (const auto& list : source.lists) {
    const auto [at, is_new] = lists_.emplace(list, ListId(trace.lists.size()));
    if (is_new) trace.lists.push_back(list);
    maps.lists.push_back(at->second);
  }
  for (std::size_t l = 0; l < source.layers.size(); ++l) {
    const StringId name = maps.strings[source.layers.name[l].index()];
    const auto [at, is_new] = layers_.emplace(name, LayerId(trace.layers.size()));
    maps.layers.push_back(at->second);
    if (!is_new) continue;
    const LayerId parent = source.layers.parent[l];
    trace.layers.name.push_back(name);
    trace.layers.parent.push_back(parent.valid() ? maps.layers[parent.index()] : parent);
    trace.layers.kind.push_back(maps.strings[source.layers.kind[l].index()]);
    trace.layers.parameter_bytes.push_back(source.layers.parameter_bytes[l]);
    trace.layers.forward_order.push_back(static_cast<std::int32_t>(trace.layers.size()) - 1);
    trace.layers.calls.push_back(source.layers.calls[l]);
  }
  return maps;
}

}  // namespace stowage::simulator
