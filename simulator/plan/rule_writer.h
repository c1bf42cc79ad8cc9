// Decisions as few rules: saved tensors of identical layers that are decided alike become one rule
// with a range of numbers. Used by to_rules().
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "simulator/plan/decisions.h"
#include "simulator/plan/pattern_text.h"

namespace stowage::simulator {

// Method: the first path component that is a number splits a site into prefix, number and suffix
// ("layers.", 3, ".mlp#2"). For each prefix, suffixes with the same decision and the same set of
// numbers go together; all suffixes of these layers -> one rule, all packs of one layer -> "#*",
// else "#[0,2-4]". Two encodings are tried, "keep unless" and "the most frequent offload unless";
// the shorter one wins. Cost: O(saved log saved).
class RuleWriter {
 public:
  RuleWriter(const Trace& trace, Spelling spelling) : trace_(trace), spelling_(spelling) {}

  // In order of rows, all of them. The decision may hold relative points.
  void add(SavedId saved, SavedDecision decision);

  // Ends with {"site": "*", "do": "keep"}.
  [[nodiscard]] std::vector<SavedRule> rules() const;
  // The same of what the step made and is not kept alone: they say nothing of the others.
  [[nodiscard]] std::vector<SavedRule> rules_unless_kept() const;
  // One rule for each saved tensor.
  [[nodiscard]] std::vector<SavedRule> rules_one_by_one() const;

 private:
  // A site taken apart. number -1: no component is a number, and all is suffix.
  struct Site {
    std::string prefix;
    std::int64_t number = -1;
    std::string path;     // of the suffix, up to its '#'
    std::string ordinal;  // behind the '#'; empty when there is none
    std::string name;     // all of it
    std::size_t decision = 0;
  };
  using Sites = std::vector<Site>;

  [[nodiscard]] SavedRule rule(std::size_t decision, std::string site) const;
  [[nodiscard]] std::vector<SavedRule> unless(const Sites& sites, std::size_t usual) const;
  [[nodiscard]] std::vector<SavedRule> shortest(const Sites& sites) const;

  const Trace& trace_;
  Spelling spelling_;
  std::vector<SavedDecision> kinds_{SavedDecision{}};  // distinct decisions; 0 = keep
  std::map<std::string, std::size_t> kind_of_;         // by their text
  Sites created_;                                      // storages that the step made
  std::map<StorageClass, Sites> older_;                // storages that are older than the step
};

}  // namespace stowage::simulator
