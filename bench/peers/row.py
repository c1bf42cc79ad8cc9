#!/usr/bin/env python3
"""One row: measures one peer on one configuration and prints one JSON line. `measure.py` runs it.

The step is Stowage's (executor/training_step.cpp): the batch of seed + k is written into the same input
tensor before it; it begins with the gradients of the step before, drops them, runs forward and
logits.backward(ones), and reads the first logit. Wall time between two device synchronisations; the peaks are
the caching allocator's, reset at the step's begin. After the measured steps, step 0 is run once more and its
gradients are digested, so that rows can be compared bit for bit.
"""

import argparse
import hashlib
import importlib.metadata
import json
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before PyTorch loads cuBLAS

import torch  # noqa: E402

from llama import make_llama, read_spec  # noqa: E402
from plans import PEERS, STOWAGE, NotAvailable, peer_of  # noqa: E402

CHUNK = 1 << 24  # elements digested at once, to need little memory
PACKAGES = ("torch", "triton", "transformers", "trl", "accelerate", "numpy")


def apply_run_options(tf32):
    """As executor/run_options.cpp."""
    torch.use_deterministic_algorithms(True, warn_only=False)
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.enable_cudnn_sdp(False)


class Step:
    def __init__(self, model, call, context, shape, batch, seed, device):
        self.parameters = list(model.parameters())
        self.call, self.context, self.vocab, self.seed = call, context, shape["vocab"], seed
        self.tokens = torch.empty(batch, shape["seq"], dtype=torch.int64, device=device)
        self.generator = torch.Generator(device)

    def prepare(self, index):
        self.generator.manual_seed(self.seed + index)
        self.tokens.random_(0, self.vocab, generator=self.generator)

    def run(self):
        with self.context():
            for parameter in self.parameters:
                parameter.grad = None
            logits = self.call(input_ids=self.tokens, use_cache=False).logits
            logits.backward(torch.ones_like(logits))
        return logits.detach()[0, 0, 0].item()


class Gpu:
    """Time and the allocators' counters of one step; on a CPU device only time."""

    def __init__(self, device):
        self.there = device == "cuda"

    def begin(self):
        if self.there:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        return time.perf_counter_ns()

    def end(self, began):
        if self.there:
            torch.cuda.synchronize()
        step = {"step_ns": time.perf_counter_ns() - began}
        if self.there:
            stats = torch.cuda.memory_stats()
            step |= {f"peak_{kind}_bytes": stats[f"{kind}_bytes.all.peak"]
                     for kind in ("requested", "active", "reserved")}  # fmt: skip
        return step

    def taken(self):
        """Times that memory was taken from the driver and host memory was pinned, and bytes pinned now."""
        if not self.there:
            return None, None, None
        host = torch.cuda.host_memory_stats()
        device = torch.cuda.memory_stats()["num_device_alloc"]
        return device, host.get("num_host_alloc"), host.get("allocated_bytes.current")


def digest(parameters):
    """Of their gradients."""
    return digest_of([parameter.grad for parameter in parameters])


def digest_of(tensors):
    """SHA-256 over a weighted sum of every tensor's bits; differs (but for 2^-64) if one bit of one does."""
    sums = []
    for tensor in tensors:
        flat = tensor.reshape(-1)
        bits = flat.view({2: torch.int16, 4: torch.int32}[flat.element_size()])
        total = torch.zeros((), dtype=torch.int64, device=bits.device)
        for part in bits.split(CHUNK):
            weights = torch.arange(1, 2 * part.numel(), 2, device=bits.device)
            total = total * 31 + weights.mul_(part).sum()
        sums.append(total.item())
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()[:16]


def summary(steps):
    """Of the measured steps: median time, largest peaks, and whether the peaks stayed the same."""
    times = [step["step_ns"] for step in steps]
    result = {"step_ns": int(statistics.median(times)), "step_ns_least": min(times), "step_ns_most": max(times)}
    for kind in ("requested", "active", "reserved"):
        peaks = [step.get(f"peak_{kind}_bytes") for step in steps]
        result[f"peak_{kind}_bytes"] = None if None in peaks else max(peaks)
        result[f"peak_{kind}_constant"] = len(set(peaks)) == 1
    return result


def graphs():
    """Of torch.compile: graphs made and breaks between them."""
    from torch._dynamo.utils import counters

    return {"unique": counters["stats"]["unique_graphs"], "breaks": sum(counters["graph_break"].values())}


def measure(options):
    shape = read_spec(options.model)
    apply_run_options(options.dtype == "tf32")
    if options.device == "cuda" and not torch.cuda.is_available():
        raise NotAvailable("no GPU")
    torch.manual_seed(options.seed)
    dtype = torch.bfloat16 if options.dtype == "bf16" else torch.float32
    model = make_llama(shape, options.attention, dtype, options.device)
    call, context = peer_of(options.row)(model, options.device)
    step = Step(model, call, context, shape, options.batch, options.seed, options.device)
    gpu = Gpu(options.device)
    if gpu.there:
        torch.cuda.empty_cache()  # making the model is no part of the plan

    recorded, began = 0, time.perf_counter_ns()
    while options.row.startswith(STOWAGE) and not context.is_ready():
        step.prepare(recorded)
        step.run()
        recorded += 1
    recording = {"recording_steps": recorded, "recording_ns": time.perf_counter_ns() - began} if recorded else {}
    losses, first_ns, taken, steps = [], None, None, []
    for index in range(options.warmup + options.steps):
        if index == options.warmup:
            taken = gpu.taken()
        step.prepare(index)
        began = gpu.begin()
        loss = step.run()
        done = gpu.end(began)
        if recorded:
            done |= context.peaks()
        first_ns = first_ns or done["step_ns"]
        losses.append(loss)
        if index == 0 and gpu.there and options.row.startswith("compile"):
            torch.cuda.empty_cache()  # nor is what compiling tried out
        if index >= options.warmup:
            steps.append(done)
    after = gpu.taken()
    result = summary(steps) | {"first_step_ns": first_ns, "steps": steps, "losses": losses} | recording
    result["parameters"] = sum(parameter.numel() for parameter in model.parameters())
    result["pinned_bytes"] = after[2]
    for key, before, now in zip(("driver_allocations", "pinned"), taken, after, strict=False):
        result[f"{key}_in_measured_steps"] = None if now is None or before is None else now - before
    if options.row.startswith("compile"):
        result["graphs"] = graphs()
    step.prepare(0)
    step.run()
    if recorded:
        result["stowage"] = context.finish()
    result["gradients"] = digest(step.parameters)
    return {"status": "ok"} | result


def environment(device):
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    name = torch.cuda.get_device_name() if device == "cuda" and torch.cuda.is_available() else device
    return {
        "device_name": name,
        "versions": versions | {"python": sys.version.split()[0], "cuda": torch.version.cuda},
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "allocator": os.environ.get("PYTORCH_ALLOC_CONF", os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")),
        "cublas_workspace": os.environ["CUBLAS_WORKSPACE_CONFIG"],
    }


def is_out_of_memory(error):
    """Device or pinned memory; torch.compile wraps the error."""
    while error is not None:
        if isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "out of memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def arguments(parser):
    """What says which configuration; measure.py hands these through."""
    parser.add_argument("--model", default="llama3-8b:layers=9", help="llama3-8b[:NAME=VALUE,..], docs/models.md")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to try the script")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the measured ones")
    parser.add_argument("--steps", type=int, default=7, help="measured steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser)
    parser.add_argument("--row", required=True, help=f"{', '.join(PEERS)} or {STOWAGE}BUDGET")
    parser.add_argument("--dtype", choices=["fp32", "tf32", "bf16"], default="fp32")
    parser.add_argument("--attention", choices=["math", "efficient"], default="math")
    options = parser.parse_args()
    if options.warmup < 0 or options.steps < 1:
        parser.error("--warmup is at least 0, --steps at least 1")
    if options.row not in PEERS and not options.row.startswith(STOWAGE):
        parser.error(f"--row: '{options.row}' is none of {', '.join(PEERS)}, {STOWAGE}BUDGET")
    try:
        result = measure(options)
    except NotAvailable as error:
        result = {"status": "not available", "reason": str(error)}
    except Exception as error:  # noqa: BLE001: a row is an answer, whatever happens
        status = "out of memory" if is_out_of_memory(error) else "failed"
        result = {"status": status, "reason": f"{type(error).__name__}: {error}"[:1000]}
        if status == "failed":
            sys.excepthook(type(error), error, error.__traceback__)
    print(json.dumps(result | environment(options.device)), flush=True)


if __name__ == "__main__":
    main()
