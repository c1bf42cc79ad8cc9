"""Saved-tensor hooks and checkpoints are PyTorch's own while Stowage is imported, or attached and between two steps.

Rebuilt from what PyTorch 2.11 tests of them (the rest of autograd: test_training_beside_autograd and _engine).
"""

import contextlib
import functools
import gc
import threading
import warnings
import weakref

import pytest
import torch
from beside_case import Square, leaf, state  # state: runs every test in its states
from torch import nn
from torch.autograd import Function
from torch.autograd.graph import (allow_mutation_on_saved_tensors, disable_saved_tensors_hooks, save_on_cpu,
                                  saved_tensors_hooks)
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (CheckpointError, CheckpointPolicy, checkpoint, checkpoint_sequential,
                                    create_selective_checkpoint_contexts, set_checkpoint_early_stop)

BOTH_KINDS = pytest.mark.parametrize("reentrant", [True, False])


def keep(saved):
    return saved


# Default hooks


def test_hooks_see_what_is_saved_and_give_it_back():
    packed, unpacked = [], []
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: packed.append(t.item()) or t.item(), lambda v: unpacked.append(v) or leaf(v)):
        y = x.exp() * x
    assert packed == [pytest.approx(x.exp().item()), 3, pytest.approx(x.exp().item())]
    assert not unpacked
    y.backward()
    assert sorted(unpacked) == sorted(packed)
    assert x.grad.item() == pytest.approx(4 * x.exp().item())


def test_what_is_given_back_is_what_backward_takes():
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: t * 10, keep):
        y = x * x
    y.backward()
    assert x.grad.item() == 60


def test_the_innermost_hooks_win_and_the_outer_ones_come_back():
    x = leaf(1.0)
    gradients = []
    with saved_tensors_hooks(lambda t: t * 2, keep):
        with saved_tensors_hooks(lambda t: t * 10, keep):
            inner = x * x
        outer = x * x
    plain = x * x
    for y in (inner, outer, plain):
        gradients.append(torch.autograd.grad(y, x)[0].item())
    assert gradients == [20, 4, 2]


def test_hooks_end_with_an_exception():
    x = leaf(3.0)
    with pytest.raises(KeyError):
        with saved_tensors_hooks(lambda t: t * 10, keep):
            raise KeyError
    (x * x).backward()
    assert x.grad.item() == 6


def test_hooks_are_their_threads_own():
    x = leaf(3.0)
    gradients = {}

    def run(name, factor):
        with saved_tensors_hooks(lambda t: t * factor, keep):
            barrier.wait()
            y = x * x
            barrier.wait()
        gradients[name] = torch.autograd.grad(y, x)[0].item()

    barrier = threading.Barrier(3)
    threads = [threading.Thread(target=run, args=(k, k)) for k in (10, 100)]
    for thread in threads:
        thread.start()
    barrier.wait()
    y = x * x
    barrier.wait()
    for thread in threads:
        thread.join()
    assert gradients == {10: 60, 100: 600}
    assert torch.autograd.grad(y, x)[0].item() == 6


def test_packing_runs_without_gradients():
    modes = []
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: modes.append(torch.is_grad_enabled()) or t * 1, keep):
        y = x.exp()  # saves its result
    y.backward()
    assert modes == [False]
    assert x.grad.item() == pytest.approx(x.exp().item())


def test_nothing_is_packed_where_nothing_is_saved():
    packed = []
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: packed.append(t) or t, keep):
        with torch.no_grad():
            x * x
        torch.ones(2) * torch.ones(2)
        x + 1
    assert packed == []


def test_a_second_order_through_hooks():
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: t.clone(), keep):
        y = x ** 3
        (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27, 18)


def test_hooks_and_functions_of_the_users():
    class Product(Function):
        @staticmethod
        def forward(ctx, x, y):
            product = x * y
            ctx.save_for_backward(x, None, product, y)
            return product

        @staticmethod
        def backward(ctx, gradient):
            x, none, product, y = ctx.saved_tensors
            assert none is None and product.item() == x.item() * y.item()
            return gradient * y, gradient * x

    x, y = leaf(3.0), leaf(4.0)
    count = []
    with saved_tensors_hooks(lambda t: count.append(1) or t.clone(), keep):
        z = Product.apply(x, y)
    z.backward()
    assert (len(count), x.grad.item(), y.grad.item()) == (3, 4, 3)


@pytest.mark.parametrize("made", [lambda: "text", lambda: None, lambda: 3], ids=["text", "none", "number"])
def test_an_unpack_that_returns_no_tensor_raises(made):
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: 0, lambda _: made()):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type"):
        y.backward()
    (x * x).backward()
    assert x.grad.item() == 6


@pytest.mark.parametrize("wrong", [lambda: None, lambda a, b: a], ids=["no-argument", "two"])
def test_hooks_with_other_arguments_raise(wrong):
    x = leaf(3.0)
    with saved_tensors_hooks(wrong, keep):
        with pytest.raises(TypeError, match="positional argument"):
            torch.mul(x, x)
    with saved_tensors_hooks(keep, wrong):
        y = x * x
    with pytest.raises(TypeError, match="positional argument"):
        y.backward()


def test_a_pack_that_raises_ends_the_op_and_an_unpack_that_raises_the_backward():
    x = leaf(3.0)
    failing = [True]

    def fail(saved):
        if failing[0]:
            raise OSError("of the hook")
        return saved

    with saved_tensors_hooks(fail, keep):
        with pytest.raises(OSError, match="of the hook"):
            x * x
    with saved_tensors_hooks(keep, fail):
        y = x * x
    with pytest.raises(OSError, match="of the hook"):
        y.backward(retain_graph=True)
    failing[0] = False
    y.backward()
    assert x.grad.item() == 6


def test_a_pack_must_not_change_its_tensor():
    x = leaf(3.0)
    with saved_tensors_hooks(lambda t: t.add_(1), keep):
        with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
            (x * 1) * (x * 1)


def test_versions_are_not_checked_through_hooks():
    x = leaf(3.0)
    y = x * 1
    with saved_tensors_hooks(lambda t: t.clone(), keep):
        z = y * y
    y.add_(1)
    z.backward()
    assert x.grad.item() == 6


@pytest.mark.parametrize("release", ["backward", "drop"])
def test_what_was_packed_is_freed_with_the_graph(release):
    class Packed:
        def __init__(self, tensor):
            self.tensor = tensor

    packed = []

    def pack(tensor):
        held = Packed(tensor.detach())
        packed.append(weakref.ref(held))
        return held

    x = leaf(3.0)
    with saved_tensors_hooks(pack, lambda held: held.tensor):
        y = x.exp() * x
    y.backward(retain_graph=True)
    assert len(packed) == 3 and all(one() is not None for one in packed)
    y.backward() if release == "backward" else None
    del y
    gc.collect()
    assert all(one() is None for one in packed)


@pytest.mark.parametrize("hooks", [contextlib.nullcontext, lambda: saved_tensors_hooks(torch.Tensor.detach, keep)],
                         ids=["none", "hooks"])
def test_a_saved_output_makes_no_cycle(hooks):
    gc.disable()
    try:
        held = nn.Module()  # something that can be referred to weakly
        gone = weakref.ref(held)
        y = leaf(3.0) * 1
        y.register_hook(lambda gradient, held=held: None)
        with hooks():
            z = y.exp()
        del y, held
        assert gone() is not None
        del z
        assert gone() is None
    finally:
        gc.enable()


def test_a_hook_may_run_ops_and_a_backward():
    x, other = leaf(3.0), leaf(5.0)

    def unpack(tensor):
        with torch.enable_grad():
            (other * other).backward()
        return tensor

    with saved_tensors_hooks(keep, unpack):
        y = x.exp()
    y.backward()
    assert other.grad.item() == 10
    assert x.grad.item() == pytest.approx(x.exp().item())


def test_tensors_on_disk(tmp_path):
    def pack(tensor):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.pt"
        torch.save(tensor, path)
        return path

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    x = torch.randn(3, 4)
    expected = torch.autograd.grad(model(x).sum(), list(model.parameters()))
    with saved_tensors_hooks(pack, torch.load):
        loss = model(x).sum()
    assert len(list(tmp_path.iterdir())) > 2
    for a, b in zip(torch.autograd.grad(loss, list(model.parameters())), expected, strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("pinned", [False, pytest.param(True, marks=pytest.mark.skipif(
    not torch.cuda.is_available(), reason="pinned memory needs a GPU"))])
def test_saving_on_the_cpu(pinned):
    x = leaf(2.0, 3.0)
    with save_on_cpu(pin_memory=pinned):
        y = x * x
        stored = y.grad_fn._saved_self
        z = y.exp() * y
    assert stored.device.type == "cpu" and stored.tolist() == [2, 3]
    z.sum().backward()
    expected = leaf(2.0, 3.0)
    ((expected * expected).exp() * expected * expected).sum().backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_hooks_can_be_forbidden():
    x = leaf(3.0)
    with disable_saved_tensors_hooks("no hooks here"):
        with pytest.raises(RuntimeError, match="no hooks here"):
            with saved_tensors_hooks(keep, keep):
                pass
        with disable_saved_tensors_hooks("nor here"):
            with pytest.raises(RuntimeError, match="nor here"):
                with save_on_cpu():
                    pass
        with pytest.raises(RuntimeError, match="no hooks here"):
            checkpoint(torch.exp, x, use_reentrant=False)
        (x * x).backward()
    with saved_tensors_hooks(lambda t: t * 10, keep):
        (x * x).backward()
    assert x.grad.item() == 6 + 60


def test_forbidding_within_hooks_raises():
    with saved_tensors_hooks(keep, keep):
        with pytest.raises(RuntimeError, match="no hooks here"):
            with disable_saved_tensors_hooks("no hooks here"):
                pass


def test_transforms_forbid_hooks():
    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        with saved_tensors_hooks(keep, keep):
            torch.func.grad(lambda x: x.exp())(torch.tensor(1.0))
    assert torch.func.grad(lambda x: x.exp())(torch.tensor(0.0)).item() == 1


def test_mutation_can_be_allowed():
    x = leaf(2.0, 3.0)
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = y * y
        y.mul_(100)
        z.sum().backward()
    assert x.grad.tolist() == [4, 6]
    y = x * 1
    z = y * y
    y.mul_(100)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# One tensor's hooks


def test_hooks_of_one_saved_tensor():
    x = leaf(3.0)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t * 2, keep)
    y.grad_fn._raw_saved_other.register_hooks(lambda t: t * 5, keep)
    assert (y.grad_fn._saved_self.item(), y.grad_fn._saved_other.item()) == (6, 15)
    y.backward()
    assert x.grad.item() == 6 + 15


def test_a_saved_tensor_has_hooks_once():
    x = leaf(3.0)
    y = (x * 1) * x
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"):
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.mul_(2), keep)
    z = x * x
    z.grad_fn._raw_saved_self.register_hooks(keep, keep)
    with pytest.raises(RuntimeError, match="a saved tensor whose hooks have already been set"):
        z.grad_fn._raw_saved_self.register_hooks(keep, keep)
    with saved_tensors_hooks(keep, keep):
        w = x * x
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        w.grad_fn._raw_saved_self.register_hooks(keep, keep)


def test_no_hooks_of_what_was_freed_or_never_saved():
    x = leaf(3.0)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_self
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor after it has been freed"):
        saved.register_hooks(keep, keep)
    z = x * torch.ones(1, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor with value None is forbidden"):
        z.grad_fn._raw_saved_self.register_hooks(keep, keep)


def test_saved_lists_of_tensors():
    x = leaf(1.0, 2.0, 3.0)
    index = torch.tensor([0, 2])
    y = x[index]
    (saved,) = y.grad_fn._saved_indices
    assert saved.tolist() == [0, 2]
    y.grad_fn._raw_saved_indices[0].register_hooks(lambda t: t + 0, lambda t: t.flip(0))
    (y * torch.tensor([10.0, 20.0], dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == [20, 0, 10]


def test_saved_attributes_are_the_graphs_own():
    x = leaf(3.0)
    y = x * 1
    z = y.exp()
    assert z.grad_fn._saved_result.grad_fn is z.grad_fn and z.grad_fn._saved_result.item() == z.item()
    w = y * y
    assert w.grad_fn._saved_self.grad_fn is y.grad_fn
    assert (x * x).grad_fn._saved_self is x
    saved = z.grad_fn._saved_result
    z.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.grad_fn._saved_result
    assert saved is not z


def test_a_functions_saved_tensors_have_hooks_too():
    x = leaf(3.0)
    y = Square.apply(x)
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t * 100, keep)
    assert y.grad_fn.saved_tensors[0].item() == 300
    y.backward()
    assert x.grad.item() == 600


# Checkpoints


class Counted(nn.Module):
    """Two linear layers and a GELU; counts its calls."""

    def __init__(self, drop=0.0):
        super().__init__()
        torch.manual_seed(0)
        self.parts = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(drop), nn.Linear(8, 4))
        self.calls = 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        return x + self.parts(x) * scale


def gradients(model, run, *inputs):
    """Of the parameters and the inputs."""
    model.zero_grad()
    inputs = [x.detach().requires_grad_() for x in inputs]
    torch.manual_seed(7)
    run(*inputs).square().sum().backward()
    return [x.grad for x in (*model.parameters(), *inputs)]


def assert_same(first, second):
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b)


def sample(size=3):
    return torch.randn(size, 4, generator=torch.Generator().manual_seed(size))


@BOTH_KINDS
def test_a_checkpoint_runs_twice_with_the_same_gradients(reentrant):
    model = Counted(drop=0.5)
    expected = gradients(model, model, sample())
    model.calls = 0
    assert_same(gradients(model, lambda x: checkpoint(model, x, use_reentrant=reentrant), sample()), expected)
    assert model.calls == 2


@BOTH_KINDS
def test_without_its_seed_dropout_is_another(reentrant):
    model = Counted(drop=0.5)
    masks = []
    model.parts[2].register_forward_hook(lambda module, inputs, output: masks.append(output == 0))
    for keeps in (True, False):
        gradients(model, lambda x: checkpoint(model, x, use_reentrant=reentrant, preserve_rng_state=keeps), sample(64))
    assert torch.equal(masks[0], masks[1]) and not torch.equal(masks[2], masks[3])


@BOTH_KINDS
def test_what_a_checkpoint_frees(reentrant):
    inner = []

    def run(x):
        y = x * 2
        inner.append(weakref.ref(y))
        return (y * y).sum()

    x = leaf(3.0)
    kept, again = run(x), checkpoint(run, x, use_reentrant=reentrant)
    assert inner[0]() is not None and inner[1]() is None
    assert kept.grad_fn.next_functions[0][0].name() == "MulBackward0"
    again.backward()
    assert x.grad.item() == 24 and len(inner) == 3


@pytest.mark.parametrize("kinds", [(True, True), (False, False), (False, True), (True, False)])
def test_nested_checkpoints(kinds):
    outer_kind, inner_kind = kinds
    model = Counted(drop=0.5)
    expected = gradients(model, lambda x: model(model(x)), sample())

    def outer(x):
        return model(checkpoint(model, x, use_reentrant=inner_kind))

    assert_same(gradients(model, lambda x: checkpoint(outer, x, use_reentrant=outer_kind), sample()), expected)


@pytest.mark.parametrize("early", [True, False])
def test_a_recomputation_stops_early(early):
    calls = []

    def run(x):
        calls.append("begin")
        y = x.exp().sin()
        calls.append("end")
        return y * 1  # saves nothing

    x = leaf(1.0)
    with set_checkpoint_early_stop(early):
        y = checkpoint(run, x, use_reentrant=False)
    y.sum().backward()
    assert calls == ["begin", "end", "begin"] + ([] if early else ["end"])
    assert x.grad.item() == pytest.approx((x.exp().cos() * x.exp()).item())


def test_keyword_arguments():
    model = Counted()
    expected = gradients(model, lambda x: model(x, scale=3.0), sample())
    assert_same(gradients(model, lambda x: checkpoint(model, x, scale=3.0, use_reentrant=False), sample()), expected)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(model, sample(), scale=3.0, use_reentrant=True)


@pytest.mark.parametrize("second, message", [
    (lambda x: x[:1].exp().sum(), "have different metadata than during the forward pass"),
    (lambda x: x.clone().sum(), "A different number of tensors was saved during the original forward"),
], ids=["shape", "number"])
def test_a_recomputation_that_saves_something_else(second, message):
    calls = []

    def run(x):
        calls.append(1)
        return x.exp().sum() if len(calls) == 1 else second(x)

    with pytest.raises(CheckpointError, match=message):
        checkpoint(run, leaf(1.0, 2.0), use_reentrant=False).backward()


def test_the_check_of_a_recomputation_can_be_off():
    calls = []

    def run(x):
        calls.append(1)
        return (x if len(calls) % 2 else x.double()).exp().sum()

    x = torch.zeros(1, requires_grad=True)
    with pytest.raises(CheckpointError, match="have different metadata"):
        checkpoint(run, x, use_reentrant=False).backward()
    checkpoint(run, x, use_reentrant=False, determinism_check="none").backward()
    assert x.grad.item() == 1


def test_contexts_around_both_runs():
    entered = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            entered.append(self.name)

        def __exit__(self, *_):
            entered.append("-" + self.name)

    x = leaf(1.0)
    y = checkpoint(torch.exp, x, use_reentrant=False, context_fn=lambda: (Note("forward"), Note("again")))
    y.backward()
    assert entered == ["forward", "-forward", "again", "-again"]
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(torch.exp, x, use_reentrant=True, context_fn=lambda: (Note("forward"), Note("again")))


@pytest.mark.parametrize("saves", [True, False])
def test_selective_checkpoints(saves):
    class Products(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += function is torch.ops.aten.mm.default
            return function(*args, **(kwargs or {}))

    def policy(context, function, *args, **kwargs):
        is_product = function is torch.ops.aten.mm.default
        return CheckpointPolicy.MUST_SAVE if saves and is_product else CheckpointPolicy.PREFER_RECOMPUTE

    def run(x, w):
        return torch.sigmoid(torch.sigmoid(x @ w) @ w)

    x, w = torch.eye(2, dtype=torch.float64).requires_grad_(), torch.ones(2, 2, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad(run(x, w).sum(), [x, w])
    with Products() as products:
        y = checkpoint(run, x, w, use_reentrant=False,
                       context_fn=functools.partial(create_selective_checkpoint_contexts, policy))
        found = torch.autograd.grad(y.sum(), [x, w])
    assert_same(found, expected)
    assert products.count == 2 + 4 + (0 if saves else 2)


@BOTH_KINDS
def test_a_sequence_in_segments(reentrant):
    parts = nn.Sequential(*[Counted(drop=0.5) for _ in range(5)])
    expected = gradients(parts, parts, sample())
    for part in parts:
        part.calls = 0
    found = gradients(parts, lambda x: checkpoint_sequential(parts, 3, x, use_reentrant=reentrant), sample())
    assert_same(found, expected)
    assert [part.calls for part in parts] == [2, 2, 1, 1, 1]  # the last segment is none


def test_grad_and_given_inputs_need_the_other_kind():
    x = leaf(3.0)

    def run(x):
        return (x * x * x).sum()

    assert torch.autograd.grad(checkpoint(run, x, use_reentrant=False), x)[0].item() == 27
    checkpoint(run, x, use_reentrant=False).backward(inputs=[x])
    assert x.grad.item() == 27
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        torch.autograd.grad(checkpoint(run, x, use_reentrant=True), x)
    with pytest.raises(RuntimeError, match="incompatible with .grad"):
        checkpoint(run, x, use_reentrant=True).backward(inputs=[x])


def test_a_second_order_through_a_checkpoint():
    x = leaf(3.0)
    y = checkpoint(lambda x: (x ** 3).sum(), x, use_reentrant=False)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27, 18)


def test_a_retained_graph_recomputes_each_time():
    calls = []

    def run(x):
        calls.append(1)
        return x.exp().sin().sum()

    x = leaf(1.0)
    y = checkpoint(run, x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert len(calls) == 3
    assert x.grad.item() == pytest.approx(2 * (x.exp().cos() * x.exp()).item())


@BOTH_KINDS
def test_an_exception_of_a_recomputation(reentrant):
    calls = []

    def run(x):
        calls.append(1)
        if len(calls) == 2:
            raise OSError("of the recomputation")
        return x.exp().sin()

    x = leaf(1.0)
    y = checkpoint(run, x, use_reentrant=reentrant)
    with pytest.raises(OSError, match="of the recomputation"):
        y.sum().backward()
    checkpoint(run, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.item() == pytest.approx((x.exp().cos() * x.exp()).item())


def test_inputs_without_gradients():
    weight = leaf(3.0)

    def run(x):
        return (x * weight).sum()

    x = torch.ones(1, dtype=torch.float64)
    checkpoint(run, x, use_reentrant=False).backward()
    assert weight.grad.item() == 1
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(run, x, use_reentrant=True).requires_grad


def test_which_kind_has_to_be_said():
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        y = checkpoint(torch.exp, leaf(1.0))
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checkpoint(torch.exp, leaf(1.0), use_reentrant=False).grad_fn.name() == "ExpBackward0"


@BOTH_KINDS
def test_autocast_is_as_it_was(reentrant):
    model = Counted()
    seen = []
    model.parts[1].register_forward_hook(lambda module, inputs, output: seen.append(output.dtype))

    def run(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return checkpoint(model, x, use_reentrant=reentrant)

    found = gradients(model, run, sample())
    assert seen == [torch.bfloat16] * 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(sample().requires_grad_())
    assert out.dtype is torch.float32 and all(gradient.dtype is torch.float32 for gradient in found)


@BOTH_KINDS
def test_hooks_around_and_within_a_checkpoint(reentrant):
    packed = []

    def run(x):
        with saved_tensors_hooks(lambda t: packed.append("inner") or t, keep):
            y = x.exp()
        return y.sin()

    x = leaf(1.0)
    with saved_tensors_hooks(lambda t: packed.append("outer") or t, keep):
        y = checkpoint(run, x, use_reentrant=reentrant)
    forward = len(packed)
    y.sum().backward()
    assert "outer" in packed[:forward]  # the arguments
    assert packed.count("inner") == (1 if reentrant else 2)
    assert x.grad.item() == pytest.approx((x.exp().cos() * x.exp()).item())


def test_checkpoints_that_save_on_the_cpu():
    model = Counted(drop=0.5)
    expected = gradients(model, model, sample())

    def run(x):
        with save_on_cpu():
            return checkpoint(model, x, use_reentrant=False)

    assert_same(gradients(model, run, sample()), expected)


@BOTH_KINDS
def test_checkpoints_on_several_threads(reentrant):
    results = {}

    def run(k):
        x = leaf(float(k))
        for _ in range(10):
            x.grad = None
            checkpoint(lambda x: (x * x * x).sum(), x, use_reentrant=reentrant).backward()
        results[k] = x.grad.item()

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {k: 3 * k * k for k in range(4)}


@BOTH_KINDS
def test_several_outputs_and_what_is_no_tensor(reentrant):
    def run(x, factor, none):
        assert none is None
        return x * factor, "text", x.detach(), (x * x).sum()

    x = leaf(3.0)
    first, text, detached, last = checkpoint(run, x, 4, None, use_reentrant=reentrant)
    (first.sum() + last).backward()
    assert text == "text" and detached.requires_grad == reentrant and x.grad.item() == 4 + 6
