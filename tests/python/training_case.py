"""What tests of training share: a small model, its loop without Stowage and with it, and the comparison."""

import contextlib
import json

import stowage
import torch

FAST = stowage.Recording(warmup=2, steps=4, observed=2)
RECORDED = 12  # a loop's steps that such a recording takes


class Block(torch.nn.Module):
    """Residual, and its input has three uses besides: their gradients' sum depends on the order."""

    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.gate = torch.nn.Linear(width, 4 * width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x):
        y = self.down(torch.nn.functional.gelu(self.gate(x)) * self.up(x))
        return self.norm(x + self.drop(y))


class Net(torch.nn.Module):
    def __init__(self, width=64, blocks=4):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(blocks))
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def batch(k, size=512, width=64):
    generator = torch.Generator().manual_seed(k)
    return (torch.randn(size, width, generator=generator), torch.randint(0, 10, (size,), generator=generator))


def loss_of(model, k, size=512):
    x, y = batch(k, size)
    return torch.nn.functional.cross_entropy(model(x), y)


class Loop:
    """Training of ``make()`` with ``body(model, optimizer, k)``, whose result it lists; ``attach`` as the arguments."""

    def __init__(self, make, optimizer, body, **attach):
        torch.manual_seed(0)
        self.model = make()
        self.optimizer = optimizer(self.model.parameters())
        self.body = body
        self.run = stowage.attach(self.model, self.optimizer, recording=FAST, **attach) if attach else None
        self.results = []
        self.reports = []
        torch.manual_seed(1)

    def step(self, k, key=None):
        with self.run.step(key) if self.run is not None else contextlib.nullcontext():
            self.results.append(self.body(self.model, self.optimizer, k))
        if self.run is not None and self.run.last_report(key) is not None:
            self.reports.append(self.run.last_report(key))

    def steps(self, count):
        for k in range(count):
            self.step(k)
        return self


def plain_body(model, optimizer, k):
    optimizer.zero_grad()
    loss = loss_of(model, k)
    loss.backward()
    optimizer.step()
    return loss.item()


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def assert_equal(plain, planned):
    """Losses and parameters, bit by bit."""
    assert planned.results == plain.results
    for (name, a), (_, b) in zip(plain.model.named_parameters(), planned.model.named_parameters(), strict=True):
        assert torch.equal(a, b), name
    for p, q in zip(plain.model.parameters(), planned.model.parameters(), strict=True):
        for what, piece in plain.optimizer.state.get(p, {}).items():
            if isinstance(piece, torch.Tensor):
                assert torch.equal(piece, planned.optimizer.state[q][what]), what


def assert_as_predicted(loop, key=None, skip=0):
    """Every planned step behind the first ``skip`` was on its plan, and peaked at the predicted byte."""
    predicted = loop.run.predicted(key)["peak_requested_bytes"]
    assert len(loop.reports) > skip
    for report in loop.reports:
        assert report.on_plan, report.first_difference
    assert [report.peak_requested_bytes for report in loop.reports[skip:]] == [predicted] * (len(loop.reports) - skip)


def assert_as_predicted_on_gpu(loop):
    """Likewise of a GPU: the reserved bytes too, all of it in the plan's own memory."""
    assert_as_predicted(loop)
    # What the plan does not know of stays where PyTorch's allocator has it: a segment, at most, of these small models.
    predicted = loop.run.predicted()["peak_reserved_bytes"]
    assert 0 <= loop.reports[-1].peak_reserved_bytes - predicted <= 2 << 20, (loop.reports[-1], predicted)
    memory = loop.run.planned_memory()
    assert memory["served"] > 0
    assert (memory["conflicts"], memory["unforeseen"]) == (0, 0), memory["surprises"]


def updates_in(trace):
    """How many parameters' updates a recording tells apart."""
    recorded = json.loads(trace.to_json())
    return recorded["events"]["kind"].count(recorded["legend"]["event_kind"].index("parameter_update_begin"))
