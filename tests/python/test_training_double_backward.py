"""Graphs that are differentiated again, in parts, or twice: the plain loop's gradients, or an error; no others."""

import warnings

import pytest
import stowage
import torch
from torch.autograd.graph import get_gradient_edge
from training_case import RECORDED, Block, Loop, Net, adamw, assert_equal, batch

pytestmark = pytest.mark.usefixtures("one_thread")

STEPS = RECORDED + 3
ROWS = 64


def net():
    return Net(blocks=2)


def loss_of(model, k, x=None):
    rows, y = batch(k, ROWS)
    return torch.nn.functional.cross_entropy(model(rows if x is None else x), y)


class Forces(torch.nn.Module):
    """A layer whose forward has a backward in it: the gradient of an energy by positions."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 1))
        self.block = Block(64)

    def forward(self, x):
        positions = x if x.requires_grad else x.detach().requires_grad_()
        forces, = torch.autograd.grad(self.inner(positions).sum(), positions, create_graph=True)
        return self.block(x + 0.1 * forces)


class ForceNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Forces() for _ in range(3))
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def once(model, k):
    loss = loss_of(model, k)
    loss.backward()
    return loss.item()


def penalty_of_the_input(model, k):
    x = batch(k, ROWS)[0].requires_grad_()
    loss = loss_of(model, k, x)
    gradient, = torch.autograd.grad(loss, x, create_graph=True)
    total = loss + 1000 * gradient.square().sum()
    total.backward()
    return total.item()


def penalty_of_parameters(model, k):
    loss = loss_of(model, k)
    gradients = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
    total = loss + 0.1 * sum(gradient.square().sum() for gradient in gradients)
    total.backward()
    return total.item()


def penalty_by_backward(model, k):
    loss = loss_of(model, k)
    loss.backward(create_graph=True)
    penalty = sum(parameter.grad.square().sum() for parameter in model.parameters())
    for parameter in model.parameters():
        parameter.grad = None
    (loss + 0.1 * penalty).backward()
    return penalty.item()


def penalty_behind_backward(model, k):
    x = batch(k, ROWS)[0].requires_grad_()
    loss = loss_of(model, k, x)
    loss.backward(retain_graph=True)
    gradient, = torch.autograd.grad(loss, x, create_graph=True)
    (1000 * gradient.square().sum()).backward()
    return loss.item()


def hessian_vector(model, k):
    loss = loss_of(model, k)
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(loss, parameters, create_graph=True)
    dot = sum((gradient * gradient.detach()).sum() for gradient in gradients)
    for parameter, product in zip(parameters, torch.autograd.grad(dot, parameters), strict=True):
        parameter.grad = product
    return dot.item()


def gradients_in_two_parts(model, k):
    loss = loss_of(model, k)
    parameters = list(model.parameters())
    first, second = parameters[:10], parameters[10:]
    gradients = [*torch.autograd.grad(loss, first, retain_graph=True), *torch.autograd.grad(loss, second)]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    return loss.item()


def backward_of_some_inputs(model, k):
    loss = loss_of(model, k)
    parameters = list(model.parameters())
    loss.backward(inputs=parameters[::2], retain_graph=True)
    loss.backward(inputs=parameters[1::2])
    return loss.item()


def gradients_of_the_head(model, k):
    loss = loss_of(model, k)
    for parameter, gradient in zip(model.head.parameters(), torch.autograd.grad(loss, list(model.head.parameters())),
                                   strict=True):
        parameter.grad = gradient
    return loss.item()


def backward_twice(model, k):
    loss = loss_of(model, k)
    loss.backward(retain_graph=True)
    loss.backward()
    return loss.item()


def two_losses(model, k):
    x, y = batch(k, ROWS)
    out = model(x)
    torch.nn.functional.cross_entropy(out, y).backward(retain_graph=True)
    out.square().mean().backward()
    return out.sum().item()


def gradient_edge(model, k):
    loss = loss_of(model, k)
    value, edge = loss.item(), get_gradient_edge(loss)
    del loss
    torch.autograd.backward((edge,), (torch.ones(()),))
    return value


def gradient_inside(model, k):
    x, y = batch(k, ROWS)
    middle = model.blocks[0](x)
    loss = torch.nn.functional.cross_entropy(model.head(model.blocks[1](middle)), y)
    gradient, = torch.autograd.grad(loss, middle, retain_graph=True)
    (loss * (1 + gradient.norm())).backward()
    return gradient.norm().item()


def fast_weights(model, k):
    parameters = dict(model.named_parameters())
    gradients = torch.autograd.grad(loss_of(model, k), list(parameters.values()), create_graph=True)
    fast = {name: each - 0.1 * gradient for (name, each), gradient in zip(parameters.items(), gradients, strict=True)}
    x, y = batch(k, ROWS)
    loss = torch.nn.functional.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
    loss.backward()
    return loss.item()


STEP_BODIES = [penalty_of_the_input, penalty_of_parameters, penalty_by_backward, penalty_behind_backward, hessian_vector,
               gradients_in_two_parts, backward_of_some_inputs, gradients_of_the_head, backward_twice, two_losses,
               gradient_edge, gradient_inside, fast_weights]
# That differentiate what ran again: their second graph holds what the recording had elsewhere.
LEAVE_CHECKPOINTS = {penalty_of_the_input, penalty_of_parameters, penalty_by_backward, penalty_behind_backward,
                     hessian_vector}
RUN_NOTHING_AGAIN = {gradients_of_the_head, fast_weights}


def whole(of_step):
    def body(model, optimizer, k):
        optimizer.zero_grad()
        result = of_step(model, k)
        optimizer.step()
        return result

    return body


def trained(of_step, make=net, **attach):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # create_graph makes a cycle; steps that leave their plan; what runs once
        return Loop(make, adamw, whole(of_step), **attach).steps(STEPS)


@pytest.mark.parametrize("policy", ["resident", "save_on_cpu", "checkpoint"])
@pytest.mark.parametrize("of_step", STEP_BODIES, ids=lambda body: body.__name__)
def test_a_recorded_step_has_the_plain_gradients(of_step, policy):
    if policy == "checkpoint" and of_step in RUN_NOTHING_AGAIN:
        with pytest.raises(stowage.BadInput, match="no layer of the recording can run again"):
            trained(of_step, policy=policy)
        return
    loop = trained(of_step, policy=policy)
    assert len(loop.reports) == STEPS - RECORDED
    leaves = policy == "checkpoint" and of_step in LEAVE_CHECKPOINTS
    assert [report.on_plan for report in loop.reports] == [not leaves] * len(loop.reports)
    loop.run.detach()
    assert_equal(trained(of_step), loop)


@pytest.mark.parametrize("policy", ["save_on_cpu", "checkpoint"])
def test_a_layer_with_a_backward_in_its_forward(policy):
    loop = trained(once, ForceNet, policy=policy)
    assert [report.on_plan for report in loop.reports] == [True] * (STEPS - RECORDED)
    loop.run.detach()
    assert_equal(trained(once, ForceNet), loop)


@pytest.mark.parametrize("policy", ["resident", "save_on_cpu", "checkpoint"])
@pytest.mark.parametrize("of_step", STEP_BODIES, ids=lambda body: body.__name__)
def test_a_step_that_was_not_recorded_so_has_them_or_raises(of_step, policy):
    def at_times(model, k):
        return of_step(model, k) if k == RECORDED + 1 else once(model, k)

    try:
        loop = trained(at_times, policy=policy)
    except RuntimeError as error:
        assert policy == "checkpoint"
        assert "what ran again did not save what backward asks for" in str(error) or "other parameters" in str(error)
        return
    assert len(loop.reports) == STEPS - RECORDED
    loop.run.detach()
    assert_equal(trained(at_times), loop)


def test_a_functional_call_of_other_parameters_is_never_run_again():
    loop = Loop(net, adamw, whole(fast_weights), budget="100%")
    with pytest.warns(stowage.StowageWarning, match="blocks.0.*tensor in the place of a parameter, which is there for"):
        loop.steps(RECORDED)
    assert not stowage.plan(loop.run.trace(), "1%", allow="recompute").plan.to_dict().get("segments")
    loop.run.detach()


def test_parameters_of_another_model_in_a_call_are_refused_where_it_would_run_again():
    other = dict(net().named_parameters())  # parameters, too: nothing tells these from the model's own

    def averaged(model, k):
        x, y = batch(k, ROWS)
        loss = loss_of(model, k) + torch.nn.functional.cross_entropy(torch.func.functional_call(model, other, (x,)), y)
        loss.backward()
        return loss.item()

    with pytest.raises(RuntimeError, match="blocks.[01] is to run again with other parameters or buffers .* deny recompute"):
        trained(averaged, policy="checkpoint")
    loop = trained(averaged, policy="save_on_cpu")
    loop.run.detach()
    assert_equal(trained(averaged), loop)


class Counts(torch.nn.Module):
    """Each call puts another buffer in the place of the one that it computed with; of two the second may lie where the
    first one of all did."""

    def __init__(self, times):
        super().__init__()
        self.times = times
        self.block = Block(64)
        self.register_buffer("calls", torch.ones(1))

    def forward(self, x):
        for _ in range(self.times):
            self.calls = self.calls * 0.9
        return self.block(x) * self.calls


class CountingNet(ForceNet):
    def __init__(self, times):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Counts(times), Block(64), Block(64)])


@pytest.mark.parametrize("times", [1, 2])
def test_a_layer_that_exchanges_its_buffers_is_never_run_again(times):
    def make():
        return CountingNet(times)

    loop = trained(once, make, policy="checkpoint")
    assert [report.on_plan for report in loop.reports] == [True] * (STEPS - RECORDED)
    loop.run.detach()
    plain = trained(once, make)
    assert_equal(plain, loop)
    assert torch.equal(loop.model.blocks[0].calls, plain.model.blocks[0].calls)


def test_buffers_of_a_call_alone_are_refused_where_it_would_run_again():
    def scaled(model, k):
        x, y = batch(k, ROWS)
        out = torch.func.functional_call(model, {"scale": torch.full((64,), 1.0 + k)}, (x,))
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        return loss.item()

    def make():
        made = net()
        made.register_buffer("scale", torch.ones(64))
        made.blocks[0].norm.register_buffer("scale", made.scale)
        made.blocks[0].register_forward_pre_hook(lambda _, given: (given[0] * made.blocks[0].norm.scale,))
        return made

    # The tied buffer is one of the first block's, too.
    with pytest.raises(RuntimeError, match="blocks.0 is to run again with other parameters or buffers"):
        trained(scaled, make, policy="checkpoint")
