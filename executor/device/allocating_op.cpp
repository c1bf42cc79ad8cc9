#include "executor/device/allocating_op.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Backtrace.h>

#include <array>
#include <sstream>
#include <string_view>
#include <unordered_map>
#include <utility>

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

// By PyTorch's generator's names for them, which join name and overload.
const std::unordered_map<std::string, std::string>& aten_ops() {
  static const auto* const ops = [] {
    auto* const names = new std::unordered_map<std::string, std::string>;
    constexpr std::string_view kAten = "aten::";
    for (const c10::OperatorName& each : c10::Dispatcher::singleton().getAllOpNames()) {
      if (!std::string_view(each.name).starts_with(kAten)) continue;
      std::string joined = each.name.substr(kAten.size());
      if (!each.overload_name.empty()) joined += "_" + each.overload_name;
      names->emplace(std::move(joined), each.name);
    }
    return names;
  }();
  return *ops;
}

}  // namespace

std::string op_of_frame(const std::string& line) {
  constexpr std::string_view kNamespace = "at::_ops::";
  const std::size_t begin = line.find(kNamespace);
  if (begin == std::string::npos) return "";
  const std::size_t from = begin + kNamespace.size();
  const std::size_t end = line.find("::", from);
  if (end == std::string::npos) return "";
  const auto found = aten_ops().find(line.substr(from, end - from));
  return found == aten_ops().end() ? "" : found->second;
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
