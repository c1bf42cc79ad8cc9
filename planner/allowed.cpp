#include "planner/allowed.h"

namespace stowage::planner {
namespace {

struct Kind {
  const char* name;
  bool Allowed::*is_allowed;
};
constexpr Kind kKinds[] = {
    {"offload", &Allowed::offload},     {"recompute", &Allowed::recompute},
    {"params", &Allowed::parameters},   {"optimizer", &Allowed::optimizer},
    {"gradients", &Allowed::gradients}, {"micro-batch", &Allowed::micro_batches},
};

Result<Allowed> with(Allowed allowed, const std::vector<std::string>& names, bool is_allowed) {
  for (const std::string& name : names) {
    bool Allowed::*found = nullptr;
    for (const Kind& kind : kKinds) {
      if (name == kind.name) found = kind.is_allowed;
    }
    if (found == nullptr) {
      return Error{ErrorCode::usage, "'" + name + "' is nothing that auto decides", "", "",
                   "a list of offload, recompute, params, optimizer, gradients, micro-batch"};
    }
    allowed.*found = is_allowed;
  }
  return allowed;
}

}  // namespace

std::vector<std::string> Allowed::names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Result<Allowed> Allowed::only(const std::vector<std::string>& names) {
  return with({false, false, false, false, false, false, nullptr}, names, true);
}

Result<Allowed> Allowed::all_but(const std::vector<std::string>& names) {
  return with({}, names, false);
}

std::string Allowed::text() const {
  std::string text;
  bool is_all = true;
  for (const Kind& kind : kKinds) {
    is_all = is_all && this->*kind.is_allowed;
    if (this->*kind.is_allowed) text += (text.empty() ? "" : " and ") + std::string(kind.name);
  }
  if (is_all) return "";
  return text.empty() ? "nothing" : text;
}

std::string Allowed::limits(const std::string& noun) const {
  const std::string what = text();
  return what.empty() ? noun : noun + " of what is allowed (" + what + ")";
}

}  // namespace stowage::planner
