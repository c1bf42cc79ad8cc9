#!/usr/bin/env python3
"""Measures what people use today beside Stowage, on Stowage's headline workload, and writes the table.

    bench/peers/measure.py --out peers --dtype tf32,bf16 --attention efficient --model llama3-8b:layers=9

For each dtype and attention, each row (plans.py) runs in a process of its own (row.py) under a time limit.
One JSON line a row goes to OUT/peers.jsonl, as soon as it is there; then OUT/table.md is made (table.py), with
what `stowage verify --json` wrote where --stowage names it. Out of memory, not available and out of time are
rows too; the exit code is 1 when a row failed otherwise, or when none was measured.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time

import table

HERE = os.path.dirname(os.path.abspath(__file__))
PLAIN = ["none", "save_on_cpu", "trl", "checkpoint"]
COMPILED = ["compile-1.0", "compile-0.5", "compile-0.2"]
TINY = ["--model", "llama3-8b:layers=2,width=64,heads=4,kv_heads=2,hidden=128,vocab=512,seq=64", "--batch", "2"]


def rows_of(given, attention):
    """Without --rows: everything; compiled rows only with the attention that a compiled step picks well."""
    if given:
        return given
    return PLAIN + (COMPILED if attention == "efficient" else [])


def last_json(text):
    for line in reversed(text.splitlines()):
        if line.startswith("{"):
            try:
                return json.loads(line)
            except ValueError:
                return None
    return None


def run_row(words, limit, log):
    """What the row's process says, or why it said nothing. Its children end with it."""
    command = [sys.executable, os.path.join(HERE, "row.py"), *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    try:
        out, _ = child.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return {"status": "time limit", "reason": f"{limit:.0f} s"}
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)  # compile workers may outlive a row
        except ProcessLookupError:
            pass
        child.wait()
    answer = last_json(out)
    if answer is not None:
        return answer
    if child.returncode == -signal.SIGKILL:
        return {"status": "out of memory", "reason": "killed: out of host memory?"}
    return {"status": "failed", "reason": f"exit code {child.returncode}, no result; see the log"}


def measure_all(options, jsonl, log):
    begin = time.monotonic()
    for dtype in options.dtype:
        for attention in options.attention:
            for row in rows_of(options.rows, attention):
                config = {
                    "schema": "stowage-peer/1", "row": row, "model": options.model, "batch": options.batch,
                    "dtype": dtype, "attention": attention, "device": options.device, "seed": options.seed,
                    "warmup": options.warmup,
                }  # fmt: skip
                words = [f"--{key}={config[key]}" for key in config if key != "schema"]
                words.append(f"--steps={options.steps}")
                left = options.budget - (time.monotonic() - begin)
                began = time.monotonic()
                if left < options.least:
                    answer = {"status": "not run", "reason": f"--budget {options.budget:.0f} s is spent"}
                else:
                    log.write(f"$ row.py {' '.join(words)}\n")
                    log.flush()
                    answer = run_row(words, min(left, options.limit), log)
                line = config | answer | {"row_seconds": round(time.monotonic() - began, 1)}
                jsonl.write(json.dumps(line) + "\n")
                jsonl.flush()
                said = f"{table.config_name(line)}  {row}: {table.brief(line)}"
                print(f"  {line['row_seconds']:6.1f} s  {said}", flush=True)
                yield line


def words_of(text):
    return [word for word in text.split(",") if word]


def parse(argv):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama3-8b:layers=9", help="llama3-8b[:NAME=VALUE,..], see docs/models.md")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dtype", type=words_of, default=["fp32"], help="of fp32, tf32, bf16; with commas")
    parser.add_argument("--attention", type=words_of, default=["math"], help="of math, efficient; with commas")
    parser.add_argument("--rows", type=words_of, help=f"of {', '.join(PLAIN + COMPILED)}, stowage-BUDGET; with commas")
    parser.add_argument("--warmup", type=int, default=3, help="steps before the measured ones")
    parser.add_argument("--steps", type=int, default=7, help="measured steps")
    parser.add_argument("--limit", type=float, default=240, help="seconds for a row")
    parser.add_argument("--budget", type=float, default=3600, help="seconds for all rows")
    parser.add_argument("--least", type=float, default=15, help="seconds left below which no row is begun")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda", help="cpu: only to try the scripts")
    parser.add_argument("--tiny", action="store_true", help="a tiny model, to try the scripts")
    parser.add_argument("--stowage", action="append", default=[], metavar=table.STOWAGE, help=table.STOWAGE_HELP)
    parser.add_argument("--out", required=True, help="folder for results")
    options = parser.parse_args(argv)
    if options.tiny:
        options = parser.parse_args([*argv, *TINY])
    for flag, given, known in [
        ("--dtype", options.dtype, ["fp32", "tf32", "bf16"]),
        ("--attention", options.attention, ["math", "efficient"]),
        ("--rows", options.rows or [], PLAIN + COMPILED),
    ]:
        for word in given:
            if word not in known and not (flag == "--rows" and word.startswith("stowage-")):
                parser.error(f"{flag}: '{word}' is none of {', '.join(known)}")
    if options.warmup < 0 or options.steps < 1:
        parser.error("--warmup is at least 0, --steps at least 1")
    return options


def main():
    options = parse(sys.argv[1:])
    os.makedirs(options.out, exist_ok=True)
    file = os.path.join(options.out, "peers.jsonl")
    with open(file, "a", encoding="utf-8") as jsonl, \
         open(os.path.join(options.out, "log.txt"), "a", encoding="utf-8") as log:  # fmt: skip
        lines = list(measure_all(options, jsonl, log))
    text = table.make(table.read_lines([file]), table.read_stowage(options.stowage))
    with open(os.path.join(options.out, "table.md"), "w", encoding="utf-8") as out:
        out.write(text)
    print(text)
    failed = any(line["status"] == "failed" for line in lines)
    sys.exit(1 if failed or not any(line["status"] == "ok" for line in lines) else 0)


if __name__ == "__main__":
    main()
