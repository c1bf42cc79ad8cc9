"""Autograd's engine is PyTorch's own while Stowage is imported, or attached and between two steps.

Rebuilt from what PyTorch 2.11 tests of backward within backward, threads, edges, anomalies, higher orders, forward
mode, transforms, the profiler and copies (its basics: test_training_beside_autograd).
"""

import copy
import io
import os
import pickle
import threading

import pytest
import torch
from beside_case import Raises, Square, leaf, state  # state: runs every test in its states
from torch import nn
from torch.autograd import Function, forward_ad, gradcheck, gradgradcheck
from torch.autograd.gradcheck import GradcheckError
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.autograd.variable import Variable
from torch.utils._python_dispatch import TorchDispatchMode


# Backward within backward, callbacks, threads


class Reentrant(Function):
    """x * x by a backward of its own, `depth` of them within each other."""

    @staticmethod
    def forward(ctx, x, depth, log, from_cpp=False):
        ctx.depth, ctx.log, ctx.from_cpp = depth, log, from_cpp
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            inner = Reentrant.apply(ctx.x, depth - 1, log, from_cpp) if depth else ctx.x * ctx.x
            ctx.inner = inner
        return inner.detach()

    @staticmethod
    def backward(ctx, gradient):
        with torch.enable_grad():
            if ctx.from_cpp:
                torch.ops.aten._backward(ctx.inner, [ctx.x], gradient, False, False)
            else:
                ctx.inner.backward(gradient)
        ctx.log.append(ctx.depth)
        return ctx.x.grad, None, None, None


@pytest.mark.parametrize("depth", [0, 1, 150])
@pytest.mark.parametrize("from_cpp", [False, True])
def test_backward_within_backward(depth, from_cpp):
    # 150: beyond what the engine runs on one thread's stack
    log = []
    x = leaf(3.0)
    (Reentrant.apply(x, depth, log, from_cpp) * 2).sum().backward()
    assert x.grad.item() == 12
    assert log == list(range(depth + 1))


def test_an_exception_within_backward_within_backward():
    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            with torch.enable_grad():
                Raises.apply(leaf(1.0)).sum().backward()
            return gradient

    x = leaf(1.0)
    with pytest.raises(ValueError, match="of the user's backward"):
        Outer.apply(x).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.item() == 2


def test_a_hook_may_run_a_backward():
    x, other = leaf(3.0), leaf(5.0)

    def run(gradient):
        with torch.enable_grad():
            (other * other).sum().backward()

    x.register_hook(run)
    (x * x).sum().backward()
    assert (x.grad.item(), other.grad.item()) == (6, 10)


def test_callbacks_run_behind_all_nodes_once():
    order = []

    class Queues(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            Variable._execution_engine.queue_callback(lambda: order.append("callback"))
            return gradient

    x = leaf(1.0)
    x.register_post_accumulate_grad_hook(lambda _: order.append("accumulated"))
    y = Queues.apply(x) * 2
    for _ in range(2):
        y.sum().backward(retain_graph=True)
    assert order == ["accumulated", "callback"] * 2
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        Variable._execution_engine.queue_callback(lambda: None)


def test_a_callback_that_raises():
    def fail():
        raise OSError("of the callback")

    x = leaf(1.0)
    x.register_hook(lambda gradient: Variable._execution_engine.queue_callback(fail))
    with pytest.raises(OSError, match="of the callback"):
        (x * 2).sum().backward()


def test_the_engine_object_is_an_engine():
    assert isinstance(Variable._execution_engine, torch._C._ImperativeEngine)
    assert Variable._execution_engine.is_checkpoint_valid()
    valid = []
    x = leaf(2.0)
    y = (x * x).sum()
    x.register_hook(lambda gradient: valid.append(Variable._execution_engine.is_checkpoint_valid()))
    y.backward(retain_graph=True)
    y.backward(inputs=[x])
    assert valid == [True, False]


def in_threads(*functions):
    """Their results; the first exception is raised."""
    results, errors = [None] * len(functions), []

    def run(i):
        try:
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def test_each_thread_runs_a_graph_of_its_own():
    def train(k):
        def run():
            x = leaf(float(k))
            for _ in range(20):
                x.grad = None
                Square.apply(x * 2).sum().backward()
            return x.grad.item()
        return run

    assert in_threads(*[train(k) for k in range(6)]) == [8 * k for k in range(6)]


def test_threads_share_a_retained_graph():
    x = leaf(3.0)
    y = Square.apply(x).sum()
    gradients = in_threads(*[lambda: torch.autograd.grad(y, x, retain_graph=True)[0].item()] * 4)
    assert gradients == [6] * 4


def test_an_exception_is_its_own_threads():
    x, other = leaf(3.0), leaf(2.0)

    def fails():
        with pytest.raises(ValueError, match="of the user's backward"):
            Raises.apply(other).sum().backward()

    def works():
        (x * x).sum().backward()
        return x.grad.item()

    assert in_threads(fails, works) == [None, 6]
    assert other.grad is None


def test_graphs_that_forks_of_torchscript_join():
    @torch.jit.script
    def doubled(x):
        return x * 2

    @torch.jit.script
    def joined(x):
        future = torch.jit.fork(doubled, x)
        return torch.jit.wait(future) + x * x

    x = leaf(3.0)
    joined(x).sum().backward()
    assert x.grad.item() == 8


def test_a_forked_process_has_no_threads_for_backward():
    Reentrant.apply(leaf(3.0), 150, []).sum().backward()  # has threads, which a fork does not
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            Square.apply(leaf(4.0)).sum().backward()
            os.write(writer, b"nothing was raised")
        except BaseException as error:
            os.write(writer, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        assert said.read().startswith('RuntimeError("Unable to handle autograd\'s threading in combination with fork')
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("function, error", [(Square, None), (Raises, ValueError)], ids=["runs", "raises"])
def test_backward_that_is_called_from_cpp(function, error):
    x = leaf(3.0)
    y = function.apply(x * 2).sum()
    if error is None:
        torch.ops.aten._backward(y, [x], None, False, False)
        assert x.grad.item() == 24
    else:
        with pytest.raises(error, match="of the user's backward"):
            torch.ops.aten._backward(y, [x], None, False, False)
        assert x.grad is None


# Edges


def test_edges_in_the_place_of_tensors():
    x = leaf(3.0)
    y = x * x
    z = y * y
    edge_y, edge_z = get_gradient_edge(y), get_gradient_edge(z)
    assert edge_y.node is y.grad_fn and edge_y.output_nr == 0
    del y, z
    (of_y,) = torch.autograd.grad(edge_z, edge_y, torch.ones(1, dtype=torch.float64), retain_graph=True)
    assert of_y.item() == 18
    torch.autograd.backward(edge_z, torch.ones(1, dtype=torch.float64))
    assert x.grad.item() == 4 * 27
    with pytest.raises(RuntimeError, match="not require gradient|without.*gradient|that requires grad"):
        get_gradient_edge(torch.ones(1))


def test_edges_of_leaves_and_of_further_outputs():
    x = leaf(1.0, 2.0)
    first, second = x.unbind()
    edge = get_gradient_edge(second)
    assert edge.output_nr == 1
    loss = (first * 3 + second * 5).sum()
    of_leaf, of_second = torch.autograd.grad(loss, [get_gradient_edge(x), edge])
    assert of_leaf.tolist() == [3, 5] and of_second.item() == 5
    assert GradientEdge(edge.node, 1) == (second.grad_fn, 1, None)


# Anomalies


def test_detected_anomalies():
    x = leaf(-1.0, 4.0)
    with pytest.warns(UserWarning, match="Error detected in SqrtBackward0") as told:
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            with torch.autograd.detect_anomaly():
                assert torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()
                x.sqrt().sum().backward()
    assert any("test_detected_anomalies" in str(warning.message) for warning in told)
    assert not torch.is_anomaly_enabled()


def test_an_anomaly_of_the_second_order_names_both_forwards():
    class Nan(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * float("nan")

    class OuterOfNan(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return Nan.apply(gradient)

    x = leaf(1.0)
    with pytest.warns(UserWarning) as told:
        with torch.autograd.set_detect_anomaly(True):
            y = OuterOfNan.apply(x)
            start = torch.ones(1, dtype=torch.float64, requires_grad=True)
            (first,) = torch.autograd.grad(y, x, start, create_graph=True)
            with pytest.raises(RuntimeError, match="Function 'NanBackward' returned nan values"):
                first.sum().backward()
    said = " ".join(str(warning.message) for warning in told)
    assert "Error detected in NanBackward" in said and "Previous calculation was induced by OuterOfNanBackward" in said


def test_anomaly_mode_without_the_check_keeps_tracebacks_only():
    x = leaf(-1.0)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y = x.sqrt()
        assert any("y = x.sqrt()" in line for line in y.grad_fn.metadata["traceback_"])
        y.sum().backward()
    assert x.grad.isnan().item()
    assert "traceback_" not in x.sqrt().grad_fn.metadata


# Higher orders, checks, functional forms


def test_gradients_of_gradients():
    x = leaf(2.0)
    y = x ** 4
    orders = []
    for _ in range(4):
        (y,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        orders.append(y.item())
    assert orders == [32, 48, 48, 24]


def test_a_penalty_on_gradients():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1)).double()
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)

    def penalty(*parameters):
        names = [name for name, _ in model.named_parameters()]
        out = torch.func.functional_call(model, dict(zip(names, parameters, strict=True)), (x,))
        return torch.autograd.grad(out.sum(), x, create_graph=True)[0].square().sum()

    assert gradcheck(penalty, tuple(model.parameters()))


@pytest.mark.parametrize("function", [
    lambda a, b: a @ b, lambda a, b: torch.softmax(a, 1) * b.T, lambda a, b: torch.einsum("ij,ji->i", a, b),
    lambda a, b: torch.cat([a, b.T]).cumsum(0), lambda a, b: Square.apply(a) - b.T.tanh(),
], ids=["matmul", "softmax", "einsum", "cat", "function"])
def test_checked_gradients_of_both_orders(function):
    torch.manual_seed(0)
    inputs = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True),
              torch.randn(3, 2, dtype=torch.float64, requires_grad=True))
    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_forward_mode_is_checked_as_well():
    torch.manual_seed(0)
    x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: x.exp().sin(), (x,), check_forward_ad=True, check_batched_grad=True,
                     check_batched_forward_grad=True)


def test_a_wrong_gradient_is_found():
    class Wrong(Square):
        @staticmethod
        def backward(ctx, gradient):
            return 3 * ctx.saved_tensors[0] * gradient

    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Wrong.apply, (leaf(2.0),))
    assert not gradcheck(Wrong.apply, (leaf(2.0),), raise_exception=False)


@pytest.mark.parametrize("vectorize", [False, True])
def test_jacobians_and_hessians(vectorize):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)

    def function(x):
        return torch.stack([x[0] * x[1], x[1] ** 3])

    jacobian = torch.autograd.functional.jacobian(function, x, vectorize=vectorize)
    assert jacobian.tolist() == [[2, 1], [0, 12]]
    hessian = torch.autograd.functional.hessian(lambda x: x[0] ** 2 * x[1] ** 2, x, vectorize=vectorize)
    assert hessian.tolist() == [[8, 8], [8, 2]]


def test_products_with_jacobians_and_hessians():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    v = torch.tensor([1.0, -1.0], dtype=torch.float64)
    of = torch.autograd.functional
    assert of.vjp(lambda x: x ** 3, x, v)[1].tolist() == [3, -12]
    assert of.jvp(lambda x: x ** 3, x, v)[1].tolist() == [3, -12]
    assert of.vhp(lambda x: (x ** 3).sum(), x, v)[1].tolist() == [6, -12]
    assert of.hvp(lambda x: (x ** 3).sum(), x, v)[1].tolist() == [6, -12]


def test_dual_numbers():
    x = torch.tensor([2.0, 3.0])
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(2))
        primal, tangent = forward_ad.unpack_dual(dual * dual)
        assert (primal.tolist(), tangent.tolist()) == ([4, 9], [4, 6])
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
            forward_ad.enter_dual_level()
    assert forward_ad.unpack_dual(dual).tangent is None


def test_forward_over_reverse_and_reverse_over_forward():
    x = leaf(2.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones(1, dtype=torch.float64))
        (gradient,) = torch.autograd.grad((dual ** 3).sum(), dual, create_graph=True)
        assert forward_ad.unpack_dual(gradient).tangent.item() == 12
        tangent = forward_ad.unpack_dual(dual ** 3).tangent
        assert torch.autograd.grad(tangent.sum(), x)[0].item() == 12


def test_func_transforms():
    x = torch.tensor([1.0, 2.0, 3.0])
    func = torch.func
    assert func.grad(lambda x: (x ** 3).sum())(x).tolist() == [3, 12, 27]
    assert func.grad(func.grad(lambda x: x ** 3))(x[1]).item() == 12
    out, pull = func.vjp(torch.square, x)
    assert (out.tolist(), pull(torch.ones(3))[0].tolist()) == ([1, 4, 9], [2, 4, 6])
    assert func.jvp(torch.square, (x,), (x,))[1].tolist() == [2, 8, 18]
    assert func.jacrev(torch.square)(x).equal(func.jacfwd(torch.square)(x))
    assert func.hessian(lambda x: (x ** 3).sum())(x).diagonal().tolist() == [6, 12, 18]
    _, push = func.linearize(torch.square, x)
    assert push(torch.ones(3)).tolist() == [2, 4, 6]


def test_gradients_for_each_sample():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    x = torch.randn(5, 3)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, sample):
        return torch.func.functional_call(model, parameters, (sample,)).square().sum()

    each = torch.func.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for k in range(5):
        model.zero_grad()
        model(x[k]).square().sum().backward()
        torch.testing.assert_close(each["weight"][k], model.weight.grad)


def test_ops_of_backward_go_through_dispatch_modes():
    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(str(function))
            return function(*args, **(kwargs or {}))

    seen = []
    x = leaf(2.0)
    y = x.exp().sum()
    with Log():
        y.backward()
    assert "aten.mul.Tensor" in seen and x.grad.item() == y.item()


# The profiler


def test_profiled_backwards_have_their_forwards_numbers():
    x = leaf(1.0, 2.0)
    with torch.autograd.profiler.profile() as profiled:
        with torch.autograd.profiler.record_function("mine"):
            y = x.exp() * x
        y.sum().backward()
    events = {event.name: event for event in profiled.function_events}
    assert {"mine", "aten::exp", "aten::mul", "autograd::engine::evaluate_function: ExpBackward0"} <= events.keys()
    assert events["ExpBackward0"].sequence_nr == events["aten::exp"].sequence_nr >= 0
    assert events["MulBackward0"].count == 1
    assert "aten::exp" in profiled.key_averages().table()


def test_the_profilers_memory_and_shapes(state):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True,
                                record_shapes=True) as profiled:
        x = torch.ones(64, 64, requires_grad=True)
        (x @ x).sum().backward()
    products = [event for event in profiled.events() if event.name == "aten::mm"]
    assert [event.input_shapes for event in products] == [[[64, 64], [64, 64]]] * 3
    assert [event.cpu_memory_usage for event in products] == [64 * 64 * 4] * 3
    assert sum(event.self_cpu_memory_usage for event in profiled.events()) >= 0


# Copies, pickles


def test_copies_of_tensors():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    copied = copy.deepcopy(x)
    assert copied.requires_grad and copied.grad.tolist() == [2, 4] and copied.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize("way", ["deepcopy", "pickle", "save"])
def test_copies_of_modules_and_optimizers_train_on(way):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    batches = [torch.randn(6, 4) for _ in range(4)]

    def train(model, optimizer, x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    for x in batches[:2]:
        train(model, optimizer, x)
    if way == "deepcopy":
        other_model, other_optimizer = copy.deepcopy((model, optimizer))
    elif way == "pickle":
        other_model, other_optimizer = pickle.loads(pickle.dumps((model, optimizer)))
    else:
        file = io.BytesIO()
        torch.save((model.state_dict(), optimizer.state_dict()), file)
        file.seek(0)
        states = torch.load(file)
        other_model = copy.deepcopy(model)
        other_optimizer = torch.optim.AdamW(other_model.parameters(), lr=1)
        other_model.load_state_dict(states[0])
        other_optimizer.load_state_dict(states[1])
    for x in batches[2:]:
        assert train(model, optimizer, x) == train(other_model, other_optimizer, x)
    for p, q in zip(model.parameters(), other_model.parameters(), strict=True):
        assert torch.equal(p, q) and p.data_ptr() != q.data_ptr()


def test_memory_that_numpy_has_too():
    array = torch.ones(3, dtype=torch.float64).numpy()
    x = torch.from_numpy(array).requires_grad_()
    (x * x).sum().backward()
    array += 1
    assert x.tolist() == [2, 2, 2] and x.grad.tolist() == [2, 2, 2]
    with pytest.raises(RuntimeError, match="Can't call numpy.. on Tensor that requires grad"):
        x.numpy()
