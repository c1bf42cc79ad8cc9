#include "tests/ops/op_names.h"

#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>

namespace stowage::ops {

namespace {

std::map<std::string, std::string> read_names() {
  const std::string path = std::string(STOWAGE_TEST_DATA_DIR) + "/differentiable_ops.txt";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  std::map<std::string, std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string name;
    std::string dtypes;
    words >> name >> dtypes;
    names[name] = dtypes == "-" ? "" : dtypes;
  }
  return names;
}

std::map<std::string, std::string> make_left_out() {
  std::map<std::string, std::string> all;
  const auto add = [&](const char* why, std::initializer_list<const char*> names) {
    for (const char* const name : names) all[name] = why;
  };
  add("takes no dtype on a CPU",
      {"nn.functional.batch_norm.without_cudnn", "nn.functional.one_hot",
       "torch.ops.aten._efficient_attention_forward", "torch.ops.aten._flash_attention_forward"});
  add("is written in Python, of ops that are here",
      {"masked.amax",
       "masked.amin",
       "masked.cumprod",
       "masked.cumsum",
       "masked.log_softmax",
       "masked.logaddexp",
       "masked.logsumexp",
       "masked.mean",
       "masked.median",
       "masked.norm",
       "masked.normalize",
       "masked.prod",
       "masked.softmax",
       "masked.softmin",
       "masked.std",
       "masked.sum",
       "masked.var",
       "nn.functional.gaussian_nll_loss",
       "nn.functional.local_response_norm",
       "nn.functional.multi_head_attention_forward",
       "nn.functional.multilabel_soft_margin_loss",
       "nn.functional.normalize",
       "nn.functional.softmin",
       "nn.functional.softmin.with_dtype",
       "nn.functional.softsign",
       "nn.functional.tanhshrink",
       "nn.functional.triplet_margin_with_distance_loss",
       "pca_lowrank",
       "svd_lowrank"});
  add("is another name of an op that is here, or the same call for a test of its own",
      {"__radd__", "__rdiv__", "__rmatmul__", "__rmod__", "__rmul__", "__rpow__", "__rsub__",
       "addmm.decomposed", "nn.functional.max_unpool1d.grad", "nn.functional.max_unpool2d.grad",
       "nn.functional.max_unpool3d.grad"});
  return all;
}

}  // namespace

const std::map<std::string, std::string>& differentiable_ops() {
  static const auto all = read_names();
  return all;
}

const std::vector<DtypeLetter>& dtype_letters() {
  static const std::vector<DtypeLetter> all = {
      {'d', "float64", at::kDouble},           {'f', "float32", at::kFloat},
      {'b', "bfloat16", at::kBFloat16},        {'h', "float16", at::kHalf},
      {'z', "complex128", at::kComplexDouble}, {'c', "complex64", at::kComplexFloat},
      {'k', "complex32", at::kComplexHalf},
  };
  return all;
}

const std::map<std::string, std::string>& left_out_ops() {
  static const auto all = make_left_out();
  return all;
}

}  // namespace stowage::ops
