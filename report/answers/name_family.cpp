#include "report/answers/name_family.h"

#include <algorithm>

namespace stowage::report {
namespace {

// A number behind the '#' of a site is no layer's.
simulator::NumberedPath path_of(const std::string& name) {
  const std::size_t hash = std::min(name.rfind('#'), name.size());
  simulator::NumberedPath path = simulator::take_apart(name.substr(0, hash));
  path.suffix += name.substr(hash);
  return path;
}

}  // namespace

std::string NameFamily::key_of(const std::string& name) {
  const simulator::NumberedPath path = path_of(name);
  return path.prefix + "*" + path.suffix;
}

void NameFamily::add(const std::string& name) {
  path_ = path_of(name);
  numbers_.insert(path_.number);
}

std::string NameFamily::text() const {
  return path_.prefix + (path_.number >= 0 ? simulator::numbers_text(numbers_) : "") + path_.suffix;
}

}  // namespace stowage::report
