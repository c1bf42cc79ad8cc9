#!/usr/bin/env python3
"""Measures recordings and plans on a GPU and writes the rows of docs/results.md.

    bench/gpu/measure.py --bin build/release/bin --out results MODEL=SPEC..

    bench/gpu/measure.py --bin build/release/bin --out results \\
        "mlp-l6-fp32=mlp:layers=6,width=2048,hidden=8192 --batch 8192 --dtype fp32"

For each model: one recording; a plan for each budget (75 % and 50 % of the resident peak, or the floor
plus 5 % where 50 % is infeasible) and for each policy; `stowage verify` of every plan. Every command, its
exit code and its JSON output go to OUT/NAME/; the table to OUT/table.md. The exit code is 1 when a
plan was not made or its verification failed, when none was verified, or when a row breaks a limit:
active bytes within 0.1 % and the step time within 5 % of the prediction, 99.5 % of the GPU's time
attributed, and, where the GPU is busy for 90 % of the step, a timing pass at most 2 % slower than the clean
one. The rows that failed are named at the end. Only the standard library is used.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import time

CACHING = ("--placement", "caching")  # the tables are of PyTorch's allocator
POLICIES = ["resident", "layerwise", "save_on_cpu", "torchtune", "thunder"]


class Runner:
    def __init__(self, binary, folder):
        self.stowage = os.path.join(binary, "stowage")
        self.folder = folder
        self.log = open(os.path.join(folder, "log.txt"), "a", encoding="utf-8")

    def __call__(self, *words):
        """Runs `stowage WORDS`; (exit code, JSON or None, stderr)."""
        begin = time.monotonic()
        done = subprocess.run([self.stowage, *words], capture_output=True, text=True, check=False)
        seconds = time.monotonic() - begin
        self.log.write(f"$ stowage {shlex.join(words)}\n{done.stderr}exit {done.returncode}, {seconds:.1f} s\n")
        self.log.flush()
        print(f"  {seconds:6.1f} s  exit {done.returncode}  stowage {shlex.join(words)}", flush=True)
        if done.returncode not in (0, 1):
            print(done.stderr[-2000:], flush=True)
        try:
            return done.returncode, json.loads(done.stdout), done.stderr
        except ValueError:
            return done.returncode, None, done.stderr

    def keep(self, name, value):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            json.dump(value, file, indent=1)


def gb(value):
    return "-" if value is None or value < 0 else f"{value / 1e9:.3f}"


def ms(value):
    return "-" if value is None else f"{value / 1e6:.2f}"


def floor_of(answer, errors):
    """The floor in bytes that an infeasible answer names."""
    for key in ("floor_bytes", "memory_floor_bytes"):
        if answer and isinstance(answer.get(key), int):
            return answer[key]
    found = re.search(r"floor is (\d+) bytes", json.dumps(answer or {}) + errors)
    return int(found.group(1)) if found else None


def make_plans(run, trace, folder, extra_budgets):
    """(label, plan file) of everything that is to be verified, and whether every plan was made."""
    plans, good = [], True
    for label, budget in [("auto 75 %", "75%"), ("auto 50 %", "50%"), *extra_budgets]:
        file = os.path.join(folder, f"{label.replace(' ', '').replace('%', '')}.plan.json")
        code, answer, errors = run("plan", trace, "--budget", budget, *CACHING, "-o", file, "--json")
        if code == 1:
            floor = floor_of(answer, errors)
            if floor is None:
                print(f"  no floor in the answer: {errors.strip()[-300:]}", flush=True)
                good = False
                continue
            label = "auto floor + 5 %"
            file = os.path.join(folder, "autofloor.plan.json")
            if (label, file) in plans:
                continue
            code, answer, errors = run("plan", trace, "--budget", str(floor * 105 // 100), *CACHING, "-o", file,
                                       "--json")
        if code == 0:
            run.keep(os.path.basename(file).replace(".plan.json", ".answer.json"), answer)
            plans.append((label, file))
        else:
            print(f"  {label}: no plan: {errors.strip()[-300:]}", flush=True)
            good = False
    for policy in POLICIES:
        file = os.path.join(folder, f"{policy}.plan.json")
        code, answer, errors = run("plan", trace, "--policy", policy, *CACHING, "-o", file, "--json")
        if code == 0:
            plans.append((policy, file))
        else:
            print(f"  {policy}: no plan: {errors.strip()[-300:]}", flush=True)
            good = False
    return plans, good


ACTIVE_LIMIT = 0.001
STEP_LIMIT = 0.05
ATTRIBUTED_LIMIT = 0.995
OVERHEAD_LIMIT = 0.02
GPU_BOUND = 0.9  # share of the step in which the GPU is busy


def broken_by_plan(verify):
    """What one verified plan breaks, in words."""
    planned, predicted = verify["planned"], verify["predicted"]
    broken = list(verify.get("failures", []))
    if not verify["passed"] and not broken:
        broken.append("verification failed")
    for key, limit in [("peak_active_bytes", ACTIVE_LIMIT), ("step_ns", STEP_LIMIT)]:
        off = abs(predicted[key] - planned[key]) / planned[key] if planned.get(key) else 0.0
        if off > limit:
            broken.append(f"{key} is {off * 100:.2f} % off the prediction, allowed are {limit * 100:g} %")
    return broken


def broken_by_recording(profile):
    gpu, broken = profile["gpu"], []
    if gpu["attributed_ratio"] < ATTRIBUTED_LIMIT:
        broken.append(f"{gpu['attributed_ratio'] * 100:.2f} % of the GPU's time attributed")
    overhead = gpu["timing_overhead"]
    if overhead is not None and overhead > OVERHEAD_LIMIT:
        if gpu["busy_ns"] >= GPU_BOUND * profile["step_ns"]:
            broken.append(f"the timing pass is {overhead * 100:.2f} % slower than the clean one")
        else:
            print(f"  timing pass {overhead * 100:.2f} % over clean: not judged, the step is not GPU-bound", flush=True)
    return broken


def row(model, label, verify):
    planned, predicted, reference = verify["planned"], verify["predicted"], verify["reference"]

    def error(key):
        return (predicted[key] - planned[key]) / planned[key] * 100 if planned.get(key) else 0.0

    # With everything offloaded its figures are not those of the step without a plan.
    resident = {} if reference.get("kind") == "offload_all" else reference
    step = ms(planned["step_ns"])
    if resident:
        step += f" ({(planned['step_ns'] / resident['step_ns'] - 1) * 100:+.1f} %)"
    return [
        model,
        label,
        "yes" if verify["bitwise"] else ("repeats itself: " + str(reference.get("repeatable"))),
        gb(resident.get("peak_active_bytes")),
        gb(planned["peak_active_bytes"]),
        str(predicted["peak_requested_bytes"] - planned["peak_requested_bytes"]),
        f"{error('peak_active_bytes'):+.3f} %",
        f"{gb(planned['peak_reserved_bytes'])} ({error('peak_reserved_bytes'):+.2f} %)",
        gb(planned["host_bytes"]),
        ms(resident.get("step_ns")),
        step,
        f"{ms(predicted['step_ns'])} ({error('step_ns'):+.1f} %)",
        f"{ms(planned['stall_ns'])} / {ms(predicted['stall_ns'])}",
        f"{planned.get('driver_allocations_after_first_step', '-')} / "
        f"{planned.get('pinned_after_first_step', '-')}",
    ]


HEAD = [
    "model", "plan", "bitwise", "resident active GB", "active GB", "requested off, B", "active off",
    "reserved GB (off)", "host GB", "resident ms", "step ms (over resident)", "predicted ms (off)",
    "stall ms / predicted", "driver allocations / pinnings after the first step",
]  # fmt: skip


def recording_row(name, profile):
    gpu, quality = profile["gpu"], profile["quality"]
    overhead = gpu["timing_overhead"]  # null, like the step time, when the step did not fit
    return [
        name,
        ms(profile["step_ns"]),
        f"{gb(profile['peak_requested_bytes'])} / {gb(profile['peak_active_bytes'])} / "
        f"{gb(profile['peak_reserved_bytes'])}",
        str(profile["saved_tensors"]),
        f"{gpu['kernels']} + {gpu['copies'] + gpu['memsets']}",
        f"{gpu['busy_ns'] / 1e6:.2f}",
        f"{gpu['attributed_ratio'] * 100:.2f} %",
        "-" if overhead is None else f"{overhead * 100:+.2f} %",
        f"{quality['dropped_records']} / {quality['zero_timestamp_records']} / {gpu['causality_violations']}",
    ]


RECORDING_HEAD = [
    "model", "step ms", "peak requested / active / reserved GB", "saved tensors", "kernels + copies",
    "GPU busy ms", "attributed", "timing pass over clean", "dropped / no time / clamped",
]  # fmt: skip


def measure(binary, out, name, words, extra_budgets, quick):
    folder = os.path.join(out, name)
    os.makedirs(folder, exist_ok=True)
    run = Runner(binary, folder)
    trace = os.path.join(folder, f"{name}.trace.json.gz")
    code, profile, errors = run("profile", *words, "-o", trace, "--json")
    if code != 0:
        print(f"{name}: not recorded: {errors.strip()[-1000:]}", flush=True)
        return [], [], False, [f"{name}: not recorded"]
    run.keep("profile.json", profile)
    rows = []
    failed = [f"{name}, recording: {what}" for what in broken_by_recording(profile)]
    # Every plan is of the same step: its runs without a plan are made once, and now.
    reference = os.path.join(folder, "reference.json.gz")
    if os.path.exists(reference):
        os.remove(reference)
    plans, good = make_plans(run, trace, folder, extra_budgets)
    for label, file in plans:
        if quick and label not in quick:
            continue
        code, verify, errors = run("verify", "--plan", file, "--reference", reference, "--json")
        if verify and not verify.get("reference", {}).get("repeatable", True):
            # Judged by how far the two references are apart, which the kept digests do not tell.
            code, verify, errors = run("verify", "--plan", file, "--json")
        if verify is None or "planned" not in verify:
            print(f"{name}, {label}: {errors.strip()[-600:]}", flush=True)
            failed.append(f"{name}, {label}: not verified")
            continue
        run.keep(os.path.basename(file).replace(".plan.json", ".verify.json"), verify)
        rows.append(row(name, label, verify))
        broken = broken_by_plan(verify)
        failed.extend(f"{name}, {label}: {what}" for what in broken)
        if code != 0 and not broken:
            failed.append(f"{name}, {label}: exit code {code}")
        print("  | " + " | ".join(rows[-1]) + " |", flush=True)
    if not rows:
        print(f"{name}: no plan was verified", flush=True)
        good = False
    return [recording_row(name, profile)], rows, good and not failed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder with stowage and stowage-torch")
    parser.add_argument("--out", required=True, help="folder for results")
    parser.add_argument("--budget", action="append", default=[], help="one more budget for auto")
    parser.add_argument("--only", action="append", default=[], help="verify only these plans, by label")
    parser.add_argument("models", nargs="+", metavar="NAME=SPEC OPTIONS")
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    extra = [(f"auto {budget}", budget) for budget in options.budget]
    recordings, rows, good, failed = [], [], True, []
    for model in options.models:
        name, _, words = model.partition("=")
        print(f"{name}: {words}", flush=True)
        recorded, more, fine, broken = measure(
            options.bin, options.out, name, shlex.split(words), extra, options.only
        )
        recordings, rows, good, failed = recordings + recorded, rows + more, good and fine, failed + broken
    with open(os.path.join(options.out, "table.md"), "w", encoding="utf-8") as file:
        for head, lines in [(RECORDING_HEAD, recordings), (HEAD, rows)]:
            for line in [head, ["---"] * len(head), *lines]:
                file.write("| " + " | ".join(line) + " |\n")
            file.write("\n")
    for what in failed:
        print(f"FAILED {what}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
