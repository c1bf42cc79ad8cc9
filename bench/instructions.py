#!/usr/bin/env python3
"""Compares two builds of stowage_bench by instructions, which a busy machine does not change.

    bench/instructions.py BASE/stowage_bench build/core/bin/stowage_bench
    bench/instructions.py BASE/stowage_bench build/core/bin/stowage_bench --filter '^(Replay|Lower)' --times 7

Each benchmark runs under callgrind with a fixed number of iterations and with three times as many; the difference
is what the iterations cost, without the setup and without naming a function, so both builds may have
other ones inside. Benchmarks that only one of them has are named. With --times N both also run
without callgrind, in turn, N times each: medians, and rates such as evaluations a second.
Exit code 1 when a count is above the limit or a benchmark of BASE is missing. Needs valgrind; builds nothing:

    cmake --preset core -DSTOWAGE_BUILD_BENCH=ON && cmake --build --preset core --target stowage_bench

A commit whose bench/ knows no STOWAGE_BENCH_ITERATIONS is refused: build it with a bench/ that does.
"""

import argparse
import concurrent.futures
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

REPLAY_AND_LOWERING = "^(Replay|Lower|Index|FindHazards|BM_Evaluate)"


def output_of(command, iterations=None):
    environment = dict(os.environ)
    environment.pop("STOWAGE_BENCH_ITERATIONS", None)
    if iterations is not None:
        environment["STOWAGE_BENCH_ITERATIONS"] = str(iterations)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def names_in(program, pattern, iterations=None):
    listed = output_of([program, "--benchmark_list_tests", f"--benchmark_filter={pattern}"], iterations)
    return [line for line in listed.splitlines() if line and not line.startswith("Failed to match")]


def counted_names(program, pattern):
    """Without "/iterations:1", and only what obeys the number of iterations."""
    fixed = [name for name in names_in(program, pattern, 1) if name.endswith("/iterations:1")]
    if not fixed and names_in(program, pattern):
        sys.exit(f"{program}: does not know STOWAGE_BENCH_ITERATIONS; build it with a bench/ that does")
    return [name.removesuffix("/iterations:1") for name in fixed]


def collected(program, name, iterations):
    """Instructions of the whole process."""
    with tempfile.NamedTemporaryFile(prefix="callgrind.") as profile:
        output_of(["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={profile.name}", program,
                   f"--benchmark_filter=^{re.escape(name)}/iterations:{iterations}$"], iterations)
        totals = re.findall(r"^(?:totals|summary): (\d+)", profile.read().decode(), re.MULTILINE)
    if not totals:
        sys.exit(f"{program}: callgrind counted nothing for {name}")
    return int(totals[-1])


def instructions(program, name, iterations):
    few = collected(program, name, iterations)
    many = collected(program, name, 3 * iterations)
    return (many - few) / (2 * iterations)


def run_once(program, name):
    report = json.loads(output_of([program, f"--benchmark_filter=^{re.escape(name)}$", "--benchmark_min_time=0.2",
                                   "--benchmark_format=json"]))
    row = report["benchmarks"][0]
    rates = {key: value for key, value in row.items() if key.endswith("/s") or key == "items_per_second"}
    return row["cpu_time"], row["time_unit"], rates


def in_turn(base, now, name, rounds):
    """One line: median CPU time of each, and the ratio; the rates too."""
    runs = {base: [], now: []}
    for each in range(rounds):
        for program in (base, now) if each % 2 == 0 else (now, base):
            runs[program].append(run_once(program, name))
    times = [statistics.median(run[0] for run in runs[program]) for program in (base, now)]
    lines = [f"{name:42} {times[0]:14.2f} {times[1]:14.2f} {runs[base][0][1]:4} {times[1] / times[0]:7.3f}"]
    for rate in sorted(set(runs[base][0][2]) & set(runs[now][0][2])):
        both = [statistics.median(run[2][rate] for run in runs[program]) for program in (base, now)]
        lines.append(f"{'  ' + rate:42} {both[0]:14.0f} {both[1]:14.0f}      {both[1] / both[0]:7.3f}")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("now")
    parser.add_argument("--filter", default=REPLAY_AND_LOWERING, help="of benchmarks (default %(default)s)")
    parser.add_argument("--iterations", type=int, default=2, help="of the shorter run (default %(default)s)")
    parser.add_argument("--limit", type=float, default=1.05, help="of now / base (default %(default)s)")
    parser.add_argument("--times", type=int, default=0, help="rounds without callgrind (default none)")
    parser.add_argument("--jobs", type=int, default=2, help="runs under callgrind at once (default %(default)s)")
    options = parser.parse_args()
    base, now = os.path.abspath(options.base), os.path.abspath(options.now)

    names, also = counted_names(base, options.filter), counted_names(now, options.filter)
    if not names:
        sys.exit(f"{base}: no benchmark matches {options.filter}")
    missing = [name for name in names if name not in also]
    names = [name for name in names if name in also]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        pending = [[pool.submit(instructions, program, name, options.iterations) for program in (base, now)]
                   for name in names]
        above = []
        print(f"{'instructions of one iteration':42} {'base':>14} {'now':>14}      {'ratio':>7}", flush=True)
        for name, (before, after) in zip(names, pending):
            ratio = after.result() / before.result()
            if ratio > options.limit:
                above.append(name)
            mark = "  above the limit" if ratio > options.limit else ""
            print(f"{name:42} {before.result():14.0f} {after.result():14.0f}      {ratio:7.3f}{mark}", flush=True)
    if options.times > 0:
        print(f"\n{'CPU time, median of ' + str(options.times) + ' in turn':42} {'base':>14} {'now':>14}"
              f"      {'ratio':>7}", flush=True)
        for name in names:
            print("\n".join(in_turn(base, now, name, options.times)), flush=True)
    for name in missing:
        print(f"{name}: {now} does not have it")
    for name in also:
        if name not in names:
            print(f"{name}: {base} does not have it")
    print(f"\n{len(names)} compared, {len(above)} above {options.limit:g} of base, {len(missing)} missing")
    return 1 if above or missing else 0


if __name__ == "__main__":
    sys.exit(main())
