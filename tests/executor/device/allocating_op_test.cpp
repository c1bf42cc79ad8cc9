#include "executor/device/allocating_op.h"

#include <gtest/gtest.h>

namespace stowage::executor {
namespace {

TEST(AllocatingOp, IsReadFromAFrame) {
  EXPECT_EQ(op_of_frame("frame #4: at::_ops::mul_Tensor::call(at::Tensor const&, at::Tensor "
                        "const&) + 0x17a (0x7f in libtorch_cpu.so)"),
            "aten::mul");
  EXPECT_EQ(op_of_frame("frame #5: at::_ops::_foreach_add__Scalar::redispatch(..) + 0x1"),
            "aten::_foreach_add_");
  EXPECT_EQ(op_of_frame("frame #6: at::_ops::tanh::call(at::Tensor const&) + 0x1"), "aten::tanh");
  EXPECT_EQ(op_of_frame("frame #7: at::_ops::no_such_op::call(at::Tensor const&) + 0x1"), "");
  EXPECT_EQ(op_of_frame("frame #8: at::_ops::"), "");
  EXPECT_EQ(op_of_frame("frame #9: at::native::mul(at::Tensor const&, at::Tensor const&)"), "");
  EXPECT_EQ(op_of_frame(""), "");
}

TEST(AllocatingOp, NoneOutsideOfOps) {
  EXPECT_EQ(allocating_op(), "");
}

}  // namespace
}  // namespace stowage::executor
