#!/usr/bin/env python3
"""Draws docs/pictures/frontier.svg: memory of a step against its time, Llama 3 8B with 9 layers in bf16.

    scripts/frontier_picture.py [build/release/bin/stowage]

The line is what `auto` predicts for budgets of 90 to 40 % of a sample trace, crosses are its policies, both simulated; dots
are measured: other tools' and Stowage's rows of docs/results.md. Needs only Python's standard library.
"""
import json
import math
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACE = ROOT / "traces/samples/llama3-8b-l9-bf16-efficient-h200.trace.json.gz"
RESULTS = ROOT / "docs/results.md"
PEERS = "bf16, attention=efficient:"  # heads their table
OURS = "llama3-8b:layers=9,attention=efficient bf16"  # begins our rows
OUT = ROOT / "docs/pictures/frontier.svg"
WIDTH, HEIGHT = 860, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 40, 52
BUDGETS = range(90, 39, -5)
POLICIES = ("resident", "save_on_cpu", "layerwise", "torchtune", "thunder", "checkpoint", "checkpoint:every=2")


def predicted(stowage, *options):
    """(GB, ms) of a plan, or None where there is none."""
    run = subprocess.run([stowage, "plan", TRACE, *options, "--placement", "caching", "-o", "/dev/null", "--json",
                          "--quiet"], stdout=subprocess.PIPE, check=False)
    answer = json.loads(run.stdout) if run.stdout else {}
    if answer.get("outcome") in (None, "infeasible", "not_found"):
        return None
    plan = answer["predicted"]
    return plan["peak_active_bytes"] / 1e9, plan["step_ns"] / 1e6


def cells(line):
    return [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")]


def measured():
    """[(name, GB, ms)] of the peers, [(GB, ms)] of our own plans."""
    text = RESULTS.read_text()
    table = text[text.index(PEERS):].split("\n\n")[1]
    peers = []
    for row in map(cells, table.splitlines()[2:]):
        if not row[0].startswith("Stowage"):
            peers.append((row[0].replace("`", ""), float(row[1]), 1000 * float(row[3])))
    ours = []
    for line in text.splitlines():
        if line.startswith(f"| {OURS}"):
            row = cells(line)
            ours.append((float(row[2]), float(re.match(r"[\d.]+", row[4]).group())))
    return peers, ours


def main():
    if len(sys.argv) > 1 and sys.argv[1].startswith("-"):
        print(__doc__)
        return
    stowage = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/stowage"
    policies = [(name, predicted(stowage, "--policy", name)) for name in POLICIES]
    frontier = [predicted(stowage, "--budget", f"{budget}%") for budget in BUDGETS]
    frontier = [dict(policies)["resident"]] + [point for point in frontier if point]
    peers, ours = measured()

    low, high = math.log(190), math.log(1400)
    x = lambda gb: LEFT + (WIDTH - LEFT - RIGHT) * (gb - 8) / 23
    y = lambda ms: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (math.log(ms) - low) / (high - low)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="14">One step of Llama 3 8B (9 layers, batch 8 x 1024, bf16) on an H200: '
        "memory against time</text>",
    ]
    for gb in range(10, 31, 5):
        lines.append(f'<line x1="{x(gb):.1f}" x2="{x(gb):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>'
                     f'<text x="{x(gb):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{gb} GB</text>')
    for ms in (200, 250, 300, 400, 600, 800, 1200):
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(ms):.1f}" y2="{y(ms):.1f}" stroke="#e4e4e4"/>'
                     f'<text x="{LEFT - 8}" y="{y(ms) + 4:.1f}" text-anchor="end">{ms} ms</text>')
    lines.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 12}" text-anchor="middle">peak of active '
                 "memory. Line and crosses: simulated; dots: measured. Blue: Stowage, orange: other tools</text>")
    path = "L".join(f"{x(gb):.1f},{y(ms):.1f}" for gb, ms in frontier)
    lines.append(f'<path d="M{path}" fill="none" stroke="#1f6fb4" stroke-width="2.5"/>')
    gb, ms = frontier[-1]
    lines.append(f'<text x="{x(gb) - 6:.1f}" y="{y(ms) - 12:.1f}" fill="#1f6fb4" text-anchor="middle">auto</text>')
    for gb, ms in ours:
        lines.append(f'<circle cx="{x(gb):.1f}" cy="{y(ms):.1f}" r="4.5" fill="#1f6fb4"/>')
    for name, point in policies:
        if name == "resident" or point is None:
            continue
        px, py = x(point[0]), y(point[1])
        lines.append(f'<path d="M{px - 4:.1f},{py - 4:.1f}l8,8m0,-8l-8,8" stroke="#666" stroke-width="1.6"/>'
                     f'<text x="{px + 9:.1f}" y="{py - 5:.1f}" fill="#666">{name}</text>')
    for name, gb, ms in peers:
        below = 17 if name.startswith("no plan") else -4 if name.startswith("check") else 4
        lines.append(f'<circle cx="{x(gb):.1f}" cy="{y(ms):.1f}" r="4.5" fill="#c2521e"/>'
                     f'<text x="{x(gb) - 9:.1f}" y="{y(ms) + below:.1f}" fill="#c2521e" text-anchor="end">{name}</text>')
    lines.append("</svg>")
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
