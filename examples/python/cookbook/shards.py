"""A model in shards, with micro-batches, mixed precision and boundary checkpoints: docs/cookbook/shards.md.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/cookbook/shards.py
"""

import sys

import torch
from cookbook import Timed, record, tell

import stowage

MICRO_BATCHES = 2
PLAN = {
    "schema": "stowage-plan/1",
    # Two blocks a shard: here while they are used in forward, in backward and by the optimizer.
    "parameters": {"shards": [[f"blocks.[{i}-{i + 1}]"] for i in (0, 2, 4)], "stream": True, "prefetch": 1},
    "optimizer": [{"layer": "blocks.*", "state": "stream"}],
    # Each block runs again in backward; what it was given waits on the host.
    "recompute": [{"segment": "blocks.[0-5]", "boundary": "offload"}],
}


class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(torch.nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(6))
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def training():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(k):
        losses = []
        for part in range(MICRO_BATCHES):
            generator = torch.Generator().manual_seed(MICRO_BATCHES * k + part)
            x, y = torch.randn(256, 64, generator=generator), torch.randint(0, 10, (256,), generator=generator)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = torch.nn.functional.cross_entropy(model(x), y) / MICRO_BATCHES
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
        return losses

    return model, optimizer, step


def main():
    torch.set_num_threads(1)  # a recording on the CPU needs it
    trace = record(*training())
    model, optimizer, step = training()
    run = stowage.attach(model, optimizer, trace=trace, plan=stowage.Plan.from_dict(PLAN))
    planned = Timed(step, run).steps(16)
    plain_model, _, plain_step = training()
    plain = Timed(plain_step).steps(16)
    good = tell(trace, plain, planned, (plain_model, model))
    run.detach()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
