#include "planner/op_families.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "planner/identical_names.h"
#include "simulator/machine/link_model.h"
#include "simulator/step/op_chains.h"

namespace stowage::planner {
namespace {

using simulator::Segment;

class FamilyFinder {
 public:
  FamilyFinder(const simulator::StepIndex& index, bool copied)
      : copied_(copied),
        index_(index),
        trace_(index.trace()),
        chains_(trace_),
        made_of_(trace_.storages.size()),
        is_worth_(trace_.storages.size()) {}

  std::vector<OpFamily> find(std::size_t most) {
    std::map<std::string, OpFamily> by_name;
    std::set<StorageId> is_part;
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      if (!is_worth(StorageId(s))) continue;
      is_part.insert(made_of_[s].begin(), made_of_[s].end());
    }
    for (std::size_t s = 0; s < trace_.storages.size(); ++s) {
      const StorageId storage(s);
      const auto saved = index_.saved_of(storage);
      if (saved.empty() || !chains_.check(saved.front())) continue;
      add(by_name, storage, {storage}, kAlone);
      if (is_part.contains(storage) || !is_worth(storage)) continue;
      std::set<StorageId> all = {storage};
      add_parts(storage, all);
      if (all.size() > 1) add(by_name, storage, {all.begin(), all.end()}, " with its parts");
    }
    std::vector<OpFamily> families;
    std::set<std::string> alone;
    for (const auto& [name, family] : by_name) {
      if (name.ends_with(kAlone) && is_worth_a_look(family)) add_sites(family, alone);
    }
    for (auto& [name, family] : by_name) {
      if (!is_worth_a_look(family)) continue;
      std::set<std::string> sites;
      add_sites(family, sites);
      const bool is_sum = !name.ends_with(kAlone) &&
                          std::includes(alone.begin(), alone.end(), sites.begin(), sites.end());
      if (!is_sum) families.push_back(std::move(family));
    }
    std::stable_sort(families.begin(), families.end(), [](const OpFamily& a, const OpFamily& b) {
      return Wide{a.bytes} * std::max<Nanoseconds>(b.work, 1) >
             Wide{b.bytes} * std::max<Nanoseconds>(a.work, 1);
    });
    if (families.size() > most) families.resize(most);
    return families;
  }

 private:
  static constexpr const char* kAlone = " alone";  // behind the name of a family of one tensor

  // Where copying both ways takes less time than the ops, nobody needs them.
  [[nodiscard]] bool is_worth_a_look(const OpFamily& family) const {
    if (!copied_) return family.bytes > 0;
    const Calibration& link = trace_.calibration;
    const Nanoseconds copies = simulator::transfer_ns(link.d2h, family.bytes) +
                               simulator::transfer_ns(link.h2d, family.bytes);
    return family.bytes > 0 && family.work < copies;
  }

  static void add_sites(const OpFamily& family, std::set<std::string>& sites) {
    for (const OpFamily::Member& member : family.members) {
      sites.insert(member.sites.begin(), member.sites.end());
    }
  }

  [[nodiscard]] std::vector<std::string> sites_of(const std::vector<StorageId>& storages) const {
    std::vector<std::string> sites;
    for (const StorageId storage : storages) {
      for (const SavedId saved : index_.saved_of(storage)) {
        sites.push_back(trace_.string(trace_.saved.site[saved.index()]));
      }
    }
    return sites;
  }

  // Bytes that chains hold that nobody saves.
  [[nodiscard]] Bytes held_by(const std::vector<Segment>& chains) const {
    std::set<StorageId> held;
    for (const Segment& chain : chains) {
      for (const Segment::Input& input : chain.inputs) {
        const StorageId of = trace_.tensors.storage[input.tensor.index()];
        if (of.valid() && index_.saved_of(of).empty()) held.insert(of);
      }
    }
    Bytes bytes = 0;
    for (const StorageId each : held) bytes += trace_.storages.bytes[each.index()];
    return bytes;
  }

  // Then its parts are the saved tensors that it is made of.
  bool is_worth(StorageId storage) {
    std::optional<bool>& known = is_worth_[storage.index()];
    if (known) return *known;
    known = false;
    const auto saved = index_.saved_of(storage);
    if (saved.empty() || !chains_.check(saved.front())) return false;
    const auto chains = chains_.find(sites_of({storage}));
    if (!chains || held_by(*chains) >= trace_.storages.bytes[storage.index()]) return false;
    for (const Segment& chain : *chains) {
      for (const Segment::Input& input : chain.inputs) {
        const StorageId of = trace_.tensors.storage[input.tensor.index()];
        if (of.valid() && !index_.saved_of(of).empty()) made_of_[storage.index()].push_back(of);
      }
    }
    known = true;
    return true;
  }

  void add_parts(StorageId storage, std::set<StorageId>& all) {
    for (const StorageId part : made_of_[storage.index()]) {
      if (is_worth(part) && all.insert(part).second) add_parts(part, all);
    }
  }

  void add(std::map<std::string, OpFamily>& by_name, StorageId storage,
           const std::vector<StorageId>& storages, const char* which) const {
    OpFamily::Member member;
    member.sites = sites_of(storages);
    const auto chains = chains_.find(member.sites);
    if (!chains) return;
    for (const StorageId each : storages) member.bytes += trace_.storages.bytes[each.index()];
    member.bytes -= held_by(*chains);
    member.first = chains->front().first;
    member.end = chains->front().end;
    for (const Segment& chain : *chains) {
      member.first = std::min(member.first, chain.first);
      member.end = std::max(member.end, chain.end);
      member.work += work_of(chain);
    }
    const SavedId first = index_.saved_of(storage).front();
    OpFamily& family =
        by_name[without_numbers(trace_.string(trace_.saved.site[first.index()])) + which];
    family.bytes += member.bytes;
    family.work += member.work;
    family.members.push_back(std::move(member));
  }

  [[nodiscard]] Nanoseconds work_of(const Segment& chain) const {
    const auto& work = index_.compute_until();
    Nanoseconds sum = 0;
    for (const OpId op : chain.ops) {
      const auto [begin, end] = chains_.events_of(op);
      sum += work[end.index()] - work[begin.index()];
    }
    return sum;
  }

  const bool copied_;
  const simulator::StepIndex& index_;
  const Trace& trace_;
  const simulator::ChainFinder chains_;
  std::vector<std::vector<StorageId>> made_of_;  // by storage
  std::vector<std::optional<bool>> is_worth_;    // likewise
};

}  // namespace

std::vector<OpFamily> op_families(const simulator::StepIndex& recorded, std::size_t most,
                                  bool copied) {
  return FamilyFinder(recorded, copied).find(most);
}

}  // namespace stowage::planner
