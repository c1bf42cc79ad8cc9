#include "simulator/plan/rule_writer.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <set>
#include <utility>

#include "simulator/plan/program_point.h"
#include "simulator/plan/rule_match.h"

namespace stowage::simulator {
namespace {

std::string key_of(const SavedDecision& decision) {
  if (decision.decision == Decision::keep) return "";
  if (decision.decision == Decision::recompute) return name_of(decision.decision);
  return format_release_point(decision.release) + " " + format_reload_point(decision.reload) + " " +
         name_of(decision.copy_out) + " " + name_of(decision.copy_in) +
         (decision.share ? " share" : "");
}

}  // namespace

void RuleWriter::add(SavedId saved, SavedDecision decision) {
  if (kind_of_.empty()) kind_of_[""] = 0;
  const auto [kind, is_new] = kind_of_.emplace(key_of(decision), kinds_.size());
  if (is_new) kinds_.push_back(std::move(decision));

  Site site;
  site.decision = kind->second;
  const std::string& name = trace_.string(trace_.saved.site[saved.index()]);
  const std::size_t hash = std::min(name.rfind('#'), name.size());
  const std::string path = name.substr(0, hash);
  if (hash < name.size()) site.ordinal = name.substr(hash + 1);
  NumberedPath parts = take_apart(path);
  site.prefix = std::move(parts.prefix);
  site.number = parts.number;
  site.path = std::move(parts.suffix);
  site.name = name;

  const StorageId storage = trace_.saved.storage[saved.index()];
  if (pre_existing(trace_, storage)) {
    older_[trace_.storages.storage_class[storage.index()]].push_back(std::move(site));
  } else {
    created_.push_back(std::move(site));
  }
}

SavedRule RuleWriter::rule(std::size_t decision, std::string site) const {
  const SavedDecision& kind = kinds_[decision];
  SavedRule rule;
  rule.site = std::move(site);
  rule.decision = kind.decision;
  rule.release = kind.release;
  rule.reload = kind.reload;
  rule.copy_out = kind.copy_out;
  rule.copy_in = kind.copy_in;
  rule.share = kind.share;
  return rule;
}

std::vector<SavedRule> RuleWriter::unless(const Sites& sites, std::size_t usual) const {
  // prefix -> path -> ordinal -> number -> decision
  using ByNumber = std::map<std::int64_t, std::size_t>;
  using ByOrdinal = std::map<std::string, ByNumber>;
  std::map<std::string, std::map<std::string, ByOrdinal>> families;
  for (const Site& site : sites) {
    // Sites without a number are a family each, by name.
    const std::string prefix = as_pattern(site.number < 0 ? site.path : site.prefix, spelling_);
    families[prefix][site.number < 0 ? "" : as_pattern(site.path, spelling_)][site.ordinal]
            [site.number] = site.decision;
  }

  std::vector<SavedRule> out;
  for (const auto& [prefix, paths] : families) {
    // (decision, numbers) -> path -> ordinals
    std::map<std::pair<std::size_t, Numbers>, std::map<std::string, std::set<std::string>>> groups;
    for (const auto& [path, ordinals] : paths) {
      for (const auto& [ordinal, numbers] : ordinals) {
        std::map<std::size_t, Numbers> by_decision;
        for (const auto& [number, decision] : numbers) by_decision[decision].insert(number);
        for (auto& [decision, set] : by_decision) {
          if (decision != usual) groups[{decision, set}][path].insert(ordinal);
        }
      }
    }
    for (const auto& [key, members] : groups) {
      const auto& [decision, numbers] = key;
      const bool numbered = *numbers.begin() >= 0;
      const std::string head = prefix + (numbered ? numbers_text(numbers) : "");
      // Is every pack of these layers (of this path, if given) decided like this?
      const auto all_alike = [&, &of_paths = paths, which = decision,
                              &among = numbers](const std::string* only) {
        for (const auto& [path, ordinals] : of_paths) {
          if (only != nullptr && path != *only) continue;
          for (const auto& [ordinal, by_number] : ordinals) {
            for (const auto& [number, other] : by_number) {
              if (among.count(number) != 0 && other != which) return false;
            }
          }
        }
        return true;
      };
      if (numbered && (members.size() > 1 || paths.size() == 1) && all_alike(nullptr)) {
        out.push_back(rule(decision, head + "*"));
        continue;
      }
      for (const auto& [path, ordinals] : members) {
        if (ordinals.size() > 1 && all_alike(&path)) {
          out.push_back(rule(decision, head + path + "#*"));
          continue;
        }
        Numbers packs;
        for (const std::string& ordinal : ordinals) {
          if (is_number(ordinal)) {
            packs.insert(std::stoll(ordinal));
          } else {
            out.push_back(
                rule(decision,
                     head + path + (ordinal.empty() ? "" : "#" + as_pattern(ordinal, spelling_))));
          }
        }
        if (!packs.empty()) out.push_back(rule(decision, head + path + "#" + numbers_text(packs)));
      }
    }
  }
  if (usual != 0) out.push_back(rule(usual, "*"));
  return out;
}

std::vector<SavedRule> RuleWriter::shortest(const Sites& sites) const {
  std::vector<std::size_t> count(kinds_.size(), 0);
  for (const Site& site : sites) ++count[site.decision];
  std::vector<SavedRule> best = unless(sites, 0);
  const auto frequent =
      static_cast<std::size_t>(std::max_element(count.begin() + 1, count.end()) - count.begin());
  if (frequent < count.size() && count[frequent] > 0) {
    std::vector<SavedRule> other = unless(sites, frequent);
    if (other.size() < best.size()) best = std::move(other);
  }
  return best;
}

std::vector<SavedRule> RuleWriter::rules() const {
  std::vector<SavedRule> last = shortest(created_);
  last.push_back(rule(0, "*"));
  std::vector<SavedRule> first;
  for (const auto& [storage_class, sites] : older_) {
    std::vector<SavedRule> rules = shortest(sites);
    // Storages that the step made may be of the same class: then their own rules come first. They
    // end with "*", which never matches an older storage.
    const bool shared = std::any_of(trace_.saved.storage.begin(), trace_.saved.storage.end(),
                                    [&, wanted = storage_class](StorageId s) {
                                      return s.valid() && !pre_existing(trace_, s) &&
                                             trace_.storages.storage_class[s.index()] == wanted;
                                    });
    for (SavedRule& next : rules) {
      next.storage_class = storage_class;
      (shared ? last : first).push_back(std::move(next));
    }
  }
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

std::vector<SavedRule> RuleWriter::rules_unless_kept() const {
  return unless(created_, 0);
}

std::vector<SavedRule> RuleWriter::rules_one_by_one() const {
  std::vector<SavedRule> out;
  // Exact names come first, kept ones too: the `?` of another name may match them as well.
  const auto add_all = [&](const Sites& sites, std::optional<StorageClass> storage_class) {
    for (const bool exact : {true, false}) {
      for (const Site& site : sites) {
        if ((site.name.find_first_of("*?[") == std::string::npos) != exact) continue;
        out.push_back(rule(site.decision, as_pattern(site.name, spelling_)));
        out.back().storage_class = storage_class;
      }
    }
  };
  add_all(created_, std::nullopt);
  out.push_back(rule(0, "*"));
  for (const auto& [storage_class, sites] : older_) add_all(sites, storage_class);
  return out;
}

}  // namespace stowage::simulator
