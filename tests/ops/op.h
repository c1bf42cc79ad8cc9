// One differentiable op of PyTorch: how it is called, on operands of which shapes. The name is that
// of PyTorch's operator database, which also says which dtypes it takes (op_names.h).
//
//   op("atan2", {grid(), grid(kPositive)}, at::atan2).not_as("scalar")
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace stowage::ops {

using T = at::Tensor;
using Tensors = std::vector<at::Tensor>;
using Shape = std::vector<std::int64_t>;

// Where the elements of an operand lie: uniform in [shift - scale, shift + scale).
struct Domain {
  double scale;
  double shift;
};
inline constexpr Domain kAny{2, 0};
inline constexpr Domain kInside{0.9, 0};      // of (-1, 1)
inline constexpr Domain kUnit{0.45, 0.5};     // of (0, 1)
inline constexpr Domain kPositive{0.7, 1};    // of (0, 2)
inline constexpr Domain kAboveOne{0.4, 1.6};  // of (1, 2)
inline constexpr Domain kLarge{0.5, 4};       // of (3, 5)

// A tensor that needs a gradient.
struct Operand {
  Shape shape;
  Domain domain = kAny;
};
[[nodiscard]] inline Operand of(Shape shape, Domain domain = kAny) {
  return {std::move(shape), domain};
}
// Four dimensions, so that each layout is another one; more elements than a vector register has,
// and no multiple of it.
[[nodiscard]] inline Operand grid(Domain domain = kAny) {
  return {{2, 3, 4, 5}, domain};
}

// What an op does with its operands, whatever it takes and returns: one to four tensors or all in
// a vector; a tensor, a tuple or a vector of tensors.
class Call {
 public:
  template <typename F>
  requires(!std::is_same_v<F, Call>)
      Call(F f)  // NOLINT(google-explicit-constructor): a row of a table is an op's function
      : run_([f](const Tensors& in) { return results(apply(f, in)); }) {}

  [[nodiscard]] Tensors operator()(const Tensors& operands) const { return run_(operands); }

 private:
  template <typename F>
  static auto apply(const F& f, const Tensors& in) {
    if constexpr (std::is_invocable_v<F, const Tensors&>) {
      return f(in);
    } else if constexpr (std::is_invocable_v<F, const T&>) {
      return f(in.at(0));
    } else if constexpr (std::is_invocable_v<F, const T&, const T&>) {
      return f(in.at(0), in.at(1));
    } else if constexpr (std::is_invocable_v<F, const T&, const T&, const T&>) {
      return f(in.at(0), in.at(1), in.at(2));
    } else {
      return f(in.at(0), in.at(1), in.at(2), in.at(3));
    }
  }
  static Tensors results(T tensor) { return {std::move(tensor)}; }
  static Tensors results(Tensors tensors) { return tensors; }
  template <typename... Each>
  static Tensors results(std::tuple<Each...> tensors) {
    return std::apply([](auto&... each) { return Tensors{std::move(each)...}; }, tensors);
  }

  std::function<Tensors(const Tensors&)> run_;
};

struct Op {
  std::string name;
  std::vector<Operand> operands;
  Call call;
  // What PyTorch itself refuses, apart by spaces: layouts (op_layouts.h), "empty", or one for some
  // dtypes only, "expanded.complex32".
  std::string refused;
  // A layout in which PyTorch itself crashes: it is not tried.
  std::string crashing_layout;
  // It saves no tensor that can move: nothing at all, or sparse tensors.
  bool moves_nothing = false;

  [[nodiscard]] Op not_as(std::string layouts) && {
    refused = std::move(layouts);
    return std::move(*this);
  }
  [[nodiscard]] Op crashes_as(std::string layout) && {
    crashing_layout = std::move(layout);
    return std::move(*this);
  }
  [[nodiscard]] Op saves_nothing() && {
    moves_nothing = true;
    return std::move(*this);
  }
};
[[nodiscard]] inline Op op(std::string name, std::vector<Operand> operands, Call call) {
  return {std::move(name), std::move(operands), std::move(call), "", "", false};
}

[[nodiscard]] T integers(const T& like, const std::vector<std::int64_t>& values);
// Integers of [0, below), in no order and on the device of `like`: for indices, counts and classes.
[[nodiscard]] T numbers(const T& like, Shape shape, std::int64_t below);
// Booleans, about a third of them true.
[[nodiscard]] T mask(const T& like, at::IntArrayRef shape);

// The tables, one a file.
[[nodiscard]] std::vector<Op> unary_ops();
[[nodiscard]] std::vector<Op> binary_ops();
[[nodiscard]] std::vector<Op> reduction_ops();
[[nodiscard]] std::vector<Op> shape_ops();
[[nodiscard]] std::vector<Op> join_ops();
[[nodiscard]] std::vector<Op> index_ops();
[[nodiscard]] std::vector<Op> product_ops();
[[nodiscard]] std::vector<Op> linear_algebra_ops();
[[nodiscard]] std::vector<Op> activation_ops();
[[nodiscard]] std::vector<Op> norm_ops();
[[nodiscard]] std::vector<Op> image_ops();
[[nodiscard]] std::vector<Op> loss_ops();
[[nodiscard]] std::vector<Op> fourier_ops();
[[nodiscard]] std::vector<Op> random_ops();

}  // namespace stowage::ops
