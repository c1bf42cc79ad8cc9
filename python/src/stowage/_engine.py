"""Backward's begin and end, told to the step that runs.

``loss.backward()`` calls Python's autograd engine by itself. While a run is attached, the object that it calls is of
a subclass which tells the step's driver first (some 0.7 us a backward where no step runs).
"""

import torch
from torch.autograd.variable import Variable

from . import _torch

_attached = 0


class _Engine(torch._C._ImperativeEngine):
    def run_backward(self, roots, *args, **kwargs):
        call = _torch.backward_begin(roots)
        result = super().run_backward(roots, *args, **kwargs)
        if call is not None:
            _torch.backward_end(call)
        return result


def attach() -> None:
    """One more run needs it."""
    global _attached
    _attached += 1
    if not isinstance(Variable._execution_engine, _Engine):
        Variable._execution_engine = _Engine()


def detach() -> None:
    """One run less; behind the last one the engine is PyTorch's own object again."""
    global _attached
    _attached -= 1
    if _attached == 0:
        Variable._execution_engine = torch._C._ImperativeEngine()
