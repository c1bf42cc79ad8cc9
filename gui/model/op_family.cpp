#include "gui/model/op_family.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace stowage::gui {
namespace {

struct Part {
  std::string_view text;  // in the name, lower case
  OpFamily family;
};

// The first that a name holds counts: "_softmax_backward_data" is of softmax, "embedding_backward"
// of embedding, a kernel "fmha_cutlass" of attention.
constexpr Part kParts[] = {
    {"attention", OpFamily::attention},
    {"fmha", OpFamily::attention},
    {"flash", OpFamily::attention},
    {"adam", OpFamily::optimizer},
    {"sgd", OpFamily::optimizer},
    {"optimizer", OpFamily::optimizer},
    {"multi_tensor", OpFamily::optimizer},
    {"multitensor", OpFamily::optimizer},
    {"addcdiv", OpFamily::optimizer},
    {"addcmul", OpFamily::optimizer},
    {"_foreach_", OpFamily::optimizer},
    {"softmax", OpFamily::normalising},
    {"norm", OpFamily::normalising},
    {"loss", OpFamily::normalising},
    {"conv", OpFamily::matrix},
    {"addmm", OpFamily::matrix},
    {"matmul", OpFamily::matrix},
    {"linear", OpFamily::matrix},
    {"bmm", OpFamily::matrix},
    {"gemm", OpFamily::matrix},
    {"cutlass", OpFamily::matrix},
    {"cublas", OpFamily::matrix},
    {"embedding", OpFamily::moving},
    {"copy", OpFamily::moving},
    {"clone", OpFamily::moving},
    {"contiguous", OpFamily::moving},
    {"index", OpFamily::moving},
    {"gather", OpFamily::moving},
    {"scatter", OpFamily::moving},
    {"slice", OpFamily::moving},
    {"select", OpFamily::moving},
    {"memcpy", OpFamily::moving},
    {"memset", OpFamily::moving},
    {"fill", OpFamily::moving},
    {"zero", OpFamily::moving},
    {"ones", OpFamily::moving},
    {"empty", OpFamily::moving},
    {"elementwise", OpFamily::elementwise},
    {"reduce", OpFamily::normalising},
};

// Whole names, without their namespace, "_backward" and what is "_" around them.
constexpr std::string_view kElementwise[] = {
    "abs",  "add",  "clamp",       "clamp_min", "cos",  "div",           "dropout", "exp",
    "gelu", "log",  "mul",         "neg",       "pow",  "relu",          "rsqrt",   "sigmoid",
    "silu", "sin",  "sqrt",        "sub",       "tanh", "threshold",     "where",   "tril",
    "to",   "rsub", "masked_fill", "erf",       "sign", "native_dropout"};
constexpr std::string_view kReducing[] = {"sum",        "mean",
                                          "max",        "all",
                                          "max_pool2d", "max_pool2d_with_indices",
                                          "avg_pool2d", "adaptive_avg_pool2d"};
constexpr std::string_view kMoving[] = {"cat", "stack", "repeat", "repeat_interleave", "pad"};

std::string plain(std::string_view op) {
  if (const auto at = op.rfind("::"); at != std::string_view::npos) op.remove_prefix(at + 2);
  std::string name(op);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  while (name.ends_with('_')) name.pop_back();
  for (const std::string_view end : {"_backward_data", "_backward"}) {
    if (name.size() > end.size() && name.ends_with(end)) name.resize(name.size() - end.size());
  }
  while (name.starts_with('_')) name.erase(0, 1);
  return name;
}

template <std::size_t n>
bool is_one_of(const std::string& name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

OpFamily family_of(std::string_view op) {
  const std::string name = plain(op);
  if (name == "mm" || name == "mv" || name == "dot") return OpFamily::matrix;
  if (is_one_of(name, kElementwise)) return OpFamily::elementwise;
  if (is_one_of(name, kReducing)) return OpFamily::normalising;
  if (is_one_of(name, kMoving)) return OpFamily::moving;
  std::string whole(op);
  std::transform(whole.begin(), whole.end(), whole.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Part& part : kParts) {
    if (whole.find(part.text) != std::string::npos) return part.family;
  }
  return OpFamily::other;
}

const char* words_of(OpFamily family) {
  static constexpr std::array<const char*, kOpFamilies> kWords{"matrix products and convolutions",
                                                               "attention",
                                                               "norms, softmax, losses, sums",
                                                               "elementwise",
                                                               "moving, indexing, filling",
                                                               "optimizer",
                                                               "other"};
  return kWords[static_cast<std::size_t>(family)];
}

}  // namespace stowage::gui
