// Two or three tensors, element by element.
#include <ATen/Functions.h>

#include "tests/ops/op.h"

namespace stowage::ops {

std::vector<Op> binary_ops() {
  return {
      op("add", {grid(), grid()}, [](const T& a, const T& b) { return at::add(a, b, 2); })
          .saves_nothing(),
      op("sub", {grid(), grid()}, [](const T& a, const T& b) { return at::sub(a, b, 2); })
          .saves_nothing(),
      op("rsub", {grid(), grid()}, [](const T& a, const T& b) { return at::rsub(a, b); })
          .saves_nothing(),
      op("mul", {grid(), grid()}, [](const T& a, const T& b) { return at::mul(a, b); })
          .not_as("negated.complex32"),
      op("div.no_rounding_mode", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::div(a, b); }),
      op("div.trunc_rounding", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::div(a, b, "trunc"); }),
      op("div.floor_rounding", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::div(a, b, "floor"); }),
      op("true_divide", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::true_divide(a, b); }),
      op("addcmul", {grid(), grid(), grid()},
         [](const T& a, const T& b, const T& c) { return at::addcmul(a, b, c, 0.5); }),
      op("addcdiv", {grid(), grid(), grid(kPositive)},
         [](const T& a, const T& b, const T& c) { return at::addcdiv(a, b, c, 0.5); }),
      op("atan2", {grid(), grid()}, at::atan2),
      op("complex", {grid(), grid()}, at::complex),
      op("polar", {grid(kPositive), grid()}, at::polar),
      op("copysign", {grid(), grid()}, [](const T& a, const T& b) { return at::copysign(a, b); }),
      op("float_power", {grid(kPositive), grid()},
         [](const T& a, const T& b) { return at::float_power(a, b); }),
      op("fmax", {grid(), grid()}, at::fmax),
      op("fmin", {grid(), grid()}, at::fmin),
      op("fmod", {grid(), grid(kPositive)}, [](const T& a, const T& b) { return at::fmod(a, b); }),
      op("remainder", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::remainder(a, b); }),
      op("hypot", {grid(), grid()}, at::hypot),
      op("ldexp", {grid(), grid()}, at::ldexp),
      op("lerp", {grid(), grid(), grid(kUnit)},
         [](const T& a, const T& b, const T& c) { return at::lerp(a, b, c); }),
      op("logaddexp", {grid(), grid()}, at::logaddexp),
      op("logaddexp2", {grid(), grid()}, at::logaddexp2),
      op("max.binary", {grid(), grid()}, [](const T& a, const T& b) { return at::max(a, b); }),
      op("maximum", {grid(), grid()}, at::maximum),
      op("min.binary", {grid(), grid()}, [](const T& a, const T& b) { return at::min(a, b); }),
      op("minimum", {grid(), grid()}, at::minimum),
      op("pow", {grid(kPositive), grid()}, [](const T& a, const T& b) { return at::pow(a, b); }),
      op("xlogy", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::xlogy(a, b); }),
      op("special.xlog1py", {grid(), grid(kPositive)},
         [](const T& a, const T& b) { return at::special_xlog1py(a, b); }),
      op("where", {grid(), grid()},
         [](const T& a, const T& b) { return at::where(mask(a, a.sizes()), a, b); }),
  };
}

}  // namespace stowage::ops
