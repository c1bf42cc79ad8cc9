"""Autograd's basics are PyTorch's own while Stowage is imported, or attached and between two steps.

Rebuilt from what PyTorch 2.11 tests of gradients, grad modes, hooks, in-place operations and the user's functions
(the engine: test_training_beside_engine; saved tensors and checkpoints: test_training_beside_saved_tensors).
"""

import copy
import gc
import warnings
import weakref

import pytest
import torch
from beside_case import Raises, Square, leaf, state  # state: runs every test in its states
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.autograd.graph import increment_version, register_multi_grad_hook


# Gradients and graphs


def test_a_graph_is_freed_by_its_backward():
    x = leaf(3.0)
    y = (x * x).sum()
    y.backward()
    assert x.grad.item() == 6
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_a_retained_graph_accumulates():
    x = leaf(3.0)
    y = (x * x).sum()
    for times in (1, 2, 3):
        y.backward(retain_graph=times < 3)
        assert x.grad.item() == 6 * times


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_accumulate_in_place_unless_they_have_a_graph(create_graph):
    x = leaf(1.0, 2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the cycle that a gradient with a graph makes
        (x * x).sum().backward(create_graph=create_graph)
        first = x.grad
        (x * x).sum().backward(create_graph=create_graph)
    assert (x.grad is first) != create_graph
    assert first.tolist() == ([2, 4] if create_graph else [4, 8])
    assert x.grad.tolist() == [4, 8]
    x.grad = None


def test_a_gradient_is_laid_out_as_its_parameter():
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    (x * torch.ones(2, 3, 4, 5)).sum().backward()
    assert x.grad.stride() == x.stride()


def test_grad_of_unused_inputs():
    x, unused = leaf(2.0), leaf(1.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad((x * x).sum(), [x, unused])
    assert torch.autograd.grad((x * x).sum(), [unused], allow_unused=True) == (None,)
    zero = torch.autograd.grad((x * x).sum(), [x, unused], materialize_grads=True)
    assert [g.item() for g in zero] == [4, 0]
    assert x.grad is None


def test_backward_towards_given_inputs_alone():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    (z * z).sum().backward(inputs=[x, z])
    assert (x.grad.item(), y.grad, z.grad.item()) == (36, None, 12)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * y).sum().backward(inputs=[])


def test_gradients_of_a_vector_need_one_themselves():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(torch.tensor([1.0, 10.0], dtype=torch.float64))
    assert x.grad.tolist() == [2, 20]
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        (x * 2).backward(torch.ones(3, dtype=torch.float64))


def test_several_roots_and_batched_gradients():
    x = leaf(1.0, 2.0)
    torch.autograd.backward([(x * 2).sum(), (x * x).sum()])
    assert x.grad.tolist() == [4, 6]
    rows = torch.autograd.grad(x ** 3, x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)
    assert rows[0].tolist() == [[3, 0], [0, 12]]


def test_what_has_no_graph_cannot_run_backward():
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones(1).sum().backward()
    with pytest.raises(RuntimeError, match="only Tensors of floating point"):
        torch.ones(1, dtype=torch.int64).requires_grad_()


def test_a_gradient_that_is_set_must_fit():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="assign a gradient of size .* to a tensor of size"):
        x.grad = torch.zeros(3, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="assign.* grad.*(dtype|type)"):
        x.grad = torch.zeros(2, dtype=torch.float32)
    with pytest.raises(TypeError, match="assigned grad expected to be a Tensor or None"):
        x.grad = 0
    x.grad = torch.ones(2, dtype=torch.float64)
    (x * x).sum().backward()
    assert x.grad.tolist() == [3, 5]


def test_complex_gradients():
    z = torch.tensor([3 + 4j], requires_grad=True)
    z.abs().sum().backward()
    torch.testing.assert_close(z.grad, torch.tensor([0.6 + 0.8j]))


def test_sparse_gradients_add_up_with_dense_ones():
    table = nn.Embedding(4, 2, sparse=True)
    table(torch.tensor([1, 1, 3])).sum().backward()
    assert table.weight.grad.is_sparse
    assert table.weight.grad.to_dense().tolist() == [[0, 0], [2, 2], [0, 0], [1, 1]]
    table.weight.sum().backward()
    assert table.weight.grad.tolist() == [[1, 1], [3, 3], [1, 1], [2, 2]]


def test_a_deep_graph_runs_and_is_freed_without_recursion():
    x = leaf(1.0)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.sum().backward()
    assert x.grad.item() == 1
    freed = weakref.ref(y)
    del y
    assert freed() is None


def test_a_wide_graph_runs_each_node_once():
    x = leaf(1.0)
    y = x
    for _ in range(60):  # 2**60 paths
        y = y + y
    y.sum().backward()
    assert x.grad.item() == 2.0 ** 60


def test_nodes_say_what_they_are():
    x = leaf(2.0)
    y = x.exp()
    z = y * x
    assert (z.grad_fn.name(), y.grad_fn.name()) == ("MulBackward0", "ExpBackward0")
    assert z.grad_fn.next_functions[0] == (y.grad_fn, 0)
    assert z.grad_fn.next_functions[1][0].variable is x
    assert z.grad_fn._sequence_nr() > y.grad_fn._sequence_nr()
    z.grad_fn.metadata["mine"] = 1
    assert z.grad_fn.metadata == {"mine": 1}
    assert (x.is_leaf, z.is_leaf, x.grad_fn) == (True, False, None)


# Grad modes


def test_grad_modes_nest_and_end():
    x = leaf(1.0)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    assert (x * 2).requires_grad


def test_grad_modes_as_decorators_of_functions_and_generators():
    @torch.no_grad()
    def off():
        return torch.is_grad_enabled()

    @torch.no_grad()
    def each():
        for _ in range(2):
            yield torch.is_grad_enabled()

    assert not off()
    seen = []
    for inside in each():
        seen.append((inside, torch.is_grad_enabled()))
    assert seen == [(False, True)] * 2


def test_inference_mode():
    x = leaf(1.0)
    with torch.inference_mode():
        made = torch.ones(1, dtype=torch.float64)
        assert (x * 2).is_inference() and not (x * 2).requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * made
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        made.add_(1)
    copied = made.clone()
    (x * copied).sum().backward()
    assert x.grad.equal(copied) and not copied.is_inference()


def test_multithreading_can_be_off():
    x = leaf(2.0)
    with torch.autograd.set_multithreading_enabled(False):
        assert not torch._C._is_multithreading_enabled()
        (x * x).sum().backward()
    assert torch._C._is_multithreading_enabled()
    assert x.grad.item() == 4


# Hooks


def test_a_tensors_hook_changes_its_gradient_until_it_is_removed():
    x = leaf(1.0, 1.0)
    handle = x.register_hook(lambda gradient: gradient * 10)
    (x * 2).sum().backward()
    handle.remove()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [22, 22]


def test_hooks_run_in_the_order_of_their_registration():
    x = leaf(1.0)
    y = x * 2
    order = []
    y.register_hook(lambda gradient: order.append("first"))
    second = y.register_hook(lambda gradient: order.append("second"))
    y.register_hook(lambda gradient: order.append("third"))
    second.remove()
    y.retain_grad()
    y.register_hook(lambda gradient: gradient * 3)
    y.sum().backward()
    assert order == ["first", "third"]
    assert (y.grad.item(), x.grad.item()) == (3, 6)  # retained behind all hooks


def test_a_hook_may_remove_itself():
    x = leaf(1.0)
    calls = []

    def once(gradient):
        calls.append(gradient.item())
        handle.remove()

    handle = x.register_hook(once)
    for _ in range(2):
        (x * 3).sum().backward()
    assert calls == [3]


def test_a_hook_that_returns_no_gradient_raises():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda gradient: "none")
    with pytest.raises(TypeError, match="expected Variable, but hook returned"):
        y.sum().backward()
    z = x * 2
    z.register_hook(lambda gradient: torch.ones(7, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="hook .*has changed the size of value"):
        z.sum().backward()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(lambda gradient: None)


def test_a_hook_that_raises_ends_the_backward_and_leaves_the_engine_usable():
    x = leaf(2.0)

    def fail(_):
        raise KeyError("of the hook")

    y = x * x
    y.register_hook(fail)
    with pytest.raises(KeyError, match="of the hook"):
        y.sum().backward()
    (x * x).sum().backward()
    assert x.grad.item() == 4


def test_hooks_of_a_node():
    x = leaf(2.0)
    y = x * 3
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
    seen = []
    handle = y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item())))
    y.sum().backward(retain_graph=True)
    handle.remove()
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, None))
    y.sum().backward()
    assert seen == [(30, 10)]
    assert x.grad.item() == 30 + 31


def test_hooks_behind_accumulation():
    x = leaf(2.0)
    seen = []

    def take(parameter):
        seen.append((parameter is x, parameter.grad.item()))
        parameter.grad = None

    handle = x.register_post_accumulate_grad_hook(take)
    for factor in (1, 2):
        (x * factor).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    assert seen == [(True, 1), (True, 2)]
    assert x.grad.item() == 3
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf"):
        (x * 2).register_post_accumulate_grad_hook(take)


def test_an_optimizer_within_backward():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    reference = copy.deepcopy(model)
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def update(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(update)
    whole = torch.optim.SGD(reference.parameters(), lr=0.1)
    for k in range(3):
        x = torch.full((2, 3), float(k + 1))
        model(x).sum().backward()
        reference(x).sum().backward()
        whole.step()
        whole.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    for p, q in zip(model.parameters(), reference.parameters(), strict=True):
        assert torch.equal(p, q)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_hook_of_several_tensors(mode):
    a, b = leaf(1.0), leaf(2.0)
    c, d = a * b, a + b
    seen = []
    handle = register_multi_grad_hook((a, b, c, d), seen.append, mode=mode)
    c.sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    if mode == "all":
        assert [[g and g.item() for g in gradients] for gradients in seen] == [[2, 1, 1, None]]
    else:
        assert [g.item() for g in seen] == [1]


def test_a_modules_hooks():
    model = nn.Linear(2, 1, bias=False)
    nn.init.constant_(model.weight, 2.0)
    order = []
    handles = [
        model.register_forward_pre_hook(lambda module, inputs: order.append("before")),
        model.register_forward_hook(lambda module, inputs, output: output * 2),
        model.register_full_backward_pre_hook(lambda module, outputs: order.append(("outputs", outputs[0].item()))),
        model.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 5,))]
    x = torch.ones(1, 2, requires_grad=True)
    model(x).sum().backward()
    assert order == ["before", ("outputs", 1)]
    assert x.grad.tolist() == [[20, 20]]
    for handle in handles:
        handle.remove()
    x.grad = None
    model(x).sum().backward()
    assert x.grad.tolist() == [[2, 2]]


# In-place operations, views, versions


def test_what_backward_needs_must_not_change():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .*is at version 1; expected version 0"):
        z.sum().backward()


def test_versions_are_shared_by_views_and_detached_tensors_but_not_by_data():
    x = torch.zeros(4)
    view, detached, data = x.view(2, 2), x.detach(), x.data
    view.add_(1)
    detached.add_(1)
    assert (x._version, view._version, detached._version) == (2, 2, 2)
    data.add_(1)
    assert (x._version, data._version) == (2, 1)
    assert x.tolist() == [3] * 4


def test_versions_can_be_raised_and_kept():
    x = leaf(2.0)
    y = x.clone()
    z = y * y
    increment_version([y])
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward(retain_graph=True)
    w = x.clone()
    kept = w * w
    with torch.autograd._unsafe_preserve_version_counter(w):
        w.mul_(1)
    kept.sum().backward()
    assert (w._version, x.grad.item()) == (0, 4)


def test_a_leaf_changes_in_place_in_no_grad_alone():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[0].add_(1)
    with torch.no_grad():
        x.add_(1)
    assert x.tolist() == [2, 3] and x._version == 1


def test_in_place_on_a_view_is_in_the_bases_graph():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    view.mul_(4)
    assert view.grad_fn.name() == "AsStridedBackward0" and y.grad_fn.name().endswith("CopySlices")
    (y * y).sum().backward()
    assert x.grad.tolist() == [2, 2 * 2 * 16, 2 * 3 * 16]


def test_views_that_must_not_change_in_place():
    x = leaf(1.0, 2.0)
    first, _ = (x * 1).unbind()
    with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
        first.add_(1)
    y = x * 1
    with torch.no_grad():
        view = y[:1]
    with pytest.raises(RuntimeError, match="no_grad mode"):
        view.add_(1)


def test_detach():
    x = leaf(1.0, 2.0)
    y = x * x
    alone = y.detach()
    assert alone.data_ptr() == y.data_ptr() and not alone.requires_grad
    (y * alone).sum().backward()
    assert x.grad.tolist() == [2 * 1 * 1, 2 * 2 * 4]
    z = x * 2
    z.detach_()
    assert z.is_leaf and z.grad_fn is None


def test_what_data_is_set_to_and_what_requires_grad():
    x = leaf(1.0, 2.0)
    y = x * x
    x.data = torch.tensor([10.0, 20.0], dtype=torch.float64)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([1, 4], [20, 40])  # the graph has a leaf itself, no copy
    with pytest.raises(RuntimeError, match="you can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)


# The user's own functions


def test_a_function_and_its_gradients_gradient():
    x = leaf(3.0)
    (first,) = torch.autograd.grad(Square.apply(Square.apply(x)), x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (4 * 27, 12 * 9)


def test_a_function_that_is_differentiable_once():
    class Once(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, gradient):
            assert not torch.is_grad_enabled()
            return 2 * ctx.saved_tensors[0] * gradient

    x = leaf(3.0)
    (first,) = torch.autograd.grad(Once.apply(x), x, torch.ones_like(x, requires_grad=True), create_graph=True)
    assert first.item() == 6
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_diff"):
        first.backward()


def test_a_functions_context():
    class Scale(Function):
        @staticmethod
        def forward(x, factor, other):
            return x * factor + other, x.argmax()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, gradient, of_index):
            assert ctx.needs_input_grad == (True, False, False) and of_index is None
            return gradient * ctx.factor, None, None

    x = leaf(3.0, 5.0)
    scaled, index = Scale.apply(x, 4, torch.ones(2, dtype=torch.float64))
    assert not index.requires_grad and index.item() == 1
    scaled.sum().backward()
    assert x.grad.tolist() == [4, 4]


def test_a_function_that_changes_its_input():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    x = leaf(3.0)
    y = x * 1
    z = Double.apply(y)
    assert z is y and y.tolist() == [6] and y._version > 0
    z.sum().backward()
    assert x.grad.item() == 2


@pytest.mark.parametrize("returned, error, message", [
    (lambda g: (g, g), RuntimeError, r"returned an incorrect number of gradients \(expected 1, got 2\)"),
    (lambda g: torch.ones(5, dtype=torch.float64), RuntimeError, "returned an invalid gradient at index 0"),
    (lambda g: "gradient", RuntimeError, r"expected Variable or None \(got str\)"),
], ids=["too-many", "shape", "type"])
def test_a_function_that_returns_no_gradient(returned, error, message):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return returned(gradient)

    with pytest.raises(error, match=message):
        Wrong.apply(leaf(1.0, 2.0)).sum().backward()


def test_exceptions_of_a_functions_forward_and_backward():
    class Fails(Function):
        @staticmethod
        def forward(ctx, x):
            raise LookupError("of the user's forward")

    x = leaf(1.0)
    with pytest.raises(LookupError, match="of the user's forward"):
        Fails.apply(x)
    with pytest.raises(ValueError, match="of the user's backward"):
        Raises.apply(x * 2).sum().backward()
    assert x.grad is None


def test_what_a_function_saved_is_gone_behind_backward():
    x = leaf(1.0)
    y = Square.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.grad_fn.saved_tensors


def test_a_function_under_vmap_and_forward_mode():
    class Cube(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] ** 2 * gradient

        @staticmethod
        def jvp(ctx, tangent):
            return 3 * ctx.saved_tensors[0] ** 2 * tangent

    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.vmap(torch.func.grad(Cube.apply))(x).tolist() == [3, 12, 27]
    _, tangent = torch.func.jvp(Cube.apply, (x,), (torch.ones(3),))
    assert tangent.tolist() == [3, 12, 27]


def test_functions_under_autocast():
    class Multiply(Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu")
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a @ b

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, gradient):
            a, b = ctx.saved_tensors
            seen.append((gradient.dtype, torch.is_autocast_enabled("cpu")))
            return gradient @ b.T, a.T @ gradient

    seen = []
    a, b = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = Multiply.apply(a, b)
        assert product.dtype is torch.bfloat16
    product.sum().backward()
    assert seen == [(torch.bfloat16, True)]
    assert a.grad.dtype is torch.float32 and a.grad.tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize("how", ["unused", "ran", "raised"])
def test_a_functions_graph_is_freed_with_its_result(how):
    x = leaf(1.0)
    held = nn.Module()  # something that can be referred to weakly
    freed = weakref.ref(held)
    y = Raises.apply(x) if how == "raised" else Square.apply(x)
    y.grad_fn.held = held
    y.grad_fn.register_hook(lambda inputs, outputs, held=held: None)
    if how == "ran":
        y.sum().backward()
    elif how == "raised":
        with pytest.raises(ValueError):
            y.sum().backward()
    del held, y
    gc.collect()
    assert freed() is None
