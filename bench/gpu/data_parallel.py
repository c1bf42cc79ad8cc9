#!/usr/bin/env python3
"""Measures data-parallel training of transformers' models, plain and under a plan, on several GPUs over NCCL.

    bench/gpu/data_parallel.py --out results [--rows gpt2-60,llama4-60]
    bench/gpu/data_parallel.py --out results --tiny           # on CPUs over Gloo, to try the script

For each row, ranks under torchrun, one a GPU: some plain steps of a model in DistributedDataParallel; the same model
attached, recorded and planned, until every rank has made its planned steps; and as many plain steps again, whose
losses and parameters are compared with the planned run's, bit by bit. Times are of whole steps between two
synchronisations of the device, of the plain run ahead and behind. A row named `..-tail` computes the head and the loss
in parts, whose gradients are summed over the ranks once a step, behind the last part.

OUT/rows.json has what each rank says (a row that is there is not measured again), OUT/table.md the rows, OUT/log.txt
what the ranks print. The exit code is 1 where a row failed, was off its plan, not bitwise or reduced more often than
the plain run. PYTHONPATH has the package `stowage`.
"""

import argparse
import contextlib
import gc
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import warnings

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # ahead of cuBLAS
os.environ.setdefault("NCCL_NVLS_ENABLE", "0")

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../peers"))

from llama import make_llama, read_spec  # noqa: E402
from row import apply_run_options, digest_of  # noqa: E402

PARTS = 4  # of a tail
ROWS_FILE = "rows.json"
# Model, whether its tail is in parts, and the budget.
ROWS = {
    "gpt2-60": ("gpt2", False, "60%"),
    "llama4-60": ("llama3-8b:layers=4", False, "60%"),
    "gpt2-60-tail": ("gpt2", True, "60%"),
    "llama4-60-tail": ("llama3-8b:layers=4", True, "60%"),
    "gpt2-75": ("gpt2", False, "75%"),
    "llama4-75": ("llama3-8b:layers=4", False, "75%"),
}
TINY_LLAMA = "llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=128,vocab=256,seq=64"


class Trained(torch.nn.Module):
    """A language model whose body and tail (head and loss) may be called apart, as DDP wants to be what is called."""

    def __init__(self, model, body):
        super().__init__()
        self.model = model
        self.body = body

    def forward(self, tokens=None, hidden=None, targets=None):
        if hidden is None:
            hidden = self.model.get_submodule(self.body)(input_ids=tokens, use_cache=False).last_hidden_state
        if targets is None:
            return hidden
        logits = self.model.lm_head(hidden)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def make_model(name, tiny, device):
    if name == "gpt2":
        from transformers import GPT2Config, GPT2LMHeadModel

        small = {"n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64, "vocab_size": 256} if tiny else {}
        config = GPT2Config(**small, attn_implementation="eager", use_cache=False)
        with torch.device(device):
            model = GPT2LMHeadModel(config).to(torch.bfloat16).train()
        return Trained(model, "transformer"), config.vocab_size, config.n_positions
    shape = read_spec(TINY_LLAMA if tiny else name)
    model = make_llama(shape, "efficient", torch.bfloat16, device)
    return Trained(model, "model"), shape["vocab"], shape["seq"]


class Training:
    """A model in DDP with its optimizer and batches, which are the same each time it is made."""

    def __init__(self, row, options, device):
        name, self.in_parts, _ = ROWS[row]
        torch.manual_seed(1)
        model, self.vocab, self.seq = make_model(name, options.tiny, device)
        self.model = DistributedDataParallel(model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.generator = torch.Generator(device)
        self.tokens = torch.empty(options.batch, self.seq, dtype=torch.int64, device=device)
        self.device = device
        self.losses, self.times, self.collectives = [], [], []

    def step(self, run=None):
        """One, with its time; run: what attach() returned."""
        self.generator.manual_seed(1000 * dist.get_rank() + len(self.losses))
        self.tokens.random_(0, self.vocab, generator=self.generator)
        synchronize(self.device)
        began, before = time.perf_counter_ns(), dist.group.WORLD._get_sequence_number_for_group()
        with run.step() if run else contextlib.nullcontext():
            loss = self._tail_in_parts() if self.in_parts else self._at_once()
            self.optimizer.step()
            self.optimizer.zero_grad()
        synchronize(self.device)
        self.times.append(time.perf_counter_ns() - began)
        self.collectives.append(dist.group.WORLD._get_sequence_number_for_group() - before)
        self.losses.append(loss)

    def _at_once(self):
        loss = self.model(tokens=self.tokens, targets=self.tokens)
        loss.backward()
        return loss.item()

    # DDP gets ready to reduce when it is called without no_sync(): with the last part. The body goes back with that one,
    # so that each gradient is ready once, also that of a weight which both have.
    def _tail_in_parts(self):
        losses = []
        rows = self.tokens.chunk(PARTS)
        with self.model.no_sync():
            hidden = self.model(tokens=self.tokens)
            ends = hidden.detach().requires_grad_()
            for part, targets in zip(ends.chunk(PARTS)[:-1], rows[:-1], strict=True):
                loss = self.model(hidden=part, targets=targets) / PARTS
                loss.backward()
                losses.append(loss.item())
        loss = self.model(hidden=hidden.chunk(PARTS)[-1], targets=rows[-1]) / PARTS
        torch.autograd.backward([loss, hidden], [None, ends.grad])
        losses.append(loss.item())
        return losses

    def digest(self):
        return digest_of([parameter.detach() for parameter in self.model.parameters()])


def synchronize(device):
    if device != "cpu":
        torch.cuda.synchronize()


def spread(times):
    return {"median_ns": int(statistics.median(times)), "least_ns": min(times), "most_ns": max(times)}


def plain(row, options, device, steps):
    """What so many plain steps did; the last ones are measured."""
    training = Training(row, options, device)
    for k in range(steps):
        if k == steps - options.steps and device != "cpu":
            torch.cuda.reset_peak_memory_stats()
        training.step()
    result = {"losses": training.losses, "digest": training.digest(), "collectives": training.collectives[-1],
              "time": spread(training.times[-options.steps:])}
    if device != "cpu":
        stats = torch.cuda.memory_stats()
        result |= {f"peak_{kind}_bytes": stats[f"{kind}_bytes.all.peak"] for kind in ("requested", "active", "reserved")}
    return result


def planned(row, options, device, hosts):
    import stowage

    training = Training(row, options, device)
    least = stowage.Recording(warmup=1, steps=4, observed=2)
    began, reports = time.monotonic(), []
    run = stowage.attach(training.model, training.optimizer, ROWS[row][2], recording=least)
    ready = None
    while ready is None or len(training.losses) < ready + options.warmup + options.steps:
        for _ in range(4):
            training.step(run)
            if run.last_report() is not None:
                reports.append(run.last_report())
        if ready is None and all_say(hosts, run.is_planned):
            ready, recording_s = len(training.losses), time.monotonic() - began
    measured = reports[-options.steps:]
    outcome, last, predicted = run.outcome(), measured[-1], run.predicted()
    result = {
        "recorded_steps": ready, "recording_s": recording_s, "planned_here": outcome is not None,
        "off_plan": [report.first_difference for report in measured if not report.on_plan],
        "peak_requested_bytes": last.peak_requested_bytes, "peak_active_bytes": last.peak_active_bytes,
        "peak_reserved_bytes": last.peak_reserved_bytes, "offloaded_bytes": last.offloaded_bytes,
        "predicted": predicted, "memory": run.planned_memory(), "plan": json.loads(run.plan().to_json()),
        "resident": dict(outcome.resident) if outcome else None, "bound_ns": outcome.bound_ns if outcome else None,
        "budget_bytes": outcome.budget_bytes if outcome else None,
    }  # fmt: skip
    if options.traces:
        run.trace().save(os.path.join(options.out, f"{row}-rank{dist.get_rank()}.trace.json.gz"))
    run.detach()
    return result | {"losses": training.losses, "digest": training.digest(), "collectives": training.collectives[-1],
                     "time": spread(training.times[-options.steps:])}


def all_say(hosts, yes):
    said = torch.tensor(int(yes))
    dist.all_reduce(said, dist.ReduceOp.MIN, group=hosts)
    return bool(said)


def empty(device):
    gc.collect()
    if device != "cpu":
        torch.cuda.empty_cache()


def work(options):
    """One rank of one row."""
    row, rank = options.worker, int(os.environ["LOCAL_RANK"])
    device = "cpu" if options.tiny else f"cuda:{rank}"
    if device == "cpu":
        torch.set_num_threads(1)
    else:
        torch.cuda.set_device(rank)
    dist.init_process_group("gloo" if device == "cpu" else "nccl")
    hosts = dist.new_group(backend="gloo")
    apply_run_options(tf32=False)
    said = []
    warnings.showwarning = lambda message, *_, **__: said.append(str(message))
    ahead = plain(row, options, device, options.warmup + options.steps)
    empty(device)
    under = planned(row, options, device, hosts)
    empty(device)
    behind = plain(row, options, device, len(under["losses"]))
    mine = {
        "rank": rank, "device": "cpu" if device == "cpu" else torch.cuda.get_device_name(),
        "bitwise": (under["losses"], under["digest"]) == (behind["losses"], behind["digest"])
        and ahead["losses"] == behind["losses"][:len(ahead["losses"])],
        "warnings": said,
    }  # fmt: skip
    for name, result in (("ahead", ahead), ("planned", under), ("behind", behind)):
        mine[name] = {key: value for key, value in result.items() if key != "losses"}
    ranks = [None] * dist.get_world_size()
    dist.all_gather_object(ranks, mine, group=hosts)
    if rank == 0:
        rows = measured_rows(options.out)
        rows[row] = {"batch": options.batch, "torch": torch.__version__, "ranks": ranks}
        file = os.path.join(options.out, ROWS_FILE)
        with open(file + ".new", "w", encoding="utf-8") as out:
            json.dump(rows, out, indent=1)
        os.replace(file + ".new", file)
    dist.destroy_process_group()


def measured_rows(out):
    file = os.path.join(out, ROWS_FILE)
    if not os.path.exists(file):
        return {}
    with open(file, encoding="utf-8") as measured:
        return json.load(measured)


def ms(time):
    return f"{time['median_ns'] / 1e6:.1f} ({time['least_ns'] / 1e6:.1f}, {time['most_ns'] / 1e6:.1f})"


def gb(value):
    return "-" if value is None or value < 0 else f"{value / 1e9:.3f}"


HEAD = [
    "row", "rank", "bitwise", "plain ms, ahead", "behind", "planned ms", "over plain", "predicted ms (off)",
    "plain reserved GB", "planned", "predicted, B off", "requested, B off", "reductions a step, plain and planned",
    "steps and s until planned",
]  # fmt: skip


def line_of(row, rank):
    under, time = rank["planned"], rank["planned"]["time"]["median_ns"]
    predicted, both = under["predicted"], [rank[which]["time"]["median_ns"] for which in ("ahead", "behind")]
    reserved = under["peak_reserved_bytes"]
    return [
        row, str(rank["rank"]), "yes" if rank["bitwise"] and not under["off_plan"] else "NO",
        ms(rank["ahead"]["time"]), ms(rank["behind"]["time"]), ms(under["time"]),
        f"{(2 * time / sum(both) - 1) * 100:+.1f} %",
        f"{predicted['step_ns'] / 1e6:.1f} ({(predicted['step_ns'] / time - 1) * 100:+.1f} %)",
        gb(rank["behind"].get("peak_reserved_bytes")), gb(reserved),
        "-" if reserved is None else f"{predicted['peak_reserved_bytes'] - reserved:+,}",
        f"{predicted['peak_requested_bytes'] - under['peak_requested_bytes']:+,}",
        f"{rank['behind']['collectives']}, {under['collectives']}",
        f"{under['recorded_steps']}, {under['recording_s']:.0f}",
    ]  # fmt: skip


def table(out, asked):
    """Of these rows; and whether each is there, bitwise, on its plan, and reduces as often as the plain run."""
    rows = measured_rows(out)
    lines, good = [HEAD, ["---"] * len(HEAD)], asked <= rows.keys()
    for row, measured in rows.items():
        for rank in measured["ranks"]:
            lines.append(line_of(row, rank))
            under = rank["planned"]
            good &= rank["bitwise"] and not under["off_plan"]
            good &= under["collectives"] == rank["behind"]["collectives"]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines), good


def launch(row, options):
    """The row's ranks under torchrun, which end with it."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(options.ranks),
               os.path.abspath(__file__), "--worker", row, "--out", options.out, "--batch", str(options.batch),
               "--steps", str(options.steps), "--warmup", str(options.warmup)]  # fmt: skip
    command += [f"--{flag}" for flag in ("tiny", "traces") if getattr(options, flag)]
    with open(os.path.join(options.out, "log.txt"), "a", encoding="utf-8") as log:
        log.write(f"{row}\n")
        log.flush()
        child = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                 env=os.environ | {"OMP_NUM_THREADS": "1" if options.tiny else "8"})
        try:
            return f"exit {child.wait(options.limit)}"
        except subprocess.TimeoutExpired:
            return f"more than {options.limit:.0f} s"
        finally:
            try:
                os.killpg(child.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, help="folder for results")
    parser.add_argument("--rows", default=",".join(ROWS), help="with commas; all of them otherwise")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=8, help="sequences a rank")
    parser.add_argument("--warmup", type=int, default=4, help="steps ahead of the measured ones")
    parser.add_argument("--steps", type=int, default=12, help="measured steps")
    parser.add_argument("--limit", type=float, default=230, help="seconds for a row")
    parser.add_argument("--traces", action="store_true", help="keeps each rank's recording in OUT")
    parser.add_argument("--tiny", action="store_true", help="tiny models on CPUs, to try the script")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options)
    rows = options.rows.split(",")
    if unknown := set(rows) - ROWS.keys():
        parser.error(f"--rows: {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    os.makedirs(options.out, exist_ok=True)
    text, good = table(options.out, set(rows))
    for row in rows:
        if row not in measured_rows(options.out):
            began = time.monotonic()
            print(f"{row}: {launch(row, options)}, {time.monotonic() - began:.0f} s", flush=True)
            text, good = table(options.out, set(rows))
        with open(os.path.join(options.out, "table.md"), "w", encoding="utf-8") as out:
            out.write(text)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
