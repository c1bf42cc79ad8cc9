#include "planner/structure_pool.h"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/identical_names.h"

namespace stowage::planner {

StructurePool::Layer StructurePool::layer_of(const simulator::StepIndex& index,
                                             const std::string& name,
                                             const simulator::Segment& segment) {
  const Trace& trace = index.trace();
  const auto& work = index.compute_until();
  Layer layer;
  layer.name = name;
  layer.first = segment.first;
  layer.end = segment.end;
  const EventId stop = trace.saved.event[segment.last_needed.index()];
  layer.work = work[stop.index()] - work[segment.first.index()];
  const EventId again = trace.unpacks.event[segment.trigger.index()];
  std::vector<StorageId> made;
  for (const SavedId s : segment.saved) {
    const StorageId of = trace.saved.storage[s.index()];
    if (!of.valid() || trace.storages.device[of.index()] != 0) continue;
    const EventId alloc = trace.storages.alloc_event[of.index()];
    const EventId natural = trace.storages.natural_free_event[of.index()];
    const bool is_own = alloc.valid() && segment.has(alloc);
    if (is_own && natural.valid() && natural < again) made.push_back(of);
  }
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  for (const StorageId of : made) layer.bytes += trace.storages.bytes[of.index()];
  return layer;
}

StructurePool::StructurePool(const simulator::StepIndex& recorded) {
  if (!recorded.step().is_recording() || recorded.trace().layer_tensors.size() == 0) return;
  const simulator::SegmentFinder finder(recorded.trace());
  std::map<std::string, Kind> by_name;
  std::size_t found = 0;
  for (const simulator::SegmentFinder::Named& call : finder.calls()) {
    if (!call.is_callable || found == kMostSegments) continue;
    ++found;
    const Result<simulator::Segment> segment = finder.find(call.name);
    if (!segment) continue;
    Layer layer = layer_of(recorded, call.name, *segment);
    if (layer.bytes == 0) continue;
    Kind& kind = by_name[without_numbers(call.layer + "#")];
    kind.bytes += layer.bytes;
    kind.work += layer.work;
    kind.layers.push_back(std::move(layer));
  }
  for (auto& [name, kind] : by_name) kinds_.push_back(std::move(kind));
  std::stable_sort(kinds_.begin(), kinds_.end(), [](const Kind& a, const Kind& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.work < b.work;
  });
  // A layer around another one alone is of the same kind as that.
  const auto same = [](const Kind& a, const Kind& b) {
    return a.bytes == b.bytes && a.layers.size() == b.layers.size();
  };
  kinds_.erase(std::unique(kinds_.begin(), kinds_.end(), same), kinds_.end());
  if (kinds_.size() > kMostKinds) kinds_.resize(kMostKinds);
}

std::vector<StructurePool::Members> StructurePool::of_one_kind() const {
  std::vector<Members> all;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    const std::size_t layers = kinds_[k].layers.size();
    const std::size_t counts = std::min(layers, kMostCounts);
    for (std::size_t i = 1; i <= counts; ++i) {
      const std::size_t count = layers * i / counts;
      for (const std::size_t first : {std::size_t{0}, layers - count}) {
        Members& members = all.emplace_back();
        for (std::size_t m = first; m < first + count; ++m) members.emplace_back(k, m);
        if (count == layers) break;
      }
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const Members& a, const Members& b) { return work(a) < work(b); });
  return all;
}

void StructurePool::add(Members& members, const Members::value_type& member) const {
  const Layer& added = layer(member);
  std::erase_if(members, [&](const Members::value_type& other) {
    return layer(other).first < added.end && added.first < layer(other).end;
  });
  members.push_back(member);
}

std::vector<StructurePool::Members> StructurePool::neighbours(const Members& members) const {
  std::vector<Members> all;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    std::vector<Members::value_type> in;
    std::vector<Members::value_type> out;
    for (std::size_t m = 0; m < kinds_[k].layers.size(); ++m) {
      const bool is_in = std::binary_search(members.begin(), members.end(), std::pair(k, m));
      (is_in ? in : out).emplace_back(k, m);
    }
    std::vector<std::size_t> counts = {std::max<std::size_t>(kinds_[k].layers.size() / 4, 1)};
    if (counts.front() > 1) counts.push_back(1);
    for (const std::size_t count : counts) {
      for (const bool from_end : {false, true}) {
        const auto some = [&](const std::vector<Members::value_type>& of) {
          return from_end
                     ? std::vector(of.end() - static_cast<std::ptrdiff_t>(count), of.end())
                     : std::vector(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(count));
        };
        if (out.size() >= count) {
          Members more = members;
          for (const auto& member : some(out)) add(more, member);
          all.push_back(std::move(more));
        }
        if (in.size() >= count && members.size() > count) {
          Members fewer = members;
          for (const auto& member : some(in)) std::erase(fewer, member);
          all.push_back(std::move(fewer));
        }
      }
    }
  }
  for (Members& each : all) std::sort(each.begin(), each.end());
  return all;
}

std::vector<std::string> StructurePool::largest_kind() const {
  std::vector<std::string> names;
  if (kinds_.empty()) return names;
  for (const Layer& layer : kinds_.front().layers) names.push_back(layer.name);
  return names;
}

simulator::Structure StructurePool::structure(const Members& members) const {
  simulator::Structure structure;
  for (const auto& member : members) structure.recompute.push_back(layer(member).name);
  return structure;
}

Nanoseconds StructurePool::work(const Members& members) const {
  Nanoseconds sum = 0;
  for (const auto& member : members) sum += layer(member).work;
  return sum;
}

}  // namespace stowage::planner
