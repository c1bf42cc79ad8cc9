#!/usr/bin/env python3
"""torchvision's resnet50 and vit_b_16 with and without torch.utils.checkpoint around each block, fp32, forward,
cross-entropy, backward: one JSON line a row. What Stowage's plans for `resnet50` and `vit` are held against.

    bench/peers/vision.py [--batch 64] [--steps 10]

Run options and clock as in row.py. Checkpointing runs batch normalisation's update of the running statistics twice.
"""

import argparse
import json
import os
import statistics
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before PyTorch loads cuBLAS

import torch  # noqa: E402
import torchvision  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

WARMUP = 3


def apply_run_options():
    """As executor/run_options.cpp, fp32."""
    torch.use_deterministic_algorithms(True, warn_only=False)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False


def blocks_of(model):
    if isinstance(model, torchvision.models.ResNet):
        return [block for i in range(1, 5) for block in getattr(model, f"layer{i}")]
    return list(model.encoder.layers)


def wrap(block):
    forward = block.forward
    block.forward = lambda x: checkpoint(forward, x, use_reentrant=False)


def measure(name, every, batch, steps):
    torch.manual_seed(1)
    model = getattr(torchvision.models, name)().cuda().train()
    if every:
        for block in blocks_of(model)[::every]:
            wrap(block)
    images = torch.randn(batch, 3, 224, 224, device="cuda")
    classes = torch.randint(1000, (batch,), device="cuda")
    times = []
    for step in range(WARMUP + steps):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        model.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        torch.cuda.synchronize()
        if step >= WARMUP:
            times.append(time.perf_counter() - begin)
    stats = torch.cuda.memory_stats()
    return {
        "model": name,
        "checkpoint_every": every,
        "batch": batch,
        "step_ms": round(1e3 * statistics.median(times), 3),
        "peak_active_bytes": stats["active_bytes.all.peak"],
        "peak_reserved_bytes": stats["reserved_bytes.all.peak"],
        "loss": float(loss),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    arguments = parser.parse_args()
    apply_run_options()
    for name in ("resnet50", "vit_b_16"):
        for every in (0, 1, 2):
            torch.cuda.empty_cache()
            print(json.dumps(measure(name, every, arguments.batch, arguments.steps)), flush=True)


if __name__ == "__main__":
    main()
