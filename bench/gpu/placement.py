#!/usr/bin/env python3
"""Measures plans in planned memory beside PyTorch's allocators, on a GPU.

    bench/gpu/placement.py --bin build/release/bin --out results gpt2-bf16-h200=50%=40 mlp-l6-fp32-h200=resident=20

Each NAME=BUDGET=STEPS is a recording of traces/samples, a budget on reserved bytes (or "resident") and how many steps
are run. For each: a plan in planned memory, `stowage verify`, and `stowage execute` in turn in each memory of --memory:
caching (PyTorch's allocator as it is), planned, expandable (the same with expandable segments), async (cudaMallocAsync).
Rows go to OUT/rows.json and a line each to stdout. Exit code 1 when a plan was not verified.
"""

import argparse
import glob
import json
import os
import sys

from stowage_command import stowage

KEPT = ("peak_requested_bytes", "peak_active_bytes", "peak_reserved_bytes", "used_bytes", "step_ns",
        "driver_allocations_after_first_step", "planned_memory")


SETTINGS = {"caching": "", "planned": "", "expandable": "expandable_segments:True", "async": "backend:cudaMallocAsync"}


class Stowage:
    def __init__(self, binary):
        self.command = os.path.join(binary, "stowage")

    def __call__(self, *words, settings=""):
        """(exit code, JSON or None). `settings`: of PyTorch's allocator."""
        environment = {"PYTORCH_CUDA_ALLOC_CONF": settings} if settings else {}
        code, answer, error = stowage(self.command, *words, **environment)
        if code:
            print(f"exit {code}: stowage {' '.join(words)}\n{error}", file=sys.stderr)
        return code, answer


def measure(command, name, budget, steps, out, memories, verifies):
    trace = f"traces/samples/{name}.trace.json.gz"
    plan = os.path.join(out, f"{name}-{budget.rstrip('%')}.plan.json")
    asked = ["--policy", "resident"] if budget == "resident" else ["--budget", budget]
    code, answer = command("plan", trace, *asked, "--placement", "planned", "-o", plan)
    row = {"name": name, "budget": budget, "exit": code, "bitwise": None,
           "predicted": answer["predicted"] if answer else None}
    if verifies:
        # One reference for all plans of a recording.
        row["exit"], verified = command("verify", "--plan", plan, "--trace", trace, "--reference",
                                        os.path.join(out, f"{name}.reference.json.gz"))
        if verified:
            row.update({key: verified.get(key) for key in ("bitwise", "failures")})
    for memory in memories:
        placement = "planned" if memory == "planned" else "caching"
        _, run = command("execute", "--plan", plan, "--trace", trace, "--placement", placement, "--steps", steps,
                         settings=SETTINGS[memory])
        row[memory] = {key: run["measured"].get(key) for key in KEPT} if run else None
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--out", required=True)
    parser.add_argument("--memory", default="caching,planned", help="of " + ",".join(SETTINGS))
    parser.add_argument("--no-verify", action="store_true", help="only run the plans")
    parser.add_argument("plans", nargs="+", metavar="NAME=BUDGET=STEPS")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    for kept in glob.glob(os.path.join(options.out, "*.reference.json.gz")):
        os.remove(kept)
    rows = []
    for each in options.plans:
        rows.append(measure(Stowage(options.bin), *each.split("="), options.out, options.memory.split(","),
                            not options.no_verify))
        with open(os.path.join(options.out, "rows.json"), "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
        print(json.dumps(rows[-1]), flush=True)
    return 0 if all(row["exit"] == 0 and (options.no_verify or row["bitwise"]) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
