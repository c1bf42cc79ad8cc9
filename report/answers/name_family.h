// Names that differ in one number alone, said together: "layers.[0-3].mlp#2".
#pragma once

#include <string>

#include "simulator/plan/pattern_text.h"

namespace stowage::report {

class NameFamily {
 public:
  // Names with one key are a family.
  [[nodiscard]] static std::string key_of(const std::string& name);

  // Precondition: of this family.
  void add(const std::string& name);
  [[nodiscard]] std::string text() const;

 private:
  simulator::Numbers numbers_;
  simulator::NumberedPath path_;
};

}  // namespace stowage::report
