#!/usr/bin/env python3
"""Draws docs/pictures/demo.svg from the sample trace: the memory of one step, without a plan and with one.

    scripts/readme_picture.py [build/release/bin/stowage]

Plans for 60 %, replays both, and writes the SVG. Needs only Python's standard library.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACE = ROOT / "traces/samples/gpt2-l6-fp32-cpu.trace.json.gz"
OUT = ROOT / "docs/pictures/demo.svg"
WIDTH, HEIGHT = 860, 330
LEFT, RIGHT, TOP, BOTTOM = 78, 20, 44, 46


def timeline(stowage, folder, *options):
    file = pathlib.Path(folder) / "timeline.json"
    subprocess.run([stowage, "simulate", TRACE, *options, "--timeline", file, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    return json.loads(file.read_text())


def steps(memory, x, y):
    """A step curve as SVG path commands: bytes hold until the next event."""
    times, sizes = memory["time_ns"], memory["requested_bytes"]
    parts, last = [f"M{x(times[0]):.1f},{y(sizes[0]):.1f}"], None
    for time, size in zip(times, sizes):
        if size == last:
            continue
        parts.append(f"H{x(time):.1f}V{y(size):.1f}")
        last = size
    parts.append(f"H{x(times[-1]):.1f}")
    return "".join(parts)


def main():
    if len(sys.argv) > 1 and sys.argv[1].startswith("-"):
        print(__doc__)
        return
    stowage = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/bin/stowage"
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "plan.json"
        subprocess.run([stowage, "plan", TRACE, "--budget", "60%", "-o", plan, "--quiet"], check=True)
        before = timeline(stowage, folder, "--policy", "resident")
        after = timeline(stowage, folder, "--plan", plan)

    last = max(before["step_ns"], after["step_ns"])
    peak = max(before["memory"]["requested_bytes"])
    planned = max(after["memory"]["requested_bytes"])
    top = peak * 1.08
    x = lambda ns: LEFT + (WIDTH - LEFT - RIGHT) * ns / last
    y = lambda size: HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * size / top
    base = y(0)
    area = lambda path: f"{path}V{base:.1f}H{x(0):.1f}Z"
    curve_before, curve_after = steps(before["memory"], x, y), steps(after["memory"], x, y)
    budget = after["budget_bytes"]
    backward = next(p["begin_ns"] for p in after["phases"] if p["kind"] == "backward")

    text = lambda px, py, words, extra="": f'<text x="{px:.0f}" y="{py:.0f}" {extra}>{words}</text>'
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="Helvetica,Arial,sans-serif" font-size="13" fill="#1f2933">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<path d="{area(curve_before)}" fill="#cbd2d9"/>',
        f'<path d="{area(curve_after)}" fill="#2680c2" fill-opacity="0.75"/>',
        f'<path d="{curve_before}" fill="none" stroke="#52606d" stroke-width="1.5"/>',
        f'<path d="{curve_after}" fill="none" stroke="#0f609b" stroke-width="1.5"/>',
        f'<path d="M{LEFT},{y(budget):.1f}H{WIDTH - RIGHT}" stroke="#cf1124" stroke-dasharray="6 4"/>',
        f'<path d="M{x(backward):.1f},{TOP}V{base:.1f}" stroke="#7b8794" stroke-dasharray="2 3"/>',
        f'<path d="M{LEFT},{TOP}V{base:.1f}H{WIDTH - RIGHT}" fill="none" stroke="#1f2933"/>',
    ]
    for share in (0, 50e6, 100e6, 150e6):
        svg.append(f'<path d="M{LEFT - 5},{y(share):.1f}h5" stroke="#1f2933"/>')
        svg.append(text(LEFT - 9, y(share) + 4, f"{share / 1e6:.0f} MB", 'text-anchor="end"'))
    svg += [
        text(LEFT, 24, f"without a plan: peak {peak / 1e6:.1f} MB", 'fill="#52606d" font-weight="bold"'),
        text(LEFT + 250, 24, f"under the plan: peak {planned / 1e6:.1f} MB",
             'fill="#0f609b" font-weight="bold"'),
        text(WIDTH - RIGHT, y(budget) - 6, f"budget {budget / 1e6:.1f} MB (60 %)",
             'fill="#cf1124" text-anchor="end"'),
        text(LEFT + 6, base + 20, "forward"),
        text(x(backward) + 6, base + 20, "backward"),
        text(WIDTH - RIGHT, base + 36, f"time, one step: {last / 1e6:.0f} ms", 'text-anchor="end"'),
        text(LEFT - 9, TOP - 8, "requested", 'text-anchor="end"'),
        "</svg>",
    ]
    OUT.parent.mkdir(parents=True, exist_ok=True)
    OUT.write_text("\n".join(svg) + "\n")


if __name__ == "__main__":
    main()
