#!/usr/bin/env python3
"""Trains plans on a card that has only their active bytes, 2 % of them and the CUDA context left.

    bench/gpu/full_card.py --bin build/release/bin llama3-8b-l9-tf32-math-h200=50% llama3-8b-l9-bf16-h200=50%

Each NAME=BUDGET is a recording of traces/samples and a budget on reserved bytes. Another process takes the rest of
the card. Then four steps each: the plan in planned memory, which must train; the same on the caching allocator; a
plan of 5 % more memory in planned memory, which must be refused. Needs torch in this Python, for the card's figures.
A JSON line each to stdout. Exit code 1 when a plan did not train or one that cannot fit did.
"""

import argparse
import ctypes
import glob
import gzip
import json
import os
import subprocess
import sys
import tempfile

from stowage_command import stowage

STEPS = "4"


def hold(free):
    """Takes memory of the card, page by page at last, until `free` bytes are left; keeps it until stdin ends."""
    import torch

    torch.zeros(1, device="cuda")
    pattern = os.path.join(os.path.dirname(torch.__file__), "..", "nvidia", "**", "libcudart.so*")
    runtime = ctypes.CDLL(glob.glob(pattern, recursive=True)[0])
    for size in (1 << 30, 64 << 20, 2 << 20):
        while torch.cuda.mem_get_info()[0] - size >= free:
            if runtime.cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(size)):
                break
    print(torch.cuda.mem_get_info()[0], flush=True)
    sys.stdin.read()


def measure(command, name, budget, folder):
    trace = f"traces/samples/{name}.trace.json.gz"
    with gzip.open(trace) as file:
        context = json.load(file)["env"]["context_bytes"]
    plan, larger = os.path.join(folder, "plan.json"), os.path.join(folder, "larger.json")
    _, answer, error = stowage(command, "plan", trace, "--budget", budget, "-o", plan)
    if answer is None:
        raise SystemExit(error)
    predicted = answer["predicted"]
    _, answer, error = stowage(command, "plan", trace, "--budget", str(predicted["peak_reserved_bytes"] * 105 // 100),
                               "-o", larger)
    if answer is None:
        raise SystemExit(error)
    free = predicted["peak_active_bytes"] * 102 // 100 + context
    row = {"name": name, "budget": budget, "active": predicted["peak_active_bytes"],
           "reserved": predicted["peak_reserved_bytes"], "larger": answer["predicted"]["peak_reserved_bytes"]}
    with subprocess.Popen([sys.executable, __file__, "--hold", str(free)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as other:
        row["left"] = int(other.stdout.readline())
        for label, words in (("planned", ["--plan", plan]), ("caching", ["--plan", plan, "--placement", "caching"]),
                             ("larger_planned", ["--plan", larger])):
            code, answer, error = stowage(command, "execute", *words, "--trace", trace, "--steps", STEPS)
            row[label] = {"exit": code, "losses": answer["measured"]["losses"] if code == 0 else None, "error": error}
        other.stdin.close()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="folder of the stowage command")
    parser.add_argument("--hold", type=int, metavar="BYTES", help="only take the card but for these bytes, until stdin ends")
    parser.add_argument("plans", nargs="*", metavar="NAME=BUDGET")
    options = parser.parse_args()
    if options.hold is not None:
        return hold(options.hold)
    if not options.bin or not options.plans:
        parser.error("--bin and at least one NAME=BUDGET are needed")
    good = True
    for each in options.plans:
        name, _, budget = each.partition("=")
        with tempfile.TemporaryDirectory() as folder:
            row = measure(os.path.join(options.bin, "stowage"), name, budget, folder)
        print(json.dumps(row), flush=True)
        good = good and row["planned"]["exit"] == 0 and row["larger_planned"]["exit"] != 0
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
