"""The tail of a step, head and loss, in parts, alone or data-parallel: docs/cookbook/parted-tail.md.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/cookbook/parted_tail.py
    OMP_NUM_THREADS=1 PYTHONPATH=build/release/python .venv/bin/python -m torch.distributed.run --standalone \\
        --nproc-per-node 2 examples/python/cookbook/parted_tail.py
"""

import contextlib
import os
import sys

import torch
import torch.distributed as dist
from cookbook import Timed, tell
from torch.nn.parallel import DistributedDataParallel

import stowage

PARTS = 4
WIDTH, VOCABULARY, ROWS = 64, 4096, 256


class Net(torch.nn.Module):
    """Called for its body or for its tail, as DistributedDataParallel wants to be what is called."""

    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = torch.nn.ModuleList(
            torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.GELU(), torch.nn.Linear(256, WIDTH))
            for _ in range(4))
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.words.weight  # its gradient comes from both ends

    def forward(self, part, targets=None):
        if targets is not None:
            return torch.nn.functional.cross_entropy(self.head(part), targets)
        x = self.words(part)
        for block in self.blocks:
            x = x + block(x)
        return x


def whole(model, ids):
    loss = model(model(ids), ids)
    loss.backward()
    return loss.item()


def in_parts(model, ids):
    """Gradients are summed over the ranks once, behind the last part."""
    targets = ids.chunk(PARTS)
    losses = []
    with model.no_sync() if dist.is_initialized() else contextlib.nullcontext():
        hidden = model(ids)
        ends = hidden.detach().requires_grad_()  # where the parts' gradients gather
        for part, of_part in zip(ends.chunk(PARTS)[:-1], targets, strict=False):
            loss = model(part, of_part) / PARTS
            loss.backward()
            losses.append(loss.item())
    # This call has DDP get ready, once a step; its backward reaches every parameter, once.
    loss = model(hidden.chunk(PARTS)[-1], targets[-1]) / PARTS
    torch.autograd.backward([loss, hidden], [None, ends.grad])
    return [*losses, loss.item()]


def training(tail):
    torch.manual_seed(0)
    model = Net()
    if dist.is_initialized():
        model = DistributedDataParallel(model, bucket_cap_mb=0.2)  # several buckets of so small a model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    rank = dist.get_rank() if dist.is_initialized() else 0

    def step(k):
        before = reductions()
        ids = torch.randint(0, VOCABULARY, (ROWS,), generator=torch.Generator().manual_seed(1000 * rank + k))
        result = tail(model, ids)
        optimizer.step()
        optimizer.zero_grad()
        return result, reductions() - before

    return model, optimizer, step


def reductions():
    return dist.group.WORLD._get_sequence_number_for_group() if dist.is_initialized() else 0


def planned_training(tail, budget):
    model, optimizer, step = training(tail)
    run = stowage.attach(model, optimizer, budget)
    loop = Timed(step, run).steps(32)
    return model, loop


def main():
    torch.set_num_threads(1)  # a recording on the CPU needs it
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    _, at_once = planned_training(whole, "100%")
    print(f"tail at once: peak {at_once.run.last_report().peak_requested_bytes / 1e6:.2f} MB")
    at_once.run.detach()
    model, planned = planned_training(in_parts, "80%")
    plain_model, _, step = training(in_parts)
    plain = Timed(step).steps(len(planned.results))
    good = tell(planned.run.trace(), plain, planned, (plain_model, model))
    planned.run.detach()
    if dist.is_initialized():
        counts = [loop.results[-1][1] for loop in (at_once, plain, planned)]
        print("reductions a step: {} at once, {} in parts, {} in parts under the plan".format(*counts))
        good = good and len(set(counts)) == 1
        dist.destroy_process_group()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
