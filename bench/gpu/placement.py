#!/usr/bin/env python3
"""Measures plans on planned memory beside the caching allocator, on a GPU.

    bench/gpu/placement.py --bin build/release/bin --out results gpt2-bf16-h200=50%=40 mlp-l6-fp32-h200=resident=20

Each NAME=BUDGET=STEPS is a recording of traces/samples, a budget on active bytes (or "resident") and how many steps
are run. For each: a plan, `stowage verify --placement planned`, and `stowage execute` with either placement in turn.
Rows go to OUT/rows.json and a line each to stdout. Exit code 1 when a plan was not verified.
"""

import argparse
import json
import os
import subprocess
import sys

KEPT = ("peak_requested_bytes", "peak_active_bytes", "peak_reserved_bytes", "used_bytes", "step_ns",
        "driver_allocations_after_first_step", "planned_memory")


class Stowage:
    def __init__(self, binary):
        self.command = os.path.join(binary, "stowage")

    def __call__(self, *words):
        """(exit code, JSON or None)."""
        done = subprocess.run([self.command, *words, "--json"], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"exit {done.returncode}: stowage {' '.join(words)}\n{done.stderr[-1000:]}", file=sys.stderr)
        try:
            return done.returncode, json.loads(done.stdout)
        except ValueError:
            return done.returncode, None


def measure(stowage, name, budget, steps, out):
    trace = f"traces/samples/{name}.trace.json.gz"
    plan = os.path.join(out, f"{name}-{budget.rstrip('%')}.plan.json")
    asked = ["--policy", "resident"] if budget == "resident" else ["--budget", budget, "--budget-on", "active"]
    stowage("plan", trace, *asked, "-o", plan)
    code, verified = stowage("verify", "--plan", plan, "--trace", trace, "--placement", "planned")
    row = {"name": name, "budget": budget, "exit": code}
    if verified:
        row.update({key: verified.get(key) for key in ("bitwise", "failures", "predicted")})
    for placement in ("caching", "planned"):
        _, run = stowage("execute", "--plan", plan, "--trace", trace, "--placement", placement, "--steps", steps)
        row[placement] = {key: run["measured"].get(key) for key in KEPT} if run else None
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--out", required=True)
    parser.add_argument("plans", nargs="+", metavar="NAME=BUDGET=STEPS")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    rows = []
    for each in options.plans:
        rows.append(measure(Stowage(options.bin), *each.split("="), options.out))
        with open(os.path.join(options.out, "rows.json"), "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
        print(json.dumps(rows[-1]), flush=True)
    return 0 if all(row["exit"] == 0 and row.get("bitwise") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
