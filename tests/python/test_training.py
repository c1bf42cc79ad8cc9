"""Training under a plan: the same bits as without one, at the predicted byte, and nothing of Python's is other."""

import contextlib
import copy
import gc
import json
import pickle
import re
import warnings

import pytest
import stowage
import torch
from torch.autograd.variable import Variable
from torch.utils.checkpoint import checkpoint

from training_case import FAST, RECORDED, Loop, Net, adamw, assert_as_predicted, assert_equal, batch, loss_of, plain_body

STEPS = RECORDED + 5


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def recorded():
    """The loop's recording, made where nothing else of its size lives."""
    loop = Loop(Net, adamw, plain_body, budget="100%").steps(RECORDED)
    loop.run.detach()
    return loop.run.trace()


def plain(body=plain_body, make=Net, optimizer=adamw, steps=STEPS):
    return Loop(make, optimizer, body).steps(steps)


def planned(body=plain_body, make=Net, optimizer=adamw, steps=STEPS, **attach):
    return Loop(make, optimizer, body, **({"budget": "60%"} | attach)).steps(steps)


@pytest.mark.parametrize("optimizer", [
    adamw,
    lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: torch.optim.Adam(p, lr=1e-3, foreach=True),
    lambda p: torch.optim.RMSprop(p, lr=1e-3),
], ids=["adamw", "sgd-momentum", "adam-foreach", "rmsprop"])
def test_losses_parameters_and_state_are_those_of_the_plain_loop(optimizer):
    loop = planned(optimizer=optimizer)
    assert loop.run.is_planned
    assert loop.run.outcome().plan.placement == "caching"
    loop.run.detach()
    assert_equal(plain(optimizer=optimizer), loop)


@pytest.mark.parametrize("decisions", ["offload", "recompute", "params", "optimizer", "gradients"])
def test_each_kind_of_decision_at_its_tightest(decisions, recorded):
    allowed = stowage.plan(recorded, "1%", allow=decisions)
    assert not allowed.feasible
    budget = "75%" if decisions == "recompute" else allowed.kept_from_bytes
    tightest = stowage.plan(recorded, budget, allow=decisions).plan_or_raise()
    loop = planned(trace=recorded, plan=tightest)
    assert_as_predicted(loop, skip=1)  # the first makes state and has no gradients to begin with
    assert loop.run.predicted()["peak_requested_bytes"] < allowed.resident["peak_requested_bytes"]
    loop.run.detach()
    assert_equal(plain(), loop)


def test_a_filter_says_which_saved_tensors_leave():
    asked = []

    def of_first_blocks(saved):
        asked.append(saved)
        return saved.layer in ("blocks.0", "blocks.1")

    loop = planned(budget="88%", allow=of_first_blocks)
    assert asked and loop.run.outcome().feasible
    moved = [row["site"] for row in loop.run.plan().to_dict()["saved"] if row["do"] != "keep"]
    assert moved and all(re.match(r"blocks\.(0|1|\[0-1\])#", site) for site in moved)
    assert_as_predicted(loop)
    loop.run.detach()
    assert_equal(plain(), loop)


def test_a_given_trace_and_a_given_plan_need_no_recording(recorded):
    outcome = stowage.plan(recorded, "60%")
    trace, plan = recorded, outcome.plan_or_raise()
    loop = planned(trace=trace, plan=plan)
    assert len(loop.reports) in (STEPS - 1, STEPS)  # one less where the plan moves optimizer state
    assert_as_predicted(loop, skip=1)  # the first makes state and has no gradients to begin with
    loop.run.detach()
    assert_equal(plain(), loop)
    with pytest.raises(ValueError, match="trace that it was made of"):
        stowage.attach(Net(), None, plan=plan)


def test_the_users_own_hooks_on_saved_tensors_win():
    packed = []

    def body(model, optimizer, k):
        optimizer.zero_grad()
        x, y = batch(k)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(1) or t.clone(), lambda t: t):
            x = model.blocks[0](x)
        for block in model.blocks[1:]:
            x = block(x)
        loss = torch.nn.functional.cross_entropy(model.head(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    reference = plain(body)
    a_loop = len(packed)
    loop = planned(body, budget="85%")
    assert len(packed) == 2 * a_loop
    assert_as_predicted(loop)
    loop.run.detach()
    assert_equal(reference, loop)


def test_what_the_next_step_still_holds_has_two_places():
    """In planned memory, which is a GPU's default and can be had here."""
    held = {}

    def body(model, optimizer, k):
        x, y = batch(k)
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        held.update(loss=loss.detach(), out=out.detach())  # those of the step before go here
        return loss.item()

    reference = plain(body)
    loop = Loop(Net, adamw, body, budget="70%").steps(RECORDED)
    loop.run.detach()
    content = json.loads(loop.run.outcome().plan_or_raise().to_json())
    content["placement"] = "planned"
    trace = loop.run.trace()
    del loop
    held.clear()
    gc.collect()
    loop = planned(body, trace=trace, plan=stowage.Plan.from_json(json.dumps(content)))
    memory = loop.run.planned_memory()
    assert memory["served"] > 0
    assert (memory["conflicts"], memory["unforeseen"]) == (0, 0), memory["surprises"]
    loop.run.detach()
    assert_equal(reference, loop)


def test_gradients_that_are_there_when_a_plan_begins_are_let_go(recorded):
    """The body drops those of the step before within the step."""
    plan = stowage.plan(recorded, "70%").plan_or_raise().to_dict() | {"placement": "planned"}
    loop = Loop(Net, adamw, plain_body).steps(2)
    assert all(parameter.grad is not None for parameter in loop.model.parameters())
    loop.run = stowage.attach(loop.model, loop.optimizer, trace=recorded, plan=stowage.Plan.from_dict(plan))
    loop.steps(STEPS)
    assert_as_predicted(loop, skip=1)
    assert loop.run.planned_memory()["conflicts"] == 0


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpointing_of_pytorchs_goes_on_beside_it(reentrant):
    runs = []

    def body(model, optimizer, k):
        optimizer.zero_grad()
        x, y = batch(k)
        x = model.blocks[0](x)
        for block in model.blocks[1:3]:
            x = checkpoint(lambda x, block=block: runs.append(1) or block(x), x, use_reentrant=reentrant)
        loss = torch.nn.functional.cross_entropy(model.head(model.blocks[3](x)), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    reference = plain(body)
    a_loop = len(runs)
    assert a_loop == 2 * 2 * STEPS
    loop = planned(body, budget="80%")
    assert len(runs) == 2 * a_loop
    assert_as_predicted(loop)
    loop.run.detach()
    assert_equal(reference, loop)


def test_autocast():
    def body(model, optimizer, k):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(model, k)
        loss.backward()
        optimizer.step()
        return loss.item()

    loop = planned(body, budget="75%")
    assert_as_predicted(loop)
    assert loop.run.trace().to_json().find(b'"autocast":"bf16"') > 0
    loop.run.detach()
    assert_equal(plain(body), loop)


def test_a_gradient_scaler_that_skips_updates():
    def make_body():
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=10_000)

        def body(model, optimizer, k):
            optimizer.zero_grad()
            loss = loss_of(model, k)
            scaler.scale(loss).backward()
            if k in (RECORDED + 1, RECORDED + 3):
                model.head.bias.grad[0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
            return (loss.item(), scaler.get_scale())

        return body

    reference = plain(make_body())
    assert reference.results[-1][1] == 4.0
    loop = planned(make_body(), budget="75%", deny="gradients")
    assert [report.on_plan for report in loop.reports] == [True] * 5
    loop.run.detach()
    assert_equal(reference, loop)


def test_accumulation_of_two_parts():
    def body(model, optimizer, k):
        optimizer.zero_grad()
        losses = []
        for part in range(2):
            loss = loss_of(model, 2 * k + part) / 2
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        return losses

    loop = planned(body)
    assert_as_predicted(loop)
    loop.run.detach()
    assert_equal(plain(body), loop)


@pytest.mark.parametrize("attach", [{"budget": "60%"}, {"policy": "zero_offload"}], ids=["auto", "zero_offload"])
def test_steps_of_other_shapes_have_plans_of_their_own(attach):
    sizes = [512, 384]

    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = loss_of(model, k, sizes[k % 2])
        loss.backward()
        optimizer.step()
        return loss.item()

    steps = 2 * (RECORDED + 4)
    loop = Loop(Net, adamw, body, **attach)
    for k in range(steps):
        loop.step(k, key=sizes[k % 2])
    for size in sizes:
        report = loop.run.last_report(size)
        assert report.on_plan
        assert report.peak_requested_bytes == loop.run.predicted(size)["peak_requested_bytes"]
    loop.run.detach()
    assert_equal(plain(body, steps=steps), loop)


def test_two_models_in_turn():
    a = Loop(Net, adamw, plain_body, budget="60%")
    b = Loop(lambda: Net(blocks=3), adamw, plain_body, budget="70%")
    for k in range(STEPS):
        # The generator of dropout is one for both.
        torch.manual_seed(k)
        a.step(k)
        b.step(k)
    assert all(report.on_plan for report in a.reports + b.reports)
    a.run.detach()
    b.run.detach()
    alone = [Loop(Net, adamw, plain_body), Loop(lambda: Net(blocks=3), adamw, plain_body)]
    for k in range(STEPS):
        torch.manual_seed(k)
        for loop in alone:
            loop.step(k)
    assert_equal(alone[0], a)
    assert_equal(alone[1], b)


def test_a_step_that_is_another_one_is_right_and_said():
    def body(model, optimizer, k):
        optimizer.zero_grad()
        x, y = batch(k)
        for block in model.blocks[:2] if k == STEPS - 2 else model.blocks:
            x = block(x)
        loss = torch.nn.functional.cross_entropy(model.head(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    with pytest.warns(stowage.StowageWarning, match="left the plan"):
        loop = planned(body, deny="recompute")
    assert [report.on_plan for report in loop.reports] == [True, True, True, False, True]
    loop.run.detach()
    assert_equal(plain(body), loop)


@pytest.mark.parametrize("at", [3, RECORDED + 2])
@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_exception_ends_its_step_alone(at, where):
    class Interrupt(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, active):
            ctx.active = active
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            if ctx.active:
                raise KeyboardInterrupt
            return gradient, None

    failing = []

    def body(model, optimizer, k):
        optimizer.zero_grad()
        x, y = batch(k)
        fails = k == at and not failing
        x = model.blocks[1](model.blocks[0](x))
        x = Interrupt.apply(x, fails and where == "backward")
        if fails:
            failing.append(k)
        if fails and where == "forward":
            raise KeyboardInterrupt
        loss = torch.nn.functional.cross_entropy(model.head(model.blocks[3](model.blocks[2](x))), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    def loop_of(**attach):
        failing.clear()
        loop = Loop(Net, adamw, body, **attach)
        for k in range(at + RECORDED + 4):
            with contextlib.suppress(KeyboardInterrupt):
                loop.step(k)
            if len(loop.results) == k:
                loop.step(k)  # again
        assert failing == [at]
        return loop

    loop = loop_of(budget="60%")
    assert_as_predicted(loop, skip=1 if at > RECORDED else 0)
    loop.run.detach()
    assert_equal(loop_of(), loop)


def test_everything_is_there_between_steps_when_asked_for():
    reference = plain()
    loop = planned()
    with loop.run.materialised() as model:
        state = copy.deepcopy(model.state_dict())
        copied = pickle.loads(pickle.dumps(model))
    for (name, a), b in zip(reference.model.state_dict().items(), state.values(), strict=True):
        assert torch.equal(a, b), name
    x, _ = batch(0)
    assert torch.equal(copied.eval()(x), reference.model.eval()(x))
    loop.model.train()
    loop.step(STEPS)
    reference.model.train()
    torch.manual_seed(2)
    assert loop.reports[-1].on_plan


def test_nothing_of_pythons_is_other_outside_of_steps():
    engine = Variable._execution_engine
    model = Net()
    optimizer = adamw(model.parameters())
    run = stowage.attach(model, optimizer, "60%", recording=FAST)
    forwards = {name: module.forward for name, module in model.named_modules()}
    with run.step():
        assert model.blocks[0].forward != forwards["blocks.0"]
        plain_body(model, optimizer, 0)
    assert all("forward" not in module.__dict__ for module in model.modules())
    assert not optimizer._optimizer_step_pre_hooks and not optimizer._optimizer_step_post_hooks
    pickle.dumps(model)
    copy.deepcopy(model)
    run.detach()
    assert type(Variable._execution_engine) is type(engine)
    with pytest.raises(stowage.UsageError, match="detached"):
        with run.step():
            pass


def test_the_users_hooks_of_the_optimizer_run_once_and_see_all_parameters():
    seen = []
    loop = Loop(Net, adamw, plain_body, budget="60%")
    count = len(list(loop.model.parameters()))
    loop.optimizer.register_step_pre_hook(
        lambda o, *_: seen.append(("pre", sum(len(g["params"]) for g in o.param_groups))))
    loop.optimizer.register_step_post_hook(
        lambda o, *_: seen.append(("post", sum(len(g["params"]) for g in o.param_groups))))
    scheduler = torch.optim.lr_scheduler.StepLR(loop.optimizer, 1, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for k in range(STEPS):
            loop.step(k)
            scheduler.step()
    assert seen == [("pre", count), ("post", count)] * STEPS
    loop.run.detach()


def test_a_budget_that_nothing_keeps_is_said():
    loop = Loop(Net, adamw, plain_body, budget="1%")
    with pytest.raises(stowage.Infeasible, match="floor"):
        loop.steps(STEPS)
    loop.run.detach()


def test_a_loop_whose_steps_differ_cannot_be_recorded():
    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = loss_of(model, k, 512 + k)
        loss.backward()
        optimizer.step()
        return loss.item()

    loop = Loop(Net, adamw, body, budget="60%")
    with pytest.raises(stowage.BadInput, match="two steps peaked at") as raised:
        loop.steps(STEPS)
    assert "torch.set_num_threads(1)" in raised.value.hint
    loop.run.detach()


def test_arguments_that_do_not_go_together():
    with pytest.raises(ValueError, match="a budget, fit, a policy or a plan"):
        stowage.attach(Net(), None)
    with pytest.raises(NotImplementedError, match="meta"):
        stowage.attach(Net().to("meta"), None, "60%")
    for wrong, said in [({"budget": "60 percent"}, 'budget: .*did you mean "60%"'), ({"budget": 0.6}, 'did you mean "60%"'),
                        ({"fit": "80 gigs"}, 'fit: .*did you mean "80GB"'), ({"budget": "60%", "deny": "recompte"}, "recompute"),
                        ({"policy": "torchtun"}, "did you mean torchtune"), ({"policy": "auto", "plan": None}, "a budget")]:
        with pytest.raises(stowage.UsageError, match=said):  # ahead of any step
            stowage.attach(Net(), None, **wrong)
    run = stowage.attach(Net(), None, "60%", recording=FAST)
    with run.step():
        with pytest.raises(stowage.UsageError, match="running already"):
            with run.step():
                pass
        with pytest.raises(stowage.UsageError, match="within a step"):
            run.detach()
    run.detach()


class Gathers(torch.nn.Module):
    """Puts its result into a list of the caller's; two arguments may be one tensor."""

    def __init__(self):
        super().__init__()
        self.same = torch.nn.Linear(64, 64)
        self.other = torch.nn.Linear(64, 64)

    def forward(self, x, y, found):
        result = torch.tanh(self.same(x)) if x is y else torch.tanh(self.other(x) + y)
        found.append(result)
        return result, result


class GathersTwice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Gathers() for _ in range(4))

    def forward(self, x):
        found = []
        for block in self.blocks:
            a, b = block(x, x, found)
            x = a * b
        assert len(found) == 4
        return x + sum(found)


@pytest.mark.parametrize("attach", [{"policy": "checkpoint:every=1"}, {"budget": "75%"}], ids=["checkpoint", "auto"])
def test_a_layer_is_given_the_callers_own_objects(attach):
    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = model(batch(k)[0]).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    loop = Loop(GathersTwice, adamw, body, **attach).steps(STEPS)
    assert loop.run.last_report().on_plan
    loop.run.detach()
    assert_equal(plain(body, make=GathersTwice), loop)


def test_what_runs_again_and_saves_something_else_is_refused():
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(64, 64)
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            rows = x[: 300 + self.calls % 2]  # a call and the one behind it are not alike
            return torch.cat([torch.tanh(self.linear(rows)), x[rows.shape[0]:]])

    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = model(batch(k)[0]).square().mean()
        loss.backward()
        optimizer.step()
        # The same in each step, unless it ran again.
        for block in model:
            block.calls = 0
        return loss.item()

    loop = Loop(lambda: torch.nn.Sequential(*(Counts() for _ in range(3))), adamw, body, policy="checkpoint:every=1")
    with pytest.raises(RuntimeError, match=r"layer \d ran again and saved something else"):
        loop.steps(STEPS)
    loop.run.detach()


def test_a_subclass_of_an_optimizer_has_its_own_step():
    class Normalized(torch.optim.AdamW):
        """Sees all gradients at once."""

        def step(self, closure=None):
            norm = sum(p.grad.square().sum() for group in self.param_groups for p in group["params"]).sqrt()
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.grad.div_(norm)
            return super().step(closure)

    def make(parameters):
        return Normalized(parameters, lr=1e-3)

    loop = planned(optimizer=make, budget="75%")
    assert loop.run.last_report().on_plan
    loop.run.detach()
    assert_equal(plain(optimizer=make), loop)


def test_a_copy_made_within_a_step_is_a_model_of_its_own():
    model = Net().eval()
    optimizer = adamw(model.parameters())
    run = stowage.attach(model, optimizer, "60%", recording=FAST)
    x, _ = batch(0)
    with run.step():
        copied = copy.deepcopy(model)
        pickled = pickle.loads(pickle.dumps(model))
    run.detach()
    expected = model(x)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert torch.equal(copied(x), expected)
    assert torch.equal(pickled(x), expected)


def test_what_an_interrupt_leaves_is_put_right():
    loop = planned(steps=2)
    count = len(list(loop.model.parameters()))
    calls, updates = loop.run._calls, loop.run._updates
    # As an interrupt within the contexts' own lines would leave it.
    calls.__enter__()
    updates.__enter__()
    loop.steps(STEPS)
    assert [len(group["params"]) for group in loop.optimizer.param_groups] == [count]
    calls.__enter__()
    updates.__enter__()
    loop.run.detach()
    assert all("forward" not in module.__dict__ for module in loop.model.modules())
    assert not loop.optimizer._optimizer_step_pre_hooks and not loop.optimizer._optimizer_step_post_hooks


def test_a_hook_that_comes_within_a_step_is_refused_and_an_update_that_raises_leaves_nothing():
    model = Net()
    optimizer = adamw(model.parameters())
    run = stowage.attach(model, optimizer, "60%", recording=FAST)
    count = len(list(model.parameters()))
    with run.step():
        loss_of(model, 0).backward()
        hook = optimizer.register_step_pre_hook(lambda *_: None)
        with pytest.raises(stowage.UsageError, match="registered within a step"):
            optimizer.step()
        hook.remove()
        next(reversed(list(model.parameters()))).grad = torch.zeros(10).to_sparse()
        with pytest.raises(RuntimeError, match="sparse"):
            optimizer.step()
        assert [len(group["params"]) for group in optimizer.param_groups] == [count]
    run.detach()


class Rows(torch.nn.Sequential):
    """Of a table whose gradient is sparse."""

    def __init__(self):
        super().__init__(torch.nn.Embedding(50, 64, sparse=True), torch.nn.Linear(64, 256), torch.nn.ReLU(),
                         torch.nn.Linear(256, 4))


def test_an_optimizers_state_may_be_sparse():
    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = model(torch.arange(40)).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    def loop(**attach):
        return Loop(Rows, lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), body, **attach).steps(STEPS)

    reference, planned_loop = loop(), loop(budget="90%")
    assert planned_loop.run.is_planned
    assert planned_loop.optimizer.state[planned_loop.model[0].weight]["momentum_buffer"].is_sparse
    planned_loop.run.detach()
    assert planned_loop.results == reference.results
    for a, b in zip(reference.model.parameters(), planned_loop.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_run_that_is_dropped_leaves_its_plan():
    loop = planned(budget="60%")
    reference = [parameter.detach().clone() for parameter in plain().model.parameters()]
    loop.run = None
    gc.collect()
    for a, b in zip(reference, loop.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert type(Variable._execution_engine) is torch._C._ImperativeEngine


def test_recordings_that_are_too_short_and_keywords_that_are_none():
    with pytest.raises(stowage.UsageError, match="records too little"):
        stowage.Recording(0, 0, 0)
    with pytest.raises(TypeError, match="'foo'"):
        stowage.attach(Net(), None, "60%", foo=1)
    run = stowage.attach(Net(), None, "60%")
    with pytest.raises(stowage.UsageError, match="no step"):
        run.report()
    run.detach()


@pytest.mark.parametrize("attach", [{"budget": "60%"}, {"budget": "60%", "placement": "planned"},
                                    {"budget": "85%", "allow": "optimizer,offload"}], ids=["caching", "planned", "state"])
def test_state_that_is_loaded_between_steps_is_the_plans(attach):
    def train(**attach):
        loop = Loop(Net, adamw, plain_body, **attach).steps(RECORDED + 2)
        with loop.run.materialised() if loop.run is not None else contextlib.nullcontext():
            saved = copy.deepcopy(loop.optimizer.state_dict())
            for piece in saved["state"].values():
                piece["exp_avg"].mul_(0.5)
            loop.optimizer.load_state_dict(saved)
        for k in range(RECORDED + 2, RECORDED + 6):
            loop.step(k)
        return loop

    loop = train(**attach)
    for report in loop.reports:
        assert report.on_plan, report.first_difference
    assert loop.reports[-1].peak_requested_bytes == loop.run.predicted()["peak_requested_bytes"]
    loop.run.detach()
    assert_equal(train(), loop)


def updates_of(run):
    """Of the recorded step: how many the trace tells of."""
    trace = json.loads(run.trace().to_json())
    return trace["events"]["kind"].count(trace["legend"]["event_kind"].index("parameter_update_begin"))


# What a run does at first on a GPU.
def test_updates_are_divided_where_a_budget_needs_it():
    whole = Loop(Net, adamw, plain_body, budget="100%").steps(RECORDED)
    floor = whole.run.outcome().kept_from_bytes
    whole.run.detach()
    del whole
    gc.collect()  # its tensors count

    def together(budget):
        loop = Loop(Net, adamw, plain_body, budget=budget)
        loop.run._divides_at_first = False
        return loop

    enough = together("90%").steps(RECORDED + 2)
    assert_as_predicted(enough)
    assert not updates_of(enough.run)
    enough.run.detach()
    del enough
    gc.collect()
    with pytest.warns(stowage.StowageWarning, match="recorded again"):
        tight = together(int(1.05 * floor)).steps(2 * RECORDED + 2)
    assert_as_predicted(tight)
    assert updates_of(tight.run)
    tight.run.detach()
    assert_equal(Loop(Net, adamw, plain_body).steps(2 * RECORDED + 2), tight)


class Carried(torch.nn.Module):
    """Blocks that hand on what they were given: ``kind`` says how."""

    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.carriers = torch.nn.ModuleList(Carrier(kind) for _ in range(3))
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        own = kept = {"list": [], "twice": [], "dict": {"sum": 0}}[self.kind]
        for carrier in self.carriers:
            x, kept = carrier(x, kept, kept) if self.kind == "twice" else carrier(x, kept)
        return self.head(x + (own["sum"] if self.kind == "dict" else 0.1 * sum(own)))


class Carrier(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.block = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU())
        self.kind = kind

    def forward(self, x, kept, again=None):
        y = self.block(x)
        if self.kind == "dict":
            kept["sum"] = kept["sum"] + y
            return y, kept
        kept.append(y)
        return torch.sin(again[-1]) * x if again is not None else y, kept


@pytest.mark.parametrize("kind", ["list", "twice", "dict"])
def test_a_layers_results_are_its_own_objects(kind):
    """What it was given and returns is the caller's still, and one object under two names stays one."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", stowage.StowageWarning)
        planned = Loop(lambda: Carried(kind), adamw, plain_body, policy="checkpoint").steps(STEPS)
    assert_as_predicted(planned)
    again = str(planned.run.plan().to_dict()["recompute"])
    assert "carriers.[0-2].block'" in again
    warned = [str(each.message) for each in said if "list or dict twice" in str(each.message)]
    assert len(warned) == (1 if kind == "twice" else 0)
    planned.run.detach()
    assert_equal(Loop(lambda: Carried(kind), adamw, plain_body).steps(STEPS), planned)


def test_layers_of_a_model_that_is_a_list_are_its_elements():
    def block():
        return torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU()), torch.nn.LayerNorm(64))

    torch.manual_seed(0)
    model = torch.nn.Sequential(block(), block(), torch.nn.Linear(64, 10))
    with stowage.attach(model, None, "100%", recording=FAST) as run:
        for k in range(RECORDED):
            with run.step():
                loss_of(model, k).backward()
                for parameter in model.parameters():
                    parameter.grad = None
        assert {layer["name"] for layer in run.trace().layers} >= {"0", "0.0", "1", "1.0", "2"}


def test_state_that_changes_its_tensors_gets_a_new_plan():
    """An optimizer may keep other things than state of parameters, and None where a tensor will be."""

    class Keeper(torch.optim.SGD):
        pass

    torch.manual_seed(0)
    model = Net()
    optimizer = Keeper(model.parameters(), lr=0.01)
    optimizer.state["note"] = 0
    model.register_buffer("later", None)
    with stowage.attach(model, optimizer, "80%", recording=FAST) as run:
        for k in range(RECORDED + 2):
            with run.step():
                plain_body(model, optimizer, k)
        assert run.last_report().on_plan
        planned = run._keyed[None].planned
        with run.step():
            plain_body(model, optimizer, 0)
        assert run._keyed[None].planned is planned
        model.later = torch.ones(3)
        with run.step():
            plain_body(model, optimizer, 0)
        assert run._keyed[None].planned is not planned
