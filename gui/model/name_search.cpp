#include "gui/model/name_search.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>

#include "traces/size_text.h"

namespace stowage::gui {
namespace {

char lower(char c) {
  return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool holds(const std::string& name, const std::string& lowered) {
  return std::search(name.begin(), name.end(), lowered.begin(), lowered.end(),
                     [](char a, char b) { return lower(a) == b; }) != name.end();
}

bool is_root(const Trace& trace, LayerId layer) {
  return !layer.valid() || !trace.layers.parent[layer.index()].valid();
}

// What stands behind the name of something that is there.
std::string in_layer(const Trace& trace, LayerId layer) {
  return (is_root(trace, layer) ? " " : " in ") + layer_words(trace, layer);
}

std::string of_layer(const Trace& trace, LayerId layer) {
  return (is_root(trace, layer) ? " " : " of ") + layer_words(trace, layer);
}

// The storage that "#123" or "activation #123" names, -1 = none.
std::int32_t storage_row(const Trace& trace, const std::string& text) {
  const std::size_t sign = text.find('#');
  if (sign == std::string::npos || sign + 1 == text.size()) return -1;
  std::int32_t row = -1;
  const auto [end, error] = std::from_chars(text.data() + sign + 1, text.data() + text.size(), row);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || row < 0 || static_cast<std::size_t>(row) >= trace.storages.size()) return -1;
  const std::string of_class =
      std::string(stowage::name_of(trace.storages.storage_class[static_cast<std::size_t>(row)])) +
      " ";
  return sign == 0 || text.substr(0, sign) == of_class ? row : -1;
}

}  // namespace

std::vector<SearchHit> search(const Trace& trace, const std::string& text,
                              const std::stop_token& stop) {
  std::vector<SearchHit> hits;
  if (text.empty()) return hits;
  if (const std::int32_t row = storage_row(trace, text); row >= 0) {
    const Selection what{Selection::Kind::storage, row};
    hits.push_back({what, event_of(trace, what)});
    return hits;
  }
  std::string lowered = text;
  std::transform(lowered.begin(), lowered.end(), lowered.begin(), lower);
  // Names are shared by many rows: each is looked at once.
  std::vector<std::uint8_t> matches(trace.strings.size(), 0);
  for (std::size_t i = 0; i < trace.strings.size(); ++i) {
    if (i % 4096 == 0 && stop.stop_requested()) return hits;
    matches[i] = holds(trace.strings[i], lowered) ? 1 : 0;
  }
  std::vector<std::uint8_t> layer_seen(trace.layers.size(), 0);
  for (std::size_t e = 0; e < trace.events.size(); ++e) {
    if (e % 4096 == 0 && stop.stop_requested()) return hits;
    const std::int32_t ref = trace.events.ref[e];
    const auto row = static_cast<std::size_t>(ref);
    switch (trace.events.kind[e]) {
      case EventKind::op_begin:
        if (matches[trace.ops.name[row].index()] == 0) break;
        hits.push_back({{Selection::Kind::op, ref}, EventId(e)});
        break;
      case EventKind::layer_forward_begin:
        if (layer_seen[row] != 0 || matches[trace.layers.name[row].index()] == 0) break;
        layer_seen[row] = 1;
        hits.push_back({{Selection::Kind::layer, ref}, EventId(e)});
        break;
      case EventKind::pack:
        if (matches[trace.saved.site[row].index()] == 0) break;
        hits.push_back({{Selection::Kind::saved, ref}, EventId(e)});
        break;
      default:
        break;
    }
  }
  if (!hits.empty()) return hits;
  for (std::size_t i = 0; i < trace.gpu.size(); ++i) {
    if (i % 4096 == 0 && stop.stop_requested()) return hits;
    if (matches[trace.gpu.name[i].index()] == 0) continue;
    hits.push_back({{Selection::Kind::gpu, static_cast<std::int32_t>(i)}, trace.gpu.event[i]});
  }
  std::stable_sort(hits.begin(), hits.end(),
                   [](const SearchHit& a, const SearchHit& b) { return a.event < b.event; });
  return hits;
}

std::string layer_words(const Trace& trace, LayerId layer) {
  return is_root(trace, layer) ? std::string("outside of all layers")
                               : trace.string(trace.layers.name[layer.index()]);
}

std::string name_of(const Trace& trace, const Selection& selection) {
  const auto row = static_cast<std::size_t>(selection.row);
  switch (selection.kind) {
    case Selection::Kind::none:
      return {};
    case Selection::Kind::op:
      return trace.string(trace.ops.name[row]) + in_layer(trace, trace.ops.layer[row]);
    case Selection::Kind::gpu:
      return trace.string(trace.gpu.name[row]);
    case Selection::Kind::layer:
      return layer_words(trace, LayerId(row));
    case Selection::Kind::saved: {
      const StorageId storage = trace.saved.storage[row];
      const Bytes bytes = storage.valid() ? trace.storages.bytes[storage.index()] : 0;
      return trace.string(trace.saved.site[row]) + " (" + format_bytes(bytes) + ")";
    }
    case Selection::Kind::storage:
      return std::string(stowage::name_of(trace.storages.storage_class[row])) + " #" +
             std::to_string(selection.row) + of_layer(trace, trace.storages.layer[row]) + " (" +
             format_bytes(trace.storages.bytes[row]) + ")";
    case Selection::Kind::event:
      return std::string("event ") + std::to_string(selection.row) + " (" +
             stowage::name_of(trace.events.kind[row]) + ")";
    case Selection::Kind::transfer:
      return "transfer " + std::to_string(selection.row);
    case Selection::Kind::stall:
      return "stall " + std::to_string(selection.row);
    case Selection::Kind::update:
      return "update on the host " + std::to_string(selection.row);
  }
  return {};
}

EventId event_of(const Trace& trace, const Selection& selection) {
  const auto row = static_cast<std::size_t>(selection.row);
  const auto first = [&](EventKind kind) {
    for (std::size_t e = 0; e < trace.events.size(); ++e) {
      if (trace.events.kind[e] == kind && trace.events.ref[e] == selection.row) return EventId(e);
    }
    return EventId();
  };
  switch (selection.kind) {
    case Selection::Kind::op:
      return first(EventKind::op_begin);
    case Selection::Kind::gpu:
      return trace.gpu.event[row];
    case Selection::Kind::layer:
      return first(EventKind::layer_forward_begin);
    case Selection::Kind::saved:
      return trace.saved.event[row];
    case Selection::Kind::storage:
      return trace.storages.alloc_event[row].valid() ? trace.storages.alloc_event[row] : EventId(0);
    case Selection::Kind::event:
      return EventId(selection.row);
    case Selection::Kind::none:
    case Selection::Kind::transfer:
    case Selection::Kind::stall:
    case Selection::Kind::update:
      return {};
  }
  return {};
}

}  // namespace stowage::gui
