#!/usr/bin/env python3
"""Verifies plans over a pairwise cover of models, number formats, optimizers and decisions, on a GPU.

    bench/gpu/cover.py --bin build/release/bin --out results --seconds 540

Each cell is a recording (model, dtype, optimizer, micro-batches where the decision asks for them), a plan of `auto`
that may decide that alone, for the least of 60, 70, 80, 90 and 95 % of the reserved peak that it can keep, and `stowage
verify`. Every pair of values of two columns that can go together is in some cell. What is in OUT/cells.jsonl already is
not done again, unless it failed, so that a second call goes on; after --seconds no further cell is begun, and one has a
few commands, each of --limit seconds at most. With --device cpu small models,
to try it. Exit code 1 when a cell is not bitwise, off in a byte, or on a GPU off in time by more than --time and outside of
the prediction's interval; 3 when cells are left.
"""

import argparse
import itertools
import json
import os
import random
import signal
import sys
import time

from stowage_command import stowage

MODELS = {
    "mlp": ("mlp:layers=6,width=2048,hidden=8192 --batch 4096", "*=4"),
    "gpt2": ("gpt2:layers=6 --batch 8", "head=4"),
    "llama": ("llama3-8b:layers=2,loss=cross-entropy --batch 4", "head=4"),
    "vit": ("vit --batch 64", "*=2"),
}
SMALL = {
    "mlp": ("mlp:layers=3,width=64 --batch 32", "*=4"),
    "gpt2": ("gpt2:layers=2,width=64,seq=32,vocab=512 --batch 4", "head=4"),
    "llama": ("llama3-8b:layers=2,width=128,heads=4,seq=32,vocab=512,loss=cross-entropy --batch 4", "head=4"),
    "vit": ("vit:layers=2,width=64,image=32,patch=8,classes=10 --batch 4", "*=2"),
}
NUMBERS = {
    "fp32": ("--dtype", "fp32"),
    "tf32": ("--dtype", "tf32"),
    "bf16": ("--dtype", "bf16"),
    "autocast": ("--dtype", "fp32", "--autocast", "bf16"),
}
COLUMNS = {
    "model": list(MODELS),
    "dtype": list(NUMBERS),
    "optimizer": ["none", "sgd", "adamw", "adamw:master=fp32", "adamw:update=backward"],
    "decisions": ["offload", "recompute", "params", "gradients", "optimizer", "micro-batch", "all"],
}
ALLOW = {"gradients": "gradients,offload,params", "optimizer": "optimizer,params", "params": "params,offload"}
SHARES = ("60%", "70%", "80%", "90%", "95%")


def fits_together(cell):
    """Whether there is something of that kind to decide."""
    decisions, optimizer = cell["decisions"], cell["optimizer"]
    if decisions in ("gradients", "micro-batch") and "update=backward" in optimizer:
        return False
    return decisions != "optimizer" or optimizer.startswith("adamw")


def pairs_of(cell):
    return set(itertools.combinations(sorted(cell.items()), 2))


def cover(columns):
    """Cells that have every pair of values that fits together; always the same ones."""
    every = [dict(zip(columns, values)) for values in itertools.product(*columns.values())]
    every = [cell for cell in every if fits_together(cell)]
    random.Random(1).shuffle(every)
    missing = set().union(*(pairs_of(cell) for cell in every))
    cells = []
    while missing:
        cells.append(max(every, key=lambda cell: len(pairs_of(cell) & missing)))
        missing -= pairs_of(cells[-1])
    # Recordings together: each is made once.
    return sorted(cells, key=lambda cell: list(cell.values()))


class Bench:
    def __init__(self, options):
        self.options = options
        self.models = SMALL if options.device == "cpu" else MODELS

    def stowage(self, *words):
        return stowage(os.path.join(self.options.bin, "stowage"), *words, limit=self.options.limit)

    def file(self, *names):
        return os.path.join(self.options.out, "-".join(names).replace(":", "-").replace("=", "-").replace("*", "all"))

    def measure(self, cell):
        words, parts = self.models[cell["model"]]
        divided = parts if cell["decisions"] == "micro-batch" else ""
        stem = self.file(cell["model"], cell["dtype"], cell["optimizer"], *([divided] if divided else []))
        trace = stem + ".trace.json.gz"
        if not os.path.exists(trace):
            code, _, error = self.stowage("profile", *words.split(), *NUMBERS[cell["dtype"]],
                                          "--optimizer", cell["optimizer"], "--device", self.options.device, "-o", trace,
                                          *(["--threads", "1"] if self.options.device == "cpu" else []),
                                          *(["--micro-batches", divided] if divided else []))
            if code:
                return {**cell, "failed": "not recorded: " + error}
        allow = ALLOW.get(cell["decisions"], cell["decisions"])
        plan = stem + "-" + cell["decisions"] + ".plan.json"
        # Where an optimizer's step makes the peak nothing else lowers it: its state streams then, too.
        allowed = [allow] + ([allow + ",optimizer"] if cell["optimizer"].startswith("adamw") else [])
        for allow, share in itertools.product(allowed, SHARES):
            on = ["--budget-on", "reserved"] if self.options.device == "cuda" else []
            code, answer, error = self.stowage("plan", trace, "--budget", share, *on, "-o", plan,
                                               *([] if allow == "all" else ["--allow", allow]))
            if code == 124:
                return {**cell, "failed": error}
            if code == 0:
                break
        else:
            return {**cell, "infeasible": error or "no plan"}
        code, verified, error = self.stowage("verify", "--plan", plan, "--trace", trace, "--reference",
                                             stem + "-" + divided + ".reference.json.gz")
        if code == 124 or verified is None or "planned" not in verified:
            return {**cell, "budget": share, "failed": "not verified: " + error}
        planned, predicted, reference = (verified[key] for key in ("planned", "predicted", "reference"))
        return {
            **cell, "allowed": allow, "budget": share, "bitwise": verified["bitwise"], "failures": verified["failures"],
            "requested_off": planned["peak_requested_bytes"] - predicted["peak_requested_bytes"],
            "planned_off": (planned["peak_reserved_bytes"] or 0) - (predicted["peak_reserved_bytes"] or 0),
            "peak": planned["peak_requested_bytes"], "resident_ns": reference.get("step_ns"),
            "step_ns": planned["step_ns"], "predicted_ns": predicted["step_ns"],
            "interval_ns": verified["error"]["step_interval_ns"],
        }


def verdict(row, options):
    """What is wrong with a cell, or nothing."""
    if "failed" in row:
        return row["failed"]
    if "infeasible" in row:
        return ""
    if not row["bitwise"] or row["failures"]:
        return "; ".join(row["failures"]) or "not bitwise"
    if row["requested_off"] or row["planned_off"]:
        return f"{row['requested_off']} and {row['planned_off']} bytes off"
    off = abs(row["predicted_ns"] / row["step_ns"] - 1)
    within = abs(row["predicted_ns"] - row["step_ns"]) <= (row.get("interval_ns") or 0)
    return f"time {off:.1%} off" if options.device == "cuda" and off > options.time and not within else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--out", required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--seconds", type=float, default=540)
    parser.add_argument("--limit", type=float, default=200, help="seconds that one command may take")
    parser.add_argument("--time", type=float, default=0.04, help="what a time may be off by, a part of it")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and the command ends, too
    os.makedirs(options.out, exist_ok=True)
    columns = dict(COLUMNS)
    if options.device == "cpu":
        columns["dtype"] = [name for name in NUMBERS if name != "tf32"]
    kept = os.path.join(options.out, "cells.jsonl")
    done = []
    if os.path.exists(kept):
        with open(kept, encoding="utf-8") as file:
            done = [row for row in map(json.loads, file) if "failed" not in row]
    bench, begin, left = Bench(options), time.monotonic(), 0
    for cell in cover(columns):
        if any(all(row[column] == cell[column] for column in columns) for row in done):
            continue
        if time.monotonic() - begin > options.seconds:
            left += 1
            continue
        done.append(bench.measure(cell))
        with open(kept, "a", encoding="utf-8") as file:
            file.write(json.dumps(done[-1]) + "\n")
        print(" ".join(cell.values()), done[-1].get("budget", done[-1].get("infeasible", "")),
              verdict(done[-1], options) or "good", flush=True)
    wrong = [row for row in done if verdict(row, options)]
    planned = sum("budget" in row for row in done)
    print(f"{len(done)} cells, {planned} planned, {len(wrong)} wrong, {left} left")
    return 1 if wrong else 3 if left else 0


if __name__ == "__main__":
    sys.exit(main())
