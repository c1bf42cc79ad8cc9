"""Gradient x activation from Python: Captum's numbers, the same under a plan, at a peak as predicted."""

import pytest
import stowage
import torch
from data_parallel_case import Ranks, all_say
from training_case import FAST, RECORDED, Net, batch

WIDTH = 64


class Pair(torch.nn.Module):
    """Two tensors in, two out, one of which depends on the other."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(WIDTH, WIDTH) / 8)

    def forward(self, x, y):
        z = torch.tanh(x @ self.weight + y)
        return z, z * y


class Pairs(torch.nn.Module):
    """What a module is given is used elsewhere, too; called again it is another call."""

    def __init__(self, calls):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, WIDTH)
        self.pair = Pair()
        self.head = torch.nn.Linear(WIDTH, 10)
        self.calls = calls

    def forward(self, x):
        a = self.first(x)
        b = a.sin()
        residual = a
        for _ in range(self.calls):
            a, b = self.pair(a, b)
        return self.head(a + b + residual)


def net(make=Net):
    torch.manual_seed(0)
    return make().eval()


def captum(model, modules, x, target, **options):
    """By Captum, each result as a tuple of tensors."""
    attr = pytest.importorskip("captum.attr")
    method = attr.LayerGradientXActivation(model, [model.get_submodule(path) for path in modules])
    results = method.attribute(x, target=target, **options)
    return [result if isinstance(result, tuple) else (result,) for result in results]


def assert_close(ours, theirs):
    """Within 1e-6 of the largest element."""
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() <= 1e-6 * theirs.abs().max()


BLOCKS = [f"blocks.{k}" for k in range(4)]


@pytest.mark.parametrize("target", [3, [0, 1, 2, 3] * 4])
def test_is_captums(one_thread, target):
    model, x = net(), batch(0, 16)[0]
    ours = stowage.Attribution(model, BLOCKS)(x, target=target)
    assert list(ours) == BLOCKS
    for mine, (its,) in zip(ours.values(), captum(model, BLOCKS, x, target), strict=True):
        assert_close(mine, its.detach())


@pytest.mark.parametrize("of_input", [False, True])
def test_several_tensors_of_a_module_are_captums(one_thread, of_input):
    model, x = net(lambda: Pairs(1)), batch(0, 16)[0]
    ours = stowage.Attribution(model, [model.pair, "first"], attribute_to_layer_input=of_input)(x, target=1)
    theirs = captum(model, ["pair", "first"], x, 1, attribute_to_layer_input=of_input)
    assert list(ours) == ["first", "pair", "pair#1"]
    for mine, its in zip(ours.values(), [*theirs[1], *theirs[0]], strict=True):
        assert_close(mine, its.detach())


def test_each_call_of_a_module_has_its_own(one_thread):
    model, x = net(lambda: Pairs(2)), batch(0, 16)[0]
    ours = stowage.Attribution(model, ["pair"])(x, target=1)
    assert list(ours) == ["pair", "pair#1", "pair@1", "pair@1#1"]
    first = model.first(x)
    a, b = model.pair(first, first.sin())
    c, d = model.pair(a, b)
    tensors = (a, b, c, d)
    gradients = torch.autograd.grad(model.head(c + d + first)[:, 1].sum(), tensors)
    for mine, tensor, gradient in zip(ours.values(), tensors, gradients, strict=True):
        assert torch.equal(mine, tensor * gradient)


@pytest.mark.parametrize("budget", ["50%", "70%"])
def test_under_a_plan_it_is_the_same_bit_by_bit(one_thread, budget):
    plain = stowage.Attribution(net(), BLOCKS)
    with stowage.Attribution(net(), BLOCKS, budget, recording=FAST) as planned:
        for k in range(RECORDED + 4):
            x = batch(k)[0]
            theirs, ours = plain(x, target=2), planned(x, target=2)
            for name in theirs:
                assert torch.equal(ours[name], theirs[name]), (k, name)
        assert planned.run.is_planned
        report, predicted = planned.run.last_report(), planned.run.predicted()
        assert report.on_plan, report.first_difference
        assert report.peak_requested_bytes == predicted["peak_requested_bytes"]
        share = int(budget.rstrip("%")) / 100
        resident = stowage.simulate(planned.run.trace()).peak_requested_bytes
        assert report.peak_requested_bytes <= share * resident


@pytest.mark.parametrize("budget", [None, "60%"])
def test_integrated_it_is_captums(one_thread, budget):
    attr = pytest.importorskip("captum.attr")
    model, x = net(), batch(0, 64)[0]
    base = batch(1, 64)[0]
    planned = {} if budget is None else {"budget": budget, "recording": FAST}
    with stowage.Attribution(net(), ["blocks.1", "blocks.3"], **planned) as attribution:
        ours = attribution.integrate(x, baselines=(base,), n_steps=RECORDED + 4, target=3)
        if budget is not None:
            assert attribution.run.last_report().on_plan
    for path, mine in ours.items():
        method = attr.LayerIntegratedGradients(model, model.get_submodule(path))
        assert_close(mine, method.attribute(x, baselines=base, target=3, n_steps=RECORDED + 4).detach())


def _of_a_rank(budget):
    attribution = stowage.Attribution(net(), BLOCKS, budget, gather=True, recording=FAST)
    for k in range(RECORDED + 50):  # Gloo frees late at times, and such steps are no recording's
        part = batch(k, 64)[0].chunk(2)[torch.distributed.get_rank()]
        result = attribution(part, target=3)
        report = attribution.run.last_report()
        if all_say(report is not None):
            break
    assert report.on_plan and report.peak_requested_bytes == attribution.run.predicted()["peak_requested_bytes"]
    attribution.detach()
    return k, {name: tensor.numpy() for name, tensor in result.items()}


def test_parts_of_a_batch_are_gathered_in_order(one_thread):
    with Ranks(2) as ranks:
        results = ranks.run(_of_a_rank, "60%")
    plain = stowage.Attribution(net(), BLOCKS)
    for k, result in results:
        parts = [plain(part, target=3) for part in batch(k, 64)[0].chunk(2)]
        for name in BLOCKS:
            assert torch.equal(torch.from_numpy(result[name]), torch.cat([part[name] for part in parts])), name


def test_leaves_the_model_as_it_was(one_thread):
    model = net()
    model.head.weight.requires_grad_(False)
    attribution = stowage.Attribution(model, ["blocks.1"])
    attribution(batch(0, 4)[0], target=0)
    assert [name for name, each in model.named_parameters() if not each.requires_grad] == ["head.weight"]
    assert all(each.grad is None for each in model.parameters())
    assert not model.blocks[1]._forward_hooks
    with pytest.raises(RuntimeError, match="depends on none of the attributed modules"):
        attribution(batch(0, 4)[0], score=lambda output: output.detach())
    assert not model.blocks[1]._forward_hooks
    attribution(batch(0, 4)[0], target=0)  # and the next one is clean


class Routed(torch.nn.Module):
    """One of two layers, by the batch."""

    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return (self.left if x.sum() > 0 else self.right)(x)


def test_a_module_that_a_call_does_not_reach_is_an_error_not_the_last_calls_result(one_thread):
    attribution = stowage.Attribution(Routed(), ["left"])
    x = batch(0, 4)[0].abs()
    assert set(attribution(x)) == {"left"}
    with pytest.raises(RuntimeError, match="does not depend on left: this call did not reach it"):
        attribution(-x)
    with pytest.raises(RuntimeError, match="does not depend on left"):
        attribution.integrate(x, baselines=(-x,), n_steps=2)
    assert set(attribution(x)) == {"left"}


class Mean(torch.nn.Module):
    def forward(self, x):
        return x.mean()


def _scalar_of_a_rank():
    attribution = stowage.Attribution(torch.nn.Sequential(Mean()), ["0"], gather=True)
    return attribution(torch.full((3,), 4.0 + 2.0 * torch.distributed.get_rank()))["0"].numpy()


def test_a_scalar_of_each_rank_is_a_row(one_thread):
    with Ranks(2) as ranks:
        results = ranks.run(_scalar_of_a_rank)
    for result in results:
        assert result.shape == (2,)
        assert result.tolist() == [4.0, 6.0]


def test_says_what_is_no_module(one_thread):
    with pytest.raises(stowage.UsageError, match="no module 'block.1'"):
        stowage.Attribution(net(), ["block.1"])
    with pytest.raises(stowage.UsageError, match="no module is to be attributed"):
        stowage.Attribution(net(), [])
    with pytest.raises(stowage.UsageError, match="two things"):
        stowage.Attribution(net(), BLOCKS)(batch(0, 4)[0], target=1, score=torch.sum)


def test_what_is_held_leaves_under_a_plan(one_thread):
    """A step keeps a large tensor from forward's begin to backward's end; the plan has it on the host meanwhile."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step(k):
        optimizer.zero_grad()
        x = batch(k, 2048)[0]
        kept = stowage.hold(torch.exp(x))
        loss = model(x).square().mean()
        del x
        loss.backward()
        total = kept.get().sum().item()
        optimizer.step()
        return total, loss.item()

    def leaves(saved):
        return "offload" if saved.site.startswith("step#") and saved.bytes == 4 * 2048 * WIDTH else "keep"

    with stowage.attach(model, optimizer, policy=leaves, recording=FAST) as run:
        for k in range(RECORDED + 3):
            with run.step():
                total, _ = step(k)
            assert total == torch.exp(batch(k, 2048)[0]).sum().item()
        assert run.last_report().offloaded_bytes >= 4 * 2048 * WIDTH
        assert run.last_report().on_plan
    assert torch.equal(stowage.hold(torch.ones(3)).get(), torch.ones(3))  # outside of a step it stays
