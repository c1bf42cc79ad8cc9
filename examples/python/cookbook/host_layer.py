"""A layer whose weights live on the host: docs/cookbook/host-layer.md.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/cookbook/host_layer.py
"""

import sys

import torch
from cookbook import Timed, record, tell

import stowage

# Its weights, its gradient and the optimizer's state of it are on the device while they are used, no longer.
PLAN = {
    "schema": "stowage-plan/1",
    "parameters": {"shards": [["wide"]], "stream": True},
    "optimizer": [{"layer": "wide", "state": "stream"}],
    "gradients": [{"layer": "wide", "place": "host"}],
}


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))
        self.wide = torch.nn.Sequential(torch.nn.Linear(64, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 64))
        self.down = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        for layer in self.up:
            x = x + torch.tanh(layer(x))
        x = x + self.wide(x)
        for layer in self.down:
            x = x + torch.tanh(layer(x))
        return x


def training():
    torch.manual_seed(0)
    model = Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(k):
        optimizer.zero_grad()
        x = torch.randn(32, 64, generator=torch.Generator().manual_seed(k))
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss.item()

    return model, optimizer, step


def main():
    torch.set_num_threads(1)  # a recording on the CPU needs it
    trace = record(*training())
    model, optimizer, step = training()
    run = stowage.attach(model, optimizer, trace=trace, plan=stowage.Plan.from_dict(PLAN))
    planned = Timed(step, run).steps(20)
    plain_model, _, plain_step = training()
    plain = Timed(plain_step).steps(20)
    good = tell(trace, plain, planned, (plain_model, model))
    run.detach()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
