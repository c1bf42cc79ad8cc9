"""A loop of one's own: two shapes, a schedule, clipping, validation, a checkpoint: docs/cookbook/own-loop.md.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/cookbook/own_loop.py

The lines that Stowage adds are marked.
"""

import contextlib
import io
import statistics
import sys
import time

import torch

import stowage  # Stowage

STEPS, CHECKPOINT = 60, 52
LENGTHS = (24, 32)  # batches are padded to one of these


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.attention = torch.nn.MultiheadAttention(width, 4, batch_first=True)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


class Net(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.words = torch.nn.Embedding(500, width)
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(4))
        self.head = torch.nn.Linear(width, 500)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return torch.nn.functional.cross_entropy(self.head(x).flatten(0, 1), ids.flatten())


class Training:
    def __init__(self):
        torch.manual_seed(0)
        self.model = Net()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, STEPS)
        self.losses, self.validations, self.times = [], [], []

    def batch(self, k, length):
        return torch.randint(0, 500, (16, length), generator=torch.Generator().manual_seed(k))

    def step(self, ids):
        loss = self.model(ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.item()  # a number: the graph must not outlive its step

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            self.validations.append(self.model(self.batch(-1, LENGTHS[0])).item())
        self.model.train()

    def save(self):
        file = io.BytesIO()
        torch.save([part.state_dict() for part in (self.model, self.optimizer, self.schedule)], file)
        return file.getvalue()

    def load(self, saved):
        for part, state in zip((self.model, self.optimizer, self.schedule), torch.load(io.BytesIO(saved)), strict=True):
            part.load_state_dict(state)

    def train(self, begin=0, run=None):
        saved = None
        for k in range(begin, STEPS):
            length = LENGTHS[k % 2]
            ids = self.batch(k, length)
            began = time.perf_counter()
            with run.step(key=length) if run else contextlib.nullcontext():  # Stowage: a plan for each shape
                self.losses.append(self.step(ids))
            self.times.append(time.perf_counter() - began)
            self.schedule.step()
            if k % 10 == 9 or k == CHECKPOINT:
                with run.materialised() if run else contextlib.nullcontext():  # Stowage: all parameters are there
                    self.validate()
                    if k == CHECKPOINT:
                        saved = self.save()
        return saved


def main():
    torch.set_num_threads(1)  # a recording on the CPU needs it
    planned = Training()
    run = stowage.attach(planned.model, planned.optimizer, "60%")  # Stowage
    saved = planned.train(run=run)
    as_predicted = True
    for length in LENGTHS:
        measured, predicted = run.last_report(length), run.predicted(length)["peak_requested_bytes"]
        resident = run.outcome(length).resident["peak_requested_bytes"]
        print(f"length {length}: peak {resident / 1e6:.2f} MB without the plan, "
              f"{measured.peak_requested_bytes / 1e6:.2f} MB under it; on it: {measured.on_plan}")
        as_predicted = as_predicted and measured.on_plan and measured.peak_requested_bytes == predicted < resident
    run.detach()  # Stowage

    plain, resumed = Training(), Training()
    plain.train()
    resumed.load(saved)
    resumed.train(CHECKPOINT + 1)
    same = (plain.losses, plain.validations) == (planned.losses, planned.validations)
    same = same and all(map(torch.equal, plain.model.parameters(), planned.model.parameters()))
    same = same and all(map(torch.equal, plain.model.parameters(), resumed.model.parameters()))
    print(f"step {1e3 * statistics.median(plain.times[-12:]):.1f} ms, under the plans "
          f"{1e3 * statistics.median(planned.times[-12:]):.1f} ms; peaks as predicted: {as_predicted}")
    print(f"losses, validations and parameters bitwise the plain loop's, from the checkpoint too: {same}")
    return 0 if as_predicted and same else 1


if __name__ == "__main__":
    sys.exit(main())
