#!/usr/bin/env python3
"""The whole llama3-8b, bf16 with AdamW and cross-entropy, on a part of a GPU: what Python offers for it.

    bench/peers/whole_llama.py --peer torchao --limit 40000000000 --steps 5

Beside Stowage's run of docs/results.md ("The whole Llama-3-8B on 40 GB"): the same shapes and ops (llama.py, attention
efficient), every layer checkpointed, the loss in float32 against targets of their own. The peers (OFFLOADS in
whole_llama_offloads.py) differ in where gradients and AdamW's state are, and in its precision: "adamw" says which.

--limit takes the card but for that many bytes (bench/gpu/full_card.py) before the row's process starts: its CUDA
context counts. The row runs in a process of its own, which is ended when the machine uses more than --host-limit
or --seconds have passed. A JSON line for each stage and step as it is done, and one with "status" at last; out of
memory, not available and out of time are answers too (exit code 0). Steps, clock and run options are row.py's; the
figure is the median from the third step on.
"""

import argparse
import importlib.metadata
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import threading
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # before PyTorch loads cuBLAS
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)
WARMUP = 2
PEERS = ("deepspeed", "deepspeed-fp32", "torchao", "hooks")
REPORTED = ("peer", "model", "batch", "seed", "chunks", "pin", "device", "limit")
TINY = "llama3-8b:width=64,heads=4,kv_heads=2,hidden=128,vocab=512"


def say(**line):
    print(json.dumps(line), flush=True)


# ---- the row's process


def make_step(shape, options):
    """The model with its loss as one module, and a function that gives batch k."""
    import torch
    import torch.nn.functional as F
    from torch.utils.checkpoint import checkpoint

    from llama import make_llama

    class Training(torch.nn.Module):
        """The mean cross-entropy in float32; with chunks, the head is run again for each in backward."""

        def __init__(self, llama):
            super().__init__()
            self.llama = llama

        def total(self, x, targets):
            logits = self.llama.lm_head(x)
            return F.cross_entropy(logits.float().view(-1, shape["vocab"]), targets.reshape(-1), reduction="sum")

        def forward(self, tokens, targets):
            x = self.llama.model(input_ids=tokens, use_cache=False).last_hidden_state
            if options.chunks == 1:
                return self.total(x, targets) / targets.numel()
            parts = zip(x.chunk(options.chunks, 1), targets.chunk(options.chunks, 1), strict=True)
            return sum(checkpoint(self.total, *part, use_reentrant=False) for part in parts) / targets.numel()

    llama = make_llama(shape, "efficient", torch.bfloat16, options.device)
    llama.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    tokens = torch.empty(options.batch, shape["seq"], dtype=torch.int64, device=options.device)
    targets = torch.empty_like(tokens)
    generator = torch.Generator(options.device)

    def batch(index):
        generator.manual_seed(options.seed + index)
        tokens.random_(0, shape["vocab"], generator=generator)
        targets.random_(0, shape["vocab"], generator=generator)
        return tokens, targets

    return Training(llama), batch


def measure(options):
    import torch

    from llama import read_spec
    from plans import NotAvailable
    from row import Gpu, apply_run_options, summary
    from whole_llama_offloads import OFFLOADS

    shape = read_spec(options.model)
    apply_run_options(False)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise NotAvailable("no GPU")
    torch.manual_seed(options.seed)
    gpu, began = Gpu(options.device), time.monotonic()
    left = torch.cuda.mem_get_info()[0] if gpu.there else None
    model, batch = make_step(shape, options)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    say(at="model made", seconds=round(time.monotonic() - began, 1), parameters=parameters, left_bytes=left)
    step, about = OFFLOADS[options.peer](model, options)
    if gpu.there:
        torch.cuda.empty_cache()
    say(at="ready", seconds=round(time.monotonic() - began, 1))
    steps, losses, taken = [], [], None
    for index in range(options.steps):
        tokens, targets = batch(index)
        if index == min(WARMUP, options.steps - 1):
            taken = gpu.taken()
        start = gpu.begin()
        losses.append(step(tokens, targets))
        steps.append(gpu.end(start))
        say(step=index, loss=losses[-1], **steps[-1])
    after = gpu.taken()
    counted = summary(steps[min(WARMUP, options.steps - 1) :])
    tokens_per_second = options.batch * shape["seq"] / (counted["step_ns"] / 1e9)
    return about | counted | {
        "status": "ok", "tokens_per_second": round(tokens_per_second, 1), "losses": losses, "parameters": parameters,
        "pinned_bytes": after[2], "left_bytes": left, "first_step_ns": steps[0]["step_ns"],
        "driver_allocations_in_measured_steps": None if after[0] is None else after[0] - taken[0],
    }  # fmt: skip


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def run_row(options):
    from plans import NotAvailable
    from row import environment, is_out_of_memory

    try:
        result = measure(options)
    except NotAvailable as error:
        result = {"status": "not available", "reason": str(error)}
    except Exception as error:  # noqa: BLE001: a row is an answer, whatever happens
        short = is_out_of_memory(error) or "can't allocate memory" in str(error)  # of the GPU, pinned or the host's
        status = "out of memory" if short else "failed"
        result = {"status": status, "reason": f"{type(error).__name__}: {error}"[:1000]}
        sys.excepthook(type(error), error, error.__traceback__)
    machine = environment(options.device)
    machine["versions"] |= {package: version(package) for package in ("deepspeed", "torchao")}
    result["rss_peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024  # pinned memory may not count
    say(**result, **machine)
    sys.stdout.flush()
    os._exit(0)  # threads and process groups of the peers need no ceremony


# ---- the process that watches it


def host_used():
    """Bytes of the machine's memory in use, pinned ones too."""
    with open("/proc/meminfo", encoding="ascii") as file:
        words = dict(line.split(":") for line in file)
    total, free = (int(words[key].split()[0]) * 1024 for key in ("MemTotal", "MemAvailable"))
    return total - free


def hold_card(limit):
    """The process that leaves `limit` bytes of the card, and what it left."""
    words = [sys.executable, os.path.join(HERE, "..", "gpu", "full_card.py"), "--hold", str(limit)]
    holder = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    text = holder.stdout.readline()
    if not text:
        raise SystemExit("the card could not be filled")
    return holder, int(text)


def watch(child, options):
    """(what the row said at last or why it could not, the most of the host's memory that was in use)."""
    lines, answer, most, deadline = queue.Queue(), None, host_used(), time.monotonic() + options.seconds

    def read():
        for line in child.stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=0.05)
        except queue.Empty:
            line = ""
        most = max(most, host_used())
        if line is None:
            break
        if line.startswith('{"'):
            said = json.loads(line)
            if "status" in said:
                answer = said
            else:
                say(**said, host_used_bytes=host_used())
        elif line:
            sys.stderr.write(line)
        if answer is None and most > options.host_limit:
            return {"status": "out of memory", "reason": f"host: more than {options.host_limit} bytes in use"}, most
        if answer is None and time.monotonic() > deadline:
            return {"status": "time limit", "reason": f"{options.seconds:.0f} s"}, most
    code = child.wait()
    if answer is None and code == -signal.SIGKILL:
        answer = {"status": "out of memory", "reason": "host: killed"}
    return answer or {"status": "failed", "reason": f"exit code {code}, no result"}, most


def run_watched(options):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the row ends with it
    before = host_used()
    holder, left = hold_card(options.limit) if options.limit else (None, None)
    words = [sys.executable, os.path.abspath(__file__), "--row", *sys.argv[1:]]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        answer, most = watch(child, options)
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()
        if holder:
            holder.stdin.close()
            holder.wait()
    config = {name: getattr(options, name) for name in REPORTED}
    host = {"held_left_bytes": left, "host_used_before_bytes": before, "host_used_peak_bytes": most}
    say(**{"schema": "stowage-whole-llama/1"}, **config, **answer, **host)
    return 1 if answer["status"] == "failed" else 0


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=PEERS, required=True)
    parser.add_argument("--model", default="llama3-8b", help="llama3-8b[:NAME=VALUE,..], docs/models.md")
    parser.add_argument("--layers", type=int, help="of the model")
    parser.add_argument("--seq", type=int, help="tokens in a sequence")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=5, help="in all; from the third on they count")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chunks", type=int, default=1, help="parts of the head and the loss")
    parser.add_argument("--pin", choices=["yes", "no"], default="yes", help="deepspeed: pin what is offloaded")
    parser.add_argument("--limit", type=int, metavar="BYTES", help="leave that much of the card, context included")
    parser.add_argument("--host-limit", type=int, metavar="BYTES", default=130 * 10**9, help="of the host's memory")
    parser.add_argument("--seconds", type=float, default=540, help="for all of the row")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to try the script")
    parser.add_argument("--tiny", action="store_true", help="a tiny model, to try the script")
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tiny:
        options.model, options.layers, options.seq = TINY, options.layers or 2, options.seq or 64
    for name in ("layers", "seq"):
        if (value := getattr(options, name)) is not None:
            options.model += ("," if ":" in options.model else ":") + f"{name}={value}"
    if options.steps < 1 or options.chunks < 1:
        parser.error("--steps and --chunks are at least 1")
    return options


def main():
    options = parse()
    return run_row(options) if options.row else run_watched(options)


if __name__ == "__main__":
    sys.exit(main())
