"""Layer gradient x activation on a device too small for it: the attributions of twelve layers, first with all the
memory that they take, then in half of it, the same bit by bit. Beside it in C++: examples/cookbook/attribute_layers.cpp.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/cookbook/attribute_layers.py
"""

import sys

import torch

import stowage

CALLS = 30


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)

    def forward(self, x):
        return x + self.down(torch.nn.functional.gelu(self.up(x)))


def make_net():
    torch.manual_seed(1)
    return torch.nn.Sequential(*[Block() for _ in range(12)]).eval()


def make_batch(k):
    return torch.randn(1024, 64, generator=torch.Generator().manual_seed(k))


def main():
    torch.set_num_threads(1)  # so that steps are the same op for op, which a recording on the CPU needs
    layers = [str(k) for k in range(12)]
    plain = stowage.Attribution(make_net(), layers)
    planned = stowage.Attribution(make_net(), layers, "50%")
    same = True
    for k in range(CALLS):
        x = make_batch(k)
        expected, result = plain(x, target=3), planned(x, target=3)
        same = same and all(torch.equal(result[layer], expected[layer]) for layer in layers)
    run = planned.run
    print(run.report())
    peak, resident = run.last_report().peak_requested_bytes, stowage.simulate(run.trace()).peak_requested_bytes
    print(f"{len(result)} layers, {resident / 1e6:.1f} MB without a plan, {peak / 1e6:.1f} MB with it; bitwise the same: {same}")
    return 0 if same and peak == run.predicted()["peak_requested_bytes"] and 2 * peak <= resident else 1


if __name__ == "__main__":
    sys.exit(main())
