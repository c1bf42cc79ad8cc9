#!/usr/bin/env python3
"""How long planning takes, and how good the plans are: the table of docs/results.md.

    bench/planning_table.py --bin build/core/bin [--placement caching]

For each recording of traces/samples and the budgets 90, 75, 60, 50 and 40 % of its resident peak, and 5 % above its
floor: wall time of the whole `stowage plan` command, the predicted step over the resident one, and the bound. The
memory is what `plan` takes by itself, or --placement. Cells of a Markdown table, then the median and the worst time.
"""

import argparse
import glob
import json
import os
import statistics
import subprocess
import time

SHARES = (90, 75, 60, 50, 40)
ENDING = ".trace.json.gz"


def plan(command, sample, budget, more):
    """(seconds, JSON) of one `stowage plan`."""
    begin = time.monotonic()
    done = subprocess.run([command, "plan", sample, "--budget", budget, "--json", *more], capture_output=True, text=True,
                          check=False)
    return time.monotonic() - begin, json.loads(done.stdout)


def cell(seconds, answer):
    if not answer["feasible"]:
        return f"{seconds:.1f} s, none"
    resident = answer["resident"]["step_ns"]
    over = [100 * (step / resident - 1) for step in (answer["predicted"]["step_ns"], answer["lower_bound"]["step_ns"])]
    return f"{seconds:.1f} s, {over[0]:+.1f} / {over[1]:+.1f} %"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the stowage command")
    parser.add_argument("--placement", help="caching or planned")
    options = parser.parse_args()
    command = os.path.join(options.bin, "stowage")
    more = ["--placement", options.placement] if options.placement else []
    times = []
    print("| sample | " + " | ".join(f"{share} %" for share in SHARES) + " | floor and 5 % |")
    print("| --- |" + " --- |" * (len(SHARES) + 1))
    for sample in sorted(glob.glob(f"traces/samples/*{ENDING}")):
        _, lowest = plan(command, sample, "1", more)
        budgets = [f"{share}%" for share in SHARES] + [str(lowest["kept_from_bytes"] * 105 // 100)]
        answers = [plan(command, sample, budget, more) for budget in budgets]
        times += [seconds for seconds, _ in answers]
        name = os.path.basename(sample)[:-len(ENDING)]
        print(f"| {name} | " + " | ".join(cell(*each) for each in answers) + " |", flush=True)
    print(f"\n{len(times)} plans: median {statistics.median(times):.2f} s, worst {max(times):.2f} s, "
          f"{sum(seconds > 2 for seconds in times)} above 2 s")


if __name__ == "__main__":
    main()
