"""Prints tests/data/differentiable_ops.txt: what PyTorch's own operator database says is differentiable on a CPU.

Usage: python differentiable_ops.py > differentiable_ops.txt, with the torch whose LibTorch Stowage is built on.
"""

import sys
import types

# The database's module wants this package of the tests around it, which is not needed to read it.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=object))

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

LETTERS = {torch.float64: "d", torch.float32: "f", torch.bfloat16: "b", torch.float16: "h",
           torch.complex128: "z", torch.complex64: "c", torch.complex32: "k"}

print(f"# Differentiable ops of PyTorch {torch.__version__.split('+')[0]}, as tests/ops/differentiable_ops.py "
      "prints them: a name, of a\n# variant behind a dot, and the dtypes that backward takes on a CPU:")
print("#   " + ", ".join(f"{letter} {str(dtype)[6:]}" for dtype, letter in LETTERS.items()))
for op in sorted(op_db, key=lambda op: (op.name, op.variant_test_name)):
    if not op.supports_autograd:
        continue
    dtypes = "".join(letter for dtype, letter in LETTERS.items() if dtype in op.supported_backward_dtypes("cpu"))
    name = op.name + ("." + op.variant_test_name if op.variant_test_name else "")
    print(name, dtypes or "-")
