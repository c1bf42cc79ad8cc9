#include "planner/structure_pool.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "planner/identical_names.h"
#include "planner/op_families.h"
#include "planner/pins.h"

namespace stowage::planner {

StructurePool::Layer StructurePool::layer_of(const simulator::StepIndex& index,
                                             const std::string& name,
                                             const simulator::Segment& segment) {
  const Trace& trace = index.trace();
  const auto& work = index.compute_until();
  Layer layer;
  layer.names = {name};
  layer.first = segment.first;
  layer.end = segment.end;
  const EventId stop = trace.saved.event[segment.last_needed.index()];
  layer.work = work[stop.index()] - work[segment.first.index()];
  const EventId again = segment.runs_at;
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

namespace {

// What is pinned settles whether these run again.
class SettledByPins {
 public:
  // `pinned`: null where nothing is; both must outlive it.
  SettledByPins(const Trace& recording, const Pins* pinned)
      : recording_(recording), pinned_(pinned) {
    if (pinned_ == nullptr || pinned_->structure().recompute.empty()) return;
    const simulator::SegmentFinder finder(recording);
    for (const std::string& name : pinned_->structure().recompute) {
      const Result<simulator::Segment> segment = finder.find(name);
      if (segment) runs_.emplace_back(segment->first, segment->end);
    }
  }

  [[nodiscard]] bool settles(const simulator::Segment& segment) const {
    if (pinned_ == nullptr) return false;
    return overlaps(segment.first, segment.end) ||
           std::any_of(segment.saved.begin(), segment.saved.end(), [&](SavedId saved) {
             return settles(recording_.string(recording_.saved.site[saved.index()]));
           });
  }
  [[nodiscard]] bool settles(const OpFamily::Member& member) const {
    if (pinned_ == nullptr) return false;
    return overlaps(member.first, member.end) ||
           std::any_of(member.sites.begin(), member.sites.end(),
                       [&](const std::string& site) { return settles(site); });
  }

 private:
  [[nodiscard]] bool settles(const std::string& site) const {
    const std::vector<std::string>& ops = pinned_->structure().ops;
    return pinned_->names(site) || std::find(ops.begin(), ops.end(), site) != ops.end();
  }
  [[nodiscard]] bool overlaps(EventId first, EventId end) const {
    return std::any_of(runs_.begin(), runs_.end(),
                       [&](const auto& run) { return run.first < end && first < run.second; });
  }

  const Trace& recording_;
  const Pins* pinned_;
  std::vector<std::pair<EventId, EventId>> runs_;
};

}  // namespace

StructurePool::StructurePool(const simulator::StepIndex& recorded, bool copied,
                             const Pins* pinned) {
  if (!recorded.step().is_recording()) return;
  if (recorded.trace().layer_tensors.size() > 0) add_kinds_of_layers(recorded, pinned);
  const SettledByPins pins(recorded.trace(), pinned);
  for (OpFamily& family : op_families(recorded, kMostFamilies, copied)) {
    for (const OpFamily::Member& member : family.members) {
      if (!pins.settles(member)) continue;
      family.bytes -= member.bytes;
      family.work -= member.work;
    }
    std::erase_if(family.members,
                  [&](const OpFamily::Member& member) { return pins.settles(member); });
    if (family.members.empty()) continue;
    Kind& kind = kinds_.emplace_back();
    kind.is_ops = true;
    kind.bytes = family.bytes;
    kind.work = family.work;
    for (OpFamily::Member& member : family.members) {
      kind.layers.push_back(
          {std::move(member.sites), member.first, member.end, member.work, member.bytes});
    }
  }
}

void StructurePool::add_kinds_of_layers(const simulator::StepIndex& recorded, const Pins* pinned) {
  const SettledByPins pins(recorded.trace(), pinned);
  const simulator::SegmentFinder finder(recorded.trace());
  std::map<std::string, Kind> by_name;
  std::size_t found = 0;
  for (const simulator::SegmentFinder::Named& call : finder.calls()) {
    if (!call.is_callable || found == kMostSegments) continue;
    ++found;
    const Result<simulator::Segment> segment = finder.find(call.name);
    if (!segment || pins.settles(*segment)) continue;
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

std::vector<StructurePool::Members> StructurePool::every_set() const {
  std::vector<Members> all = {{}};
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    for (std::size_t m = 0; m < kinds_[k].layers.size(); ++m) {
      for (std::size_t i = all.size(); i-- > 0;) {
        Members more = all[i];
        add(more, {k, m});
        if (more.size() > all[i].size()) all.push_back(std::move(more));  // nothing is in the way
      }
    }
  }
  all.erase(all.begin());
  return all;
}

std::vector<StructurePool::Members> StructurePool::starts(Starts which) const {
  std::size_t most = 0;
  for (const Kind& kind : kinds_) most += kind.layers.size();
  std::vector<Members> all;
  if (which == Starts::every_set_of_few && most <= kFewMembers) all = every_set();
  Members by_ops;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (!kinds_[k].is_ops) continue;
    for (std::size_t m = 0; m < kinds_[k].layers.size(); ++m) by_ops.emplace_back(k, m);
    all.push_back(by_ops);
  }
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (kinds_[k].is_ops) continue;
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
  for (Members& each : all) std::sort(each.begin(), each.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::stable_sort(all.begin(), all.end(),
                   [&](const Members& a, const Members& b) { return work(a) < work(b); });
  return all;
}

bool StructurePool::overlap(const Members::value_type& a, const Members::value_type& b) const {
  return layer(a).first < layer(b).end && layer(b).first < layer(a).end;
}

void StructurePool::add(Members& members, const Members::value_type& member) const {
  const bool by_ops = kinds_[member.first].is_ops;
  const auto in_the_way = [&](const Members::value_type& other) {
    return overlap(other, member) && !(by_ops && kinds_[other.first].is_ops);
  };
  if (by_ops) {
    if (std::any_of(members.begin(), members.end(), in_the_way)) return;
  } else {
    std::erase_if(members, in_the_way);
  }
  members.push_back(member);
}

std::vector<StructurePool::Members> StructurePool::neighbours(const Members& members,
                                                              std::size_t most) const {
  std::vector<Members> all;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    std::vector<Members::value_type> in;
    std::vector<Members::value_type> out;
    for (std::size_t m = 0; m < kinds_[k].layers.size(); ++m) {
      const bool is_in = std::binary_search(members.begin(), members.end(), std::pair(k, m));
      (is_in ? in : out).emplace_back(k, m);
    }
    std::set<std::size_t> counts = {std::max<std::size_t>(kinds_[k].layers.size() / 4, 1)};
    kinds_[k].is_ops ? counts.insert({in.size(), out.size()}) : counts.insert({1});
    for (const std::size_t count : counts) {
      if (count == 0) continue;
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
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::erase(all, members);
  std::erase(all, Members());
  std::vector<Members> best = most_worth(members, all, most);
  for (Members& swapped : swaps(members)) {
    if (std::find(best.begin(), best.end(), swapped) == best.end()) {
      best.push_back(std::move(swapped));
    }
  }
  return best;
}

std::vector<StructurePool::Members> StructurePool::swaps(const Members& members) const {
  std::vector<Members> all;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (kinds_[k].is_ops) continue;
    Members with = members;
    for (std::size_t m = 0; m < kinds_[k].layers.size(); ++m) {
      if (!std::binary_search(members.begin(), members.end(), std::pair(k, m))) add(with, {k, m});
    }
    std::sort(with.begin(), with.end());
    // Something gave way.
    if (!std::includes(with.begin(), with.end(), members.begin(), members.end())) {
      all.push_back(std::move(with));
    }
  }
  return all;
}

std::vector<StructurePool::Members> StructurePool::most_worth(const Members& members,
                                                              const std::vector<Members>& all,
                                                              std::size_t most) const {
  struct Change {
    const Members* to;
    Bytes bytes = 0;
    Nanoseconds work = 0;
  };
  std::vector<Change> more;
  std::vector<Change> fewer;
  const Bytes bytes_before = bytes(members);
  const Nanoseconds work_before = work(members);
  for (const Members& to : all) {
    const Change change{&to, bytes(to) - bytes_before, work(to) - work_before};
    if (change.bytes <= 0 && change.work >= 0) continue;
    (change.bytes > 0 ? more : fewer).push_back(change);
  }
  const auto density = [](const Change& a, const Change& b) {
    return Wide{a.bytes} * std::max<Nanoseconds>(b.work, 1) >
           Wide{b.bytes} * std::max<Nanoseconds>(a.work, 1);
  };
  std::stable_sort(more.begin(), more.end(), density);
  std::stable_sort(fewer.begin(), fewer.end(), [](const Change& a, const Change& b) {
    return Wide{a.bytes} * b.work < Wide{b.bytes} * a.work;
  });
  std::vector<Members> best;
  for (std::vector<Change>* const changes : {&more, &fewer}) {
    if (changes->size() > most) changes->resize(most);
    for (const Change& change : *changes) best.push_back(*change.to);
  }
  return best;
}

Bytes StructurePool::bytes(const Members& members) const {
  Bytes sum = 0;
  for (const auto& member : members) sum += layer(member).bytes;
  return sum;
}

std::vector<std::string> StructurePool::largest_kind() const {
  std::vector<std::string> names;
  if (kinds_.empty() || kinds_.front().is_ops) return names;
  for (const Layer& layer : kinds_.front().layers) names.push_back(layer.names.front());
  return names;
}

simulator::Structure StructurePool::structure(const Members& members) const {
  simulator::Structure structure;
  std::set<std::string> sites;
  for (const auto& member : members) {
    const std::vector<std::string>& names = layer(member).names;
    if (kinds_[member.first].is_ops) {
      sites.insert(names.begin(), names.end());
    } else {
      structure.recompute.push_back(names.front());
    }
  }
  structure.ops.assign(sites.begin(), sites.end());
  return structure;
}

Nanoseconds StructurePool::work(const Members& members) const {
  Nanoseconds sum = 0;
  for (const auto& member : members) sum += layer(member).work;
  return sum;
}

}  // namespace stowage::planner
