"""`python -m stowage run`: scripts that know nothing of Stowage do what they do without it."""

import json
import subprocess
import sys

import pytest
import stowage
import torch
from stowage._script_loop import ScriptLoop
from stowage._training_calls import TrainingCalls
from training_case import FAST, RECORDED, Net, adamw, batch, loss_of

STEPS = 1 + RECORDED + 5  # the loop is found in the first one

SCRIPT = """
import sys
import torch

torch.set_num_threads(1)
torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(4)]
model = torch.nn.Sequential(*blocks)
optimizer = torch.optim.AdamW(model.parameters())
for k in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = model(torch.randn(512, 64)).square().mean()
    loss.backward()
    optimizer.step()
    print(k, loss.item())
if sys.argv[2] == "exit":
    sys.exit(7)
if sys.argv[2] == "raise":
    raise ValueError("of the script's own")
print(__name__, sys.argv, [parameter.double().sum().item() for parameter in model.parameters()])
"""


pytestmark = pytest.mark.usefixtures("one_thread")


class Trained:
    """What came of ``script(model, optimizer)``, which yields what it computes, watched or (no budget) plain."""

    def __init__(self, script, budget=None, by_shape=False, make=Net, optimizer=adamw, **planning):
        torch.manual_seed(0)
        model = make()
        made = optimizer(model.parameters())
        torch.manual_seed(1)
        self.said = []
        if budget is None:
            self.results = list(script(model, made))
        else:
            self.loop = ScriptLoop(budget, by_shape, {"recording": FAST, **planning}, self.said.append)
            with TrainingCalls(self.loop):
                self.results = list(script(model, made))
            self.report = self.loop.finish(None)
        self.results.append([parameter.detach().clone() for parameter in model.parameters()])

    def is_same(self, other):
        return self.results[:-1] == other.results[:-1] and all(map(torch.equal, self.results[-1], other.results[-1]))


def zero_grad_ahead(model, optimizer):
    for k in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, k)
        loss.backward()
        optimizer.step()
        yield loss.item()


def zero_grad_behind(model, optimizer):
    for k in range(STEPS):
        loss = loss_of(model, k)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        yield loss.item()


def zero_grad_of_the_model(model, optimizer):
    for k in range(STEPS):
        loss = loss_of(model, k)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        yield loss.item()


def gradients_dropped_by_hand(model, optimizer):
    for k in range(STEPS):
        loss = loss_of(model, k)
        loss.backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None
        yield loss.item()


def accumulation(model, optimizer):
    optimizer.zero_grad()
    for k in range(2 * STEPS):
        loss = loss_of(model, k) / 2
        loss.backward()
        if k % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
        yield loss.item()


def parts_are_called(model, optimizer):
    for k in range(STEPS):
        optimizer.zero_grad()
        x, y = batch(k)
        for block in model.blocks:
            x = block(x)
        loss = torch.nn.functional.cross_entropy(model.head(x), y)
        loss.backward()
        optimizer.step()
        yield loss.item()


def scheduler(model, optimizer):
    rate = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    yield from ((loss, rate.step()) for loss in zero_grad_behind(model, optimizer))


def loader():
    return torch.utils.data.DataLoader(torch.cat([batch(k)[0] for k in range(STEPS)]), batch_size=512, shuffle=True)


def batches_ahead_of_zero_grad(model, optimizer):
    for x in loader():
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


def batches_behind_zero_grad(model, optimizer):
    optimizer.zero_grad()
    for x in loader():
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            yield loss.item(), model(batch(0)[0]).square().mean().item()


@pytest.mark.parametrize("script, begin, end", [
    (zero_grad_ahead, "zero_grad()", "step()"),
    (zero_grad_behind, "forward", "zero_grad()"),
    (zero_grad_of_the_model, "forward", "zero_grad()"),
    (gradients_dropped_by_hand, "forward", "step()"),
    (accumulation, "zero_grad()", "step()"),
    (parts_are_called, "zero_grad()", "step()"),
    (scheduler, "forward", "zero_grad()"),
    (batches_ahead_of_zero_grad, "zero_grad()", "step()"),
    (batches_behind_zero_grad, "forward", "zero_grad()"),
])
def test_a_loop_is_found_and_trains_the_same(script, begin, end):
    planned = Trained(script, "60%")
    assert planned.said == [f"a step of Net with AdamW goes from {begin} to {end}; the next ones are recorded"]
    report = planned.loop.run.last_report()
    assert report.on_plan, report.first_difference
    assert "Peak requested {0:,} bytes, predicted {0:,}.".format(report.peak_requested_bytes) in planned.report
    outcome = planned.loop.run.outcome()
    assert report.peak_requested_bytes <= outcome.budget_bytes < outcome.resident["peak_requested_bytes"]
    assert planned.report.startswith("5 planned steps, 0 of them off the plan.")
    assert planned.is_same(Trained(script))


def test_evaluations_and_checkpoints_find_everything_there(tmp_path):
    def script(model, optimizer):
        for k, loss in enumerate(zero_grad_behind(model, optimizer)):
            yield loss
            if k % 3 == 2:
                with torch.no_grad():
                    yield loss_of(model.eval(), 100).item()
                model.train()
            if k % 4 == 3:
                torch.save(model.state_dict(), tmp_path / "m.pt")
                torch.save(optimizer.state_dict(), tmp_path / "o.pt")
                model.load_state_dict(torch.load(tmp_path / "m.pt"))
                if k > RECORDED:  # other tensors are the state then, which a recording could not go on with
                    optimizer.load_state_dict(torch.load(tmp_path / "o.pt"))
                yield sum(piece.double().sum().item() for piece in model.state_dict().values())
            if k % 5 == 4:
                with torch.no_grad():
                    yield [parameter.norm().item() for parameter in model.parameters()]

    planned = Trained(script, "100%", policy="layerwise")  # it streams on every machine
    assert planned.loop.run.plan().to_dict()["parameters"]
    assert planned.is_same(Trained(script))


def test_each_shape_has_a_plan_of_its_own():
    def script(model, optimizer):
        for k in range(2 * STEPS):
            optimizer.zero_grad()
            loss = loss_of(model, k, (512, 384)[k % 2])
            loss.backward()
            optimizer.step()
            yield loss.item()

    planned = Trained(script, "60%", by_shape=True)
    run = planned.loop.run
    assert run.keys == [((384, 64),), ((512, 64),)]  # behind the first cycle, of 512
    assert all(run.last_report(key).on_plan for key in run.keys)
    assert "512x64: " in planned.report and "384x64: " in planned.report
    assert planned.is_same(Trained(script))


def test_updates_that_a_gradient_scaler_skips_end_their_step():
    def script(model, optimizer):
        scaler = torch.amp.GradScaler("cpu", init_scale=16.0, growth_interval=10_000)
        for k in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(model, k)
            scaler.scale(loss).backward()
            if k in (RECORDED + 2, RECORDED + 4):
                model.head.bias.grad[0] = float("inf")
            scaler.step(optimizer)
            scaler.update()
            yield loss.item(), scaler.get_scale()

    planned = Trained(script, "75%", deny="gradients")
    assert planned.results[-2][1] == 4.0
    assert planned.report.startswith("5 planned steps, 0 of them off the plan.")
    assert planned.is_same(Trained(script))


def failing(where):
    """A script whose ``where`` raises once, under the plan, which it catches. It holds its loss until the next one."""
    def script(model, optimizer):
        fails = False

        def fail(*_):
            if fails:
                raise MemoryError

        if where == "forward":
            model.blocks[2].register_forward_pre_hook(fail)
        for k in range(STEPS):
            fails = k == RECORDED + 2
            optimizer.zero_grad()
            try:
                loss = loss_of(model, k)
                if where == "backward":
                    loss.register_hook(fail)
                loss.backward()
            except MemoryError:
                yield "skipped"
                continue
            optimizer.step()
            yield loss.item()

    return script


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_an_exception_that_the_script_catches_ends_its_step_alone(where):
    planned = Trained(failing(where), "60%", deny="params,gradients,optimizer")
    assert planned.results.count("skipped") == 1
    assert planned.report.startswith("4 planned steps, 0 of them off the plan.")
    assert planned.is_same(Trained(failing(where)))


def test_a_step_that_a_held_graph_keeps_from_the_plan_runs_without_it():
    planned = Trained(failing("backward"), "100%", policy="layerwise")  # it streams on every machine
    assert planned.loop.run.plan().to_dict()["parameters"]
    assert planned.said[1].startswith("a step trains without the plan: ") and "cannot stream" in planned.said[1]
    # At zero_grad() and at the forward behind it.
    assert planned.report.startswith("3 planned steps, 0 of them off the plan.")
    assert "2 times a step could not begin under the plan" in planned.report
    assert planned.is_same(Trained(failing("backward")))


def two_optimizers(model, optimizer):
    other = torch.optim.SGD(model.head.parameters(), lr=0.1)
    for k in range(3):
        loss_of(model, k).backward()
        optimizer.step()
        other.step()
        optimizer.zero_grad()
        yield k


def closure(model, optimizer):
    def compute():
        optimizer.zero_grad()
        loss = loss_of(model, 0)
        loss.backward()
        return loss

    for _ in range(3):
        yield optimizer.step(compute).item()


def two_models(model, optimizer):
    head = torch.nn.Linear(10, 10)
    optimizer.add_param_group({"params": head.parameters()})
    for k in range(3):
        x, y = batch(k)
        torch.nn.functional.cross_entropy(head(model(x)), y).backward()
        optimizer.step()
        optimizer.zero_grad()
        yield k


@pytest.mark.parametrize("script, reason", [
    (two_optimizers, "several optimizers are stepped"),
    (closure, "AdamW.step() is given a closure"),
    (two_models, "no module that holds all parameters of AdamW was called"),
])
def test_what_is_no_such_loop_is_said_and_trains_plainly(script, reason):
    planned = Trained(script, "60%")
    assert len(planned.said) == 1 and planned.said[0].startswith(reason)
    assert reason in planned.report
    assert planned.is_same(Trained(script))


def test_a_budget_that_nothing_keeps_is_said_and_trains_plainly():
    planned = Trained(zero_grad_ahead, "1%")
    assert "floor" in planned.said[-1] and "without a plan" in planned.said[-1]
    assert planned.loop.run.trace() is not None
    assert planned.is_same(Trained(zero_grad_ahead))


def test_pytorch_is_as_ever_behind_it():
    def functions():
        owners = (torch.nn.Module, torch.optim.Optimizer, torch.autograd)
        return [vars(owner).get(name) for owner in owners
                for name in ("__call__", "named_parameters", "state_dict", "zero_grad", "step", "backward", "grad")]

    before, save = functions(), torch.save
    model, optimizers = Net(), []

    def script(model, optimizer):
        optimizers.append(optimizer)
        yield from two_optimizers(model, optimizer)
        assert functions() != before

    Trained(script, "60%", make=lambda: model)
    assert functions() == before and torch.save is save
    assert "step" not in vars(optimizers[0])
    assert all("forward" not in vars(module) for module in model.modules())


def test_a_model_may_name_its_arguments_as_it_likes():
    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = Net()

        def forward(self, *, called, self_=None):
            return self.net(called)

    def script(model, optimizer):
        for k in range(3):
            optimizer.zero_grad()
            model(called=batch(k)[0]).square().mean().backward()
            optimizer.step()
            yield k

    planned = Trained(script, "60%", make=Named)
    assert planned.said[0].startswith("a step of Named with AdamW")
    assert planned.is_same(Trained(script, make=Named))


def run(folder, *arguments):
    (folder / "train.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_command_runs_a_script_and_writes_trace_and_plan(tmp_path):
    plain = run(tmp_path, "train.py", "26", "print")
    planned = run(tmp_path, "-m", "stowage", "run", "--budget", "60%", "--trace", "out/t.json.gz", "--plan",
                  "out/p.json", "train.py", "26", "print")
    assert planned.returncode == plain.returncode == 0, planned.stderr
    assert planned.stdout == plain.stdout
    assert "stowage: 4 planned steps, 0 of them off the plan." in planned.stderr
    trace = stowage.Trace.load(tmp_path / "out/t.json.gz")
    plan = stowage.Plan.load(tmp_path / "out/p.json")
    assert stowage.simulate(trace, plan).peak_requested_bytes <= 0.6 * trace.peaks["requested_bytes"]
    assert json.loads(trace.to_json())["run"]["argv"] == ["train.py", "26", "print"]


@pytest.mark.parametrize("end, code", [("exit", 7), ("raise", 1)])
def test_the_exit_code_is_the_scripts(tmp_path, end, code):
    ended = run(tmp_path, "-m", "stowage", "run", "--budget", "60%", "--plan", "p.json", "train.py", "2", end)
    assert ended.returncode == code
    assert ("ValueError: of the script's own" in ended.stderr) == (end == "raise")
    assert "nothing was recorded to the end" in ended.stderr


def test_the_command_says_what_is_wrong(tmp_path):
    wrong = run(tmp_path, "-m", "stowage", "run", "--budget", "60%", "nowhere.py")
    assert wrong.returncode == 2 and "no such script: nowhere.py" in wrong.stderr
    (tmp_path / "none.py").write_text("import torch\n")
    none = run(tmp_path, "-m", "stowage", "run", "--budget", "60%", "none.py")
    assert none.returncode == 0 and "No training loop was found" in none.stderr
