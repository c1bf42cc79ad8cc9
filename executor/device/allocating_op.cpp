#include "executor/device/allocating_op.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Backtrace.h>

#include <array>
#include <sstream>
#include <string_view>

namespace stowage::executor {
namespace {

bool only_allocates(std::string_view op) {
  constexpr std::array<std::string_view, 3> kKinds = {"aten::empty", "aten::new_empty",
                                                      "aten::resize"};
  for (const std::string_view kind : kKinds) {
    if (op.starts_with(kind)) return true;
  }
  return false;
}

}  // namespace

std::string op_of_frame(const std::string& line) {
  constexpr std::string_view kNamespace = "at::_ops::";
  const std::size_t begin = line.find(kNamespace);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + kNamespace.size();
  const std::size_t end = line.find("::", from);
  if (end == std::string::npos) return "";
  const std::string name = line.substr(from, end - from);
  // PyTorch's generator joins name and overload so.
  for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
    constexpr std::string_view kAten = "aten::";
    if (!std::string_view(each.name).starts_with(kAten)) continue;
    std::string joined = each.name.substr(kAten.size());
    if (!each.overload_name.empty()) joined += "_" + each.overload_name;
    if (joined == name) return each.name;
  }
  return "";
}

std::string allocating_op() {
  std::string found;
  std::istringstream frames(c10::get_backtrace());
  for (std::string line; std::getline(frames, line);) {
    const std::string op = op_of_frame(line);
    if (op.empty()) continue;
    if (!only_allocates(op)) return op;
    if (found.empty()) found = op;
  }
  return found;
}

}  // namespace stowage::executor
