#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traces/columns.h"
#include "traces/units.h"
#include "traces/validate_checks.h"

namespace stowage {
namespace {

// Parents come before their children, so there is no cycle.
template <class IdT>
void check_parents(const std::vector<IdT>& parent, const char* column, Findings& findings) {
  for (std::size_t i = 0; i < parent.size(); ++i) {
    if (parent[i].value < static_cast<std::int64_t>(i)) continue;
    findings.add(
        column, i,
        "is " + std::to_string(parent[i].value) + ", which does not come before its child");
    return;
  }
}

// Plans name layers and saved tensors: each by a name of its own.
template <class IdT>
void check_names(const Trace& trace, const std::vector<IdT>& column, const char* place,
                 const char* what, Findings& findings) {
  std::unordered_map<std::string_view, std::size_t> rows;
  for (std::size_t i = 0; i < column.size(); ++i) {
    const std::string& name = trace.string(column[i]);
    if (name.empty())
      return findings.add(place, i, std::string("is the empty text: ") + what + " has a name");
    const auto [row, is_new] = rows.try_emplace(name, i);
    if (is_new) continue;
    return findings.add(place, i,
                        "is the name of row " + std::to_string(row->second) + " as well: " + what +
                            " has a name of its own");
  }
}

void check_phases(const Trace& trace, Findings& findings) {
  const Phases& phases = trace.phases;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases.first_event[i].value != next) {
      return findings.add("/phases/first_event", i,
                          "is " + std::to_string(phases.first_event[i].value) +
                              "; the phases before it end at " + std::to_string(next - 1));
    }
    if (phases.last_event[i] < phases.first_event[i]) {
      return findings.add("/phases/last_event", i, "is before its first event");
    }
    next = std::int64_t{phases.last_event[i].value} + 1;
  }
  if (phases.size() > 0 && next != static_cast<std::int64_t>(trace.events.size())) {
    findings.add("/phases/last_event", phases.size() - 1,
                 "is not the last event: phases must cover the step");
  }
}

void check_curve(const LinkCurve& curve, const std::string& place, Findings& findings) {
  const std::size_t points = curve.bytes.size();
  if (curve.bytes_per_second.size() != points || curve.bytes_per_second_p10.size() != points) {
    const bool median = curve.bytes_per_second.size() != points;
    return findings.add(
        place + (median ? "/bytes_per_second" : "/bytes_per_second_p10"),
        "has " +
            std::to_string((median ? curve.bytes_per_second : curve.bytes_per_second_p10).size()) +
            " values, but bytes has " + std::to_string(points));
  }
  for (std::size_t i = 1; i < points; ++i) {
    if (curve.bytes[i] <= curve.bytes[i - 1]) {
      return findings.add(place + "/bytes", i, "is not larger than the size before it");
    }
  }
}

// A row is an allocation of bytes or the one free of an earlier allocation that no storage is. A
// storage is one row's at most, of its size and there when the recorded step begins; what the first
// step makes and later ones have is there all the time in the recorded one.
void check_setup(const Trace& trace, Findings& findings) {
  const Setup& setup = trace.setup;
  const Storages& storages = trace.storages;
  std::vector<bool> freed(setup.size(), false);
  std::vector<bool> made(storages.size(), false);
  for (std::size_t i = 0; i < setup.size() && findings.none(); ++i) {
    if (i > 0 && setup.event[i] < setup.event[i - 1]) {
      findings.add("/setup/event", i, "is earlier than the row before it");
    } else if (const StorageId storage = setup.storage[i];
               storage.valid() && setup.event[i].valid() &&
               (storages.alloc_event[storage.index()].valid() ||
                storages.free_event[storage.index()].valid())) {
      findings.add("/setup/event", i, "makes a storage that does not last");
    }
    const std::int32_t of = setup.free_of[i];
    if (const StorageId storage = setup.storage[i]; storage.valid() && of < 0) {
      if (made[storage.index()]) {
        findings.add("/setup/storage", i, "names a storage that an earlier row makes");
      } else if (setup.bytes[i] != storages.bytes[storage.index()]) {
        findings.add("/setup/bytes", i,
                     "is " + std::to_string(setup.bytes[i]) + ", but its storage has " +
                         std::to_string(storages.bytes[storage.index()]) + " bytes");
      } else if (!setup.event[i].valid() && storages.alloc_event[storage.index()].valid()) {
        findings.add("/setup/storage", i, "names a storage that the step itself makes");
      }
      made[storage.index()] = true;
    }
    if (of < 0) continue;
    const auto row = static_cast<std::size_t>(of);
    if (row >= i) {
      findings.add("/setup/free_of", i, "is not an earlier row");
    } else if (setup.free_of[row] >= 0 || setup.storage[row].valid() || freed[row]) {
      findings.add("/setup/free_of", i, "names no allocation that can be freed");
    } else if (setup.bytes[i] != 0 || setup.storage[i].valid()) {
      findings.add("/setup/bytes", i, "stands in a row that frees");
    }
    if (row < i) freed[row] = true;
  }
}

void check_layer_tensors(const Trace& trace, Findings& findings) {
  const std::vector<EventId>& events = trace.layer_tensors.event;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const EventKind kind = trace.events.kind[events[i].index()];
    if (kind != EventKind::layer_forward_begin && kind != EventKind::layer_forward_end) {
      return findings.add("/layer_tensors/event", i,
                          "is " + std::to_string(events[i].value) +
                              ", which is no begin or end of a layer in forward");
    }
    if (i > 0 && events[i] < events[i - 1]) {
      return findings.add("/layer_tensors/event", i, "is earlier than the row before it");
    }
  }
}

// Of a gradient or optimizer state.
void check_owners(const Storages& storages, Findings& findings) {
  for (std::size_t i = 0; i < storages.size(); ++i) {
    const StorageId parameter = storages.parameter[i];
    if (!parameter.valid()) continue;
    const StorageClass own = storages.storage_class[i];
    if (own != StorageClass::gradient && own != StorageClass::optimizer_state) {
      return findings.add("/storages/parameter", i,
                          std::string("is named by a storage of class ") + name_of(own));
    }
    if (storages.storage_class[parameter.index()] != StorageClass::parameter) {
      return findings.add("/storages/parameter", i,
                          "is " + std::to_string(parameter.value) + ", which is no parameter");
    }
  }
}

}  // namespace

void check_sites(const Trace& trace, Findings& findings) {
  // What runs again saves at the same sites.
  std::vector<StringId> sites;
  std::vector<bool> is_again(trace.events.size(), false);
  for (std::size_t p = 0; p < trace.phases.size(); ++p) {
    if (trace.phases.kind[p] != PhaseKind::recompute) continue;
    std::fill(is_again.begin() + trace.phases.first_event[p].value,
              is_again.begin() + trace.phases.last_event[p].value + 1, true);
  }
  for (std::size_t s = 0; s < trace.saved.size(); ++s) {
    if (!is_again[trace.saved.event[s].index()]) sites.push_back(trace.saved.site[s]);
  }
  check_names(trace, sites, "/saved/site", "a saved tensor", findings);
}

void check_tree(const Trace& trace, Findings& findings) {
  check_parents(trace.layers.parent, "/layers/parent", findings);
  check_parents(trace.ops.parent, "/ops/parent", findings);
  check_parents(trace.ops.forward_op, "/ops/forward_op", findings);
  check_owners(trace.storages, findings);
  check_names(trace, trace.layers.name, "/layers/name", "a layer", findings);
  check_phases(trace, findings);
  if (findings.none()) check_layer_tensors(trace, findings);
  for (std::size_t i = 1; i < trace.gpu.size() && findings.none(); ++i) {
    if (trace.gpu.start[i] < trace.gpu.start[i - 1]) {
      findings.add("/gpu/start", i, "is earlier than the row before it");
    }
  }
  check_setup(trace, findings);
}

void check_tensors(const Trace& trace, Findings& findings) {
  const Tensors& tensors = trace.tensors;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::vector<std::int64_t>& shape = trace.list(tensors.shape[i]);
    const std::vector<std::int64_t>& strides = trace.list(tensors.strides[i]);
    if (shape.size() != strides.size()) {
      return findings.add("/tensors/strides", i,
                          "has " + std::to_string(strides.size()) + " values, the shape has " +
                              std::to_string(shape.size()));
    }
    Wide last = tensors.offset[i];
    Wide elements = 1;
    bool empty = false;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      empty = empty || shape[k] == 0;
      if (shape[k] > 0 && last <= kMaxSize) last += Wide{shape[k] - 1} * strides[k];
      if (shape[k] > 0 && elements <= kMaxSize) elements *= shape[k];
    }
    const Bytes element = tensors.item_bytes[i];
    if (tensors.dtype[i] != DType::other && element != element_bytes(tensors.dtype[i])) {
      return findings.add("/tensors/item_bytes", i,
                          "is " + std::to_string(element) + ", but " + name_of(tensors.dtype[i]) +
                              " has " + std::to_string(element_bytes(tensors.dtype[i])));
    }
    if (empty ? elements > kMaxSize : (last + 1) * element > kMaxSize || elements > kMaxSize) {
      return findings.add("/tensors/shape", i, "makes a tensor of an absurd size");
    }
  }
}

void check_calibration(const Trace& trace, Findings& findings) {
  check_curve(trace.calibration.d2h, "/calibration/d2h", findings);
  check_curve(trace.calibration.h2d, "/calibration/h2d", findings);
}

}  // namespace stowage
