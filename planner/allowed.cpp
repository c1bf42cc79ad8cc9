#include "planner/allowed.h"

namespace stowage::planner {

std::string Allowed::text() const {
  if (*this == Allowed{}) return "";
  std::string text;
  const auto add = [&text](bool is_allowed, const char* name) {
    if (is_allowed) text += (text.empty() ? "" : " and ") + std::string(name);
  };
  add(offload, "offload");
  add(recompute, "recompute");
  add(parameters, "params");
  add(optimizer, "optimizer");
  add(gradients, "gradients");
  add(micro_batches, "micro-batch");
  return text.empty() ? "nothing" : text;
}

std::string Allowed::limits(const std::string& noun) const {
  const std::string what = text();
  return what.empty() ? noun : noun + " of what is allowed (" + what + ")";
}

}  // namespace stowage::planner
