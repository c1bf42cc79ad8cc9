// One tensor, element by element.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

namespace {

Op polygamma_of(std::int64_t n) {
  return op("polygamma.polygamma_n_" + std::to_string(n), {grid(kPositive)},
            [n](const T& a) { return at::polygamma(n, a); });
}

Op mvlgamma_of(std::int64_t p) {
  return op("mvlgamma.mvlgamma_p_" + std::to_string(p), {grid(kLarge)},
            [p](const T& a) { return at::mvlgamma(a, p); });
}

Op decimals_of(const char* name, std::int64_t decimals) {
  return op(std::string("round.") + name, {grid()},
            [decimals](const T& a) { return at::round(a, decimals); })
      .saves_nothing();
}

Op cast_to(const char* name, at::ScalarType dtype) {
  return op(name, {grid()}, [dtype](const T& a) { return a.to(dtype); }).saves_nothing();
}

std::vector<Op> plain() {
  return {
      op("abs", {grid()}, at::abs),
      op("acos", {grid(kInside)}, at::acos),
      op("acosh", {grid(kAboveOne)}, at::acosh),
      op("angle", {grid()}, at::angle),
      op("asin", {grid(kInside)}, at::asin),
      op("asinh", {grid()}, at::asinh),
      op("atan", {grid()}, at::atan),
      op("atanh", {grid(kInside)}, at::atanh),
      op("ceil", {grid()}, at::ceil).saves_nothing(),
      op("cos", {grid()}, at::cos),
      op("cosh", {grid()}, at::cosh),
      op("deg2rad", {grid()}, at::deg2rad).saves_nothing(),
      op("digamma", {grid(kPositive)}, at::digamma),
      op("erf", {grid()}, at::erf),
      op("erfc", {grid()}, at::erfc),
      op("erfinv", {grid(kInside)}, at::erfinv),
      op("exp", {grid()}, at::exp),
      op("exp2", {grid()}, at::exp2),
      op("expm1", {grid()}, at::expm1),
      op("floor", {grid()}, at::floor).saves_nothing(),
      op("frac", {grid()}, at::frac).saves_nothing(),
      op("frexp", {grid()}, [](const T& a) { return at::frexp(a); }),
      op("i0", {grid()}, at::i0),
      op("lgamma", {grid(kPositive)}, at::lgamma),
      op("log", {grid(kPositive)}, at::log),
      op("log10", {grid(kPositive)}, at::log10),
      op("log1p", {grid(kPositive)}, at::log1p),
      op("log2", {grid(kPositive)}, at::log2),
      op("logit", {grid(kUnit)}, [](const T& a) { return at::logit(a, 0.2); }),
      op("nan_to_num", {grid()}, [](const T& a) { return at::nan_to_num(at::log(a), 7); }),
      op("neg", {grid()}, at::neg).saves_nothing(),
      op("positive", {grid()}, at::positive).saves_nothing(),
      op("rad2deg", {grid()}, at::rad2deg).saves_nothing(),
      op("reciprocal", {grid(kPositive)}, at::reciprocal),
      op("round", {grid()}, [](const T& a) { return at::round(a); }).saves_nothing(),
      op("rsqrt", {grid(kPositive)}, at::rsqrt),
      op("sgn", {grid()}, at::sgn),
      op("sigmoid", {grid()}, at::sigmoid),
      op("sign", {grid()}, at::sign).saves_nothing(),
      op("sin", {grid()}, at::sin),
      op("sinc", {grid()}, at::sinc),
      op("sinh", {grid()}, at::sinh),
      op("sqrt", {grid(kPositive)}, at::sqrt),
      op("square", {grid()}, at::square),
      op("tan", {grid()}, at::tan),
      op("tanh", {grid()}, at::tanh),
      op("trunc", {grid()}, at::trunc).saves_nothing(),
      op("special.entr", {grid(kPositive)}, at::special_entr),
      op("special.erfcx", {grid()}, at::special_erfcx),
      op("special.i0e", {grid()}, at::special_i0e),
      op("special.i1", {grid()}, at::special_i1),
      op("special.i1e", {grid()}, at::special_i1e),
      op("special.log_ndtr", {grid()}, at::special_log_ndtr),
      op("special.ndtr", {grid()}, at::special_ndtr),
      op("special.ndtri", {grid(kUnit)}, at::special_ndtri),
      op("special.polygamma.special_polygamma_n_0", {grid(kPositive)},
         [](const T& a) { return at::special_polygamma(0, a); }),
      polygamma_of(0),
      polygamma_of(1),
      polygamma_of(2),
      polygamma_of(3),
      polygamma_of(4),
      mvlgamma_of(1),
      mvlgamma_of(3),
      mvlgamma_of(5),
      decimals_of("decimals_0", 0),
      decimals_of("decimals_3", 3),
      decimals_of("decimals_neg_3", -3),
  };
}

// With numbers beside the tensor, and those that make another dtype or copy.
std::vector<Op> with_numbers() {
  return {
      op("clamp", {grid()}, [](const T& a) { return at::clamp(a, -0.5, 1.5); }),
      op("clamp_max", {grid()}, [](const T& a) { return at::clamp_max(a, 0.5); }),
      op("clamp_min", {grid()}, [](const T& a) { return at::clamp_min(a, -0.5); }),
      op("fill", {grid()}, [](const T& a) { return at::fill(a, 2); }).saves_nothing(),
      op("zero_", {grid()}, [](const T& a) { return a.clone().zero_(); }).saves_nothing(),
      op("clone", {grid()}, [](const T& a) { return a.clone(); }).saves_nothing(),
      op("contiguous", {grid()}, [](const T& a) { return a.contiguous(); }).saves_nothing(),
      op("alias_copy", {grid()}, at::alias_copy).saves_nothing(),
      op("conj", {grid()}, at::conj).saves_nothing().not_as("negated.complex32"),
      op("conj_physical", {grid()}, at::conj_physical).saves_nothing(),
      op("resolve_conj", {grid()}, at::resolve_conj).saves_nothing(),
      op("resolve_neg", {grid()}, at::resolve_neg).saves_nothing(),
      op("real", {grid()}, at::real).saves_nothing(),
      op("imag", {grid()}, at::imag).saves_nothing(),
      op("view_as_real", {grid()}, [](const T& a) { return at::view_as_real(a.resolve_conj()); })
          .saves_nothing(),
      op("view_as_complex", {of({3, 4, 5, 2})}, at::view_as_complex)
          .saves_nothing()
          .not_as("channels_last every_second scalar transposed"),
      op("to", {grid()}, [](const T& a) { return a.to(at::kDouble).to(a.scalar_type()); })
          .saves_nothing(),
      cast_to("bfloat16", at::kBFloat16),
      cast_to("half", at::kHalf),
      cast_to("float", at::kFloat),
      cast_to("double", at::kDouble),
      cast_to("chalf", at::kComplexHalf),
      cast_to("cfloat", at::kComplexFloat),
      cast_to("cdouble", at::kComplexDouble),
  };
}

}  // namespace

std::vector<Op> unary_ops() {
  std::vector<Op> all = plain();
  for (Op& each : with_numbers()) all.push_back(std::move(each));
  return all;
}

}  // namespace stowage::ops
