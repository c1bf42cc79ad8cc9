#include "report/work_family.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace stowage::report {
namespace {

struct Part {
  std::string_view text;  // in the name, lower case
  WorkFamily family;
};

// The first that a name holds counts: "_softmax_backward_data" is of softmax, "embedding_backward"
// of embedding, a kernel "fmha_cutlass" of attention.
constexpr Part kParts[] = {
    {"c10d", WorkFamily::other},
    {"nccl", WorkFamily::other},
    {"upsample", WorkFamily::elementwise},
    {"_foreach_norm", WorkFamily::normalising},
    {"normal_", WorkFamily::elementwise},
    {"_convert", WorkFamily::moving},
    {"attention", WorkFamily::attention},
    {"fmha", WorkFamily::attention},
    {"flash", WorkFamily::attention},
    {"adam", WorkFamily::optimizer},
    {"sgd", WorkFamily::optimizer},
    {"optimizer", WorkFamily::optimizer},
    {"multi_tensor", WorkFamily::optimizer},
    {"multitensor", WorkFamily::optimizer},
    {"addcdiv", WorkFamily::optimizer},
    {"addcmul", WorkFamily::optimizer},
    {"_foreach_", WorkFamily::optimizer},
    {"softmax", WorkFamily::normalising},
    {"norm", WorkFamily::normalising},
    {"loss", WorkFamily::normalising},
    {"conv", WorkFamily::matrix},
    {"addmm", WorkFamily::matrix},
    {"matmul", WorkFamily::matrix},
    {"linear", WorkFamily::matrix},
    {"bmm", WorkFamily::matrix},
    {"gemm", WorkFamily::matrix},
    {"cutlass", WorkFamily::matrix},
    {"cublas", WorkFamily::matrix},
    {"embedding", WorkFamily::moving},
    {"copy", WorkFamily::moving},
    {"clone", WorkFamily::moving},
    {"contiguous", WorkFamily::moving},
    {"index", WorkFamily::moving},
    {"gather", WorkFamily::moving},
    {"scatter", WorkFamily::moving},
    {"slice", WorkFamily::moving},
    {"select", WorkFamily::moving},
    {"memcpy", WorkFamily::moving},
    {"memset", WorkFamily::moving},
    {"fill", WorkFamily::moving},
    {"zero", WorkFamily::moving},
    {"ones", WorkFamily::moving},
    {"empty", WorkFamily::moving},
    {"elementwise", WorkFamily::elementwise},
    {"reduce", WorkFamily::normalising},
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

WorkFamily family_of(std::string_view op) {
  const std::string name = plain(op);
  if (name == "mm" || name == "mv" || name == "dot") return WorkFamily::matrix;
  if (is_one_of(name, kElementwise)) return WorkFamily::elementwise;
  if (is_one_of(name, kReducing)) return WorkFamily::normalising;
  if (is_one_of(name, kMoving)) return WorkFamily::moving;
  std::string whole(op);
  std::transform(whole.begin(), whole.end(), whole.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const Part& part : kParts) {
    if (whole.find(part.text) != std::string::npos) return part.family;
  }
  return WorkFamily::other;
}

const char* words_of(WorkFamily family) {
  static constexpr std::array<const char*, kWorkFamilies> kWords{"matrix products and convolutions",
                                                                 "attention",
                                                                 "norms, softmax, losses, sums",
                                                                 "elementwise",
                                                                 "moving, indexing, filling",
                                                                 "optimizer",
                                                                 "other"};
  return kWords[static_cast<std::size_t>(family)];
}

}  // namespace stowage::report
