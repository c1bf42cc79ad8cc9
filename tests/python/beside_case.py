"""What tests of PyTorch beside an idle Stowage share: the states in which each of them runs, some functions.

``imported``: stowage._torch, and with it its autograd engine, is there and no run is. ``attached``: a run has a plan,
has made a step under it and makes another one behind all tests. With STOWAGE_PLAIN=1 there is one state, PyTorch alone,
which says that a test is right about PyTorch (python -m pytest --noconftest -p no:stowage, since both would import it).
"""

import contextlib
import os
import sys

import pytest
import torch
from torch.autograd import Function
from torch.autograd.variable import Variable

STATES = ["plain"] if os.environ.get("STOWAGE_PLAIN") == "1" else ["imported", "attached"]


@pytest.fixture(scope="module", params=STATES, autouse=True)
def state(request):
    """One of the states, on one thread, which a recording on a CPU needs."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with {"plain": _plain, "imported": _imported, "attached": _attached}[request.param]():
        yield request.param
    torch.set_num_threads(threads)


@contextlib.contextmanager
def _plain():
    yield
    assert not any(name.startswith("stowage") for name in sys.modules)


@contextlib.contextmanager
def _imported():
    import stowage._torch

    assert stowage._torch is sys.modules["stowage._torch"]
    assert type(Variable._execution_engine) is torch._C._ImperativeEngine
    yield
    assert type(Variable._execution_engine) is torch._C._ImperativeEngine


@contextlib.contextmanager
def _attached():
    from training_case import RECORDED, Loop, Net, adamw, assert_equal, plain_body

    def body(model, optimizer, k):
        torch.manual_seed(k)  # for dropout: tests draw numbers between steps
        return plain_body(model, optimizer, k)

    def make():
        return Net(width=64, blocks=2)

    loop = Loop(make, adamw, body, budget="100%").steps(RECORDED + 1)
    assert [report.on_plan for report in loop.reports] == [True]
    engine = Variable._execution_engine
    assert type(engine) is not torch._C._ImperativeEngine
    yield
    assert Variable._execution_engine is engine
    loop.step(RECORDED + 1)
    assert loop.reports[-1].on_plan, loop.reports[-1].first_difference
    loop.run.detach()
    assert_equal(Loop(make, adamw, body).steps(RECORDED + 2), loop)


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


class Square(Function):
    """x * x, differentiable any number of times."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 2 * x * gradient


class Raises(Function):
    """The identity, whose backward raises."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("of the user's backward")
