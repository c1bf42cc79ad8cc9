"""Data-parallel training, first as ever, then in 60 % of its memory: on every rank the same losses, bit by bit.

    OMP_NUM_THREADS=1 PYTHONPATH=build/release/python .venv/bin/python -m torch.distributed.run --standalone \\
        --nproc-per-node 2 examples/python/train_ddp.py

On CPUs over Gloo. The lines that Stowage adds are marked.
"""

import contextlib
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import stowage  # Stowage

STEPS = 30
PARTS = 2  # micro-batches of a step


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


def make_batch(k):
    generator = torch.Generator().manual_seed(1000 * dist.get_rank() + k)  # each rank has its own
    return torch.randn(512, 64, generator=generator), torch.randint(0, 10, (512,), generator=generator)


def train(budget=None):
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block(64) for _ in range(6)], torch.nn.Linear(64, 10))
    model = DistributedDataParallel(model, bucket_cap_mb=0.2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = stowage.attach(model, optimizer, budget) if budget else None  # Stowage
    losses = []
    for k in range(STEPS):
        with run.step() if run else contextlib.nullcontext():  # Stowage
            for part in range(PARTS):
                # Gradients are summed over the ranks once a step, behind the last part.
                with model.no_sync() if part < PARTS - 1 else contextlib.nullcontext():
                    x, y = make_batch(PARTS * k + part)
                    loss = torch.nn.functional.cross_entropy(model(x), y) / PARTS
                    loss.backward()
                losses.append(loss.item())
            optimizer.step()
            optimizer.zero_grad()
    if run:
        if dist.get_rank() == 0:
            print(run.outcome().text())  # of the rank that planned
            print(run.report(), flush=True)
        as_predicted = run.last_report().peak_requested_bytes == run.predicted()["peak_requested_bytes"]
        run.detach()
        return losses, list(model.parameters()), as_predicted
    return losses, list(model.parameters())


def main():
    torch.set_num_threads(1)  # so that steps are the same op for op, which a recording on the CPU needs
    dist.init_process_group("gloo")
    losses, parameters, as_predicted = train("60%")
    expected, expected_parameters = train()
    same = losses == expected and all(map(torch.equal, parameters, expected_parameters))
    print(f"rank {dist.get_rank()}: loss {losses[0]:.4f} -> {losses[-1]:.4f}; bitwise the plain run's: {same}; "
          f"peak as predicted: {as_predicted}", flush=True)
    dist.destroy_process_group()
    return 0 if same and as_predicted else 1


if __name__ == "__main__":
    sys.exit(main())
