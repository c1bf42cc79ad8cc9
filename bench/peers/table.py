#!/usr/bin/env python3
"""Makes one markdown table from the rows of measure.py and, beside them, Stowage's own results.

    bench/peers/table.py peers/peers.jsonl --stowage "tf32/efficient:auto 34.1 GB=auto.verify.json"

"over no plan" is a step's time against the step without a plan of the same program: transformers' for a peer,
the verification's reference for a plan of Stowage's. Where there is what `stowage execute --json` wrote of a plan
that moves nothing, as many steps in a row as the peer's, that is what is compared with transformers' step: a GPU
at its power limit takes longer for its twentieth step than for its third. Of a row measured twice the later line counts, unless it was
not run. Only the standard library is used.
"""

import argparse
import json
import re
import sys

STOWAGE = "[DTYPE/ATTENTION:]LABEL=FILE"
STOWAGE_HELP = (
    "what `stowage verify --json` wrote, or `execute --json` of a plan that moves nothing; the configuration may be "
    "left out where there is only one"
)
NAMES = {
    "none": "no plan (transformers, eager)",
    "save_on_cpu": "`save_on_cpu`, pinned",
    "trl": "TRL activation offloading, stash 5",
    "checkpoint": "checkpointing per layer",
    "compile-1.0": "`torch.compile`, budget 1.0",
    "compile-0.5": "`torch.compile`, budget 0.5",
    "compile-0.2": "`torch.compile`, budget 0.2",
}
HEAD = ["plan", "active GB", "reserved GB", "step s", "over no plan", "gradients as without"]


def config_of(line):
    """Rows of one configuration stand in one part of the table."""
    return line["model"], line["batch"], line["dtype"], line["attention"], line["device"]


def config_name(line):
    return f"{line['dtype']}/{line['attention']}"


def gb(value):
    return "-" if value is None or value < 0 else f"{value / 1e9:.2f}"


def seconds(value):
    return "-" if value is None else f"{value / 1e9:.3f}"


def over(value, base):
    return "-" if not base else f"{(value / base - 1) * 100:+.1f} %"


def brief(line):
    if line["status"] != "ok":
        return f"{line['status']}: {line.get('reason', '')}"[:200]
    return f"{gb(line['peak_active_bytes'])} GB active, {seconds(line['step_ns'])} s"


def read_lines(files):
    lines = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.strip()]
    for line in lines:
        if line.get("schema") != "stowage-peer/1":
            raise SystemExit(f"not a row of measure.py: schema {line.get('schema')!r}")
    return lines


def read_stowage(words):
    """[(configuration's name or "", label, what verify or execute wrote)]"""
    result = []
    for word in words:
        match = re.fullmatch(r"(?:((?:fp32|tf32|bf16)/(?:math|efficient)):)?(.+?)=(.+)", word)
        if not match:
            raise SystemExit(f"--stowage {word}: {STOWAGE}")
        with open(match[3], encoding="utf-8") as file:
            answer = json.load(file)
        if answer.get("schema") not in ("stowage-verify/1", "stowage-execute/1"):
            raise SystemExit(f"{match[3]}: not what `stowage verify --json` or `execute --json` writes")
        if answer["schema"] == "stowage-execute/1" and answer["measured"]["host_bytes"] != 0:
            raise SystemExit(f"{match[3]}: of a plan that moves something; verify it")
        result.append((match[1] or "", match[2], answer))
    return result


def peer_row(line, base):
    name = NAMES.get(line["row"], line["row"])
    if line["status"] != "ok":
        reason = (line.get("reason", "").splitlines() or [""])[0][:80]
        what = line["status"]
        if reason and what != "out of memory":
            what += f" ({reason})"
        return [name, what, "-", "-", "-", "-"]
    if base is None:
        same = "-"
    else:
        same = "yes" if line["gradients"] == base["gradients"] else "no"
    steady = "" if line["peak_active_constant"] else " (varies)"
    return [
        name, gb(line["peak_active_bytes"]) + steady, gb(line["peak_reserved_bytes"]), seconds(line["step_ns"]),
        over(line["step_ns"], base and base["step_ns"]), same,
    ]  # fmt: skip


def without_plan(results):
    """Stowage's step without a plan: an executed one, else the first verification's reference."""
    executed = [answer["measured"] for _, answer in results if answer["schema"] == "stowage-execute/1"]
    if len(executed) > 1:
        raise SystemExit("--stowage: two results of `stowage execute` for one configuration")
    return executed[0] if executed else results[0][1]["reference"]


def stowage_rows(results):
    """Rows of (label, what verify or execute wrote)."""
    if not results:
        return []
    base = without_plan(results)
    rows = [[
        "Stowage, no plan", gb(base["peak_active_bytes"]), gb(base["peak_reserved_bytes"]), seconds(base["step_ns"]),
        over(1, 1), "yes",
    ]]  # fmt: skip
    for label, verification in results:
        if verification["schema"] == "stowage-execute/1":
            continue
        reference, planned = verification["reference"], verification["planned"]
        rows.append([
            f"Stowage, {label}", gb(planned["peak_active_bytes"]), gb(planned["peak_reserved_bytes"]),
            seconds(planned["step_ns"]), over(planned["step_ns"], reference["step_ns"]),
            "yes" if verification["bitwise"] else "no",
        ])  # fmt: skip
    return rows


def compared(base, ours):
    """Whether Stowage's step is transformers' step: its own time and memory beside the Python run's."""
    if base is None or base["peak_active_bytes"] is None:
        return ""
    memory = over(ours["peak_active_bytes"], base["peak_active_bytes"])
    time = over(ours["step_ns"], base["step_ns"])
    return f"Stowage's step without a plan against transformers': active {memory}, time {time}.\n\n"


def notes(lines):
    """What a reader must know of the rows: machine, versions, and steps that were not steady."""
    done = [line for line in lines if line["status"] == "ok"]
    if not done:
        return ""
    first = done[0]
    versions = ", ".join(f"{name} {version}" for name, version in first["versions"].items() if version)
    text = f"{first['device_name']}; {versions}. Median of {len(first['steps'])} steps after {first['warmup']}"
    text += "; deterministic algorithms" if all(line["deterministic"] for line in done) else ""
    text += ".\n"
    for line in done:
        if line.get("driver_allocations_in_measured_steps") or line.get("pinned_in_measured_steps"):
            text += (
                f"Not steady: {config_name(line)} {line['row']} took device memory from the driver "
                f"{line['driver_allocations_in_measured_steps']} times and pinned host memory "
                f"{line['pinned_in_measured_steps']} times in its measured steps.\n"
            )
    return text


def markdown(rows):
    return "".join("| " + " | ".join(row) + " |\n" for row in [HEAD, ["---"] * len(HEAD), *rows])


def make(lines, stowage):
    parts = {}
    for line in lines:
        rows = parts.setdefault(config_of(line), {})
        if line["status"] != "not run" or line["row"] not in rows:
            rows[line["row"]] = line
    names = {name: config_name(next(iter(rows.values()))) for name, rows in parts.items()}
    for config, label, _ in stowage:
        matching = [name for name in names.values() if config in ("", name)]
        if len(matching) != 1:
            raise SystemExit(f"--stowage {label}: {len(matching)} configurations are meant; say which of "
                             f"{', '.join(names.values())}")  # fmt: skip
    text = ""
    for key, name in names.items():
        rows = parts[key]
        base = rows.get("none")
        base = base if base and base["status"] == "ok" else None
        ours = [(label, verification) for config, label, verification in stowage if config in ("", name)]
        text += f"### {key[0]}, batch {key[1]}, {key[2]}, attention={key[3]}\n\n"
        text += markdown([peer_row(line, base) for line in rows.values()] + stowage_rows(ours)) + "\n"
        if ours:
            text += compared(base, without_plan(ours))
    return text + notes([line for rows in parts.values() for line in rows.values()])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="peers.jsonl of measure.py")
    parser.add_argument("--stowage", action="append", default=[], metavar=STOWAGE, help=STOWAGE_HELP)
    options = parser.parse_args()
    sys.stdout.write(make(read_lines(options.files), read_stowage(options.stowage)))


if __name__ == "__main__":
    main()
