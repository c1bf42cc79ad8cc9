#!/usr/bin/env python3
"""Draws docs/pictures/architecture.svg: who includes whom, as it is in the sources.

    scripts/architecture_picture.py [--check]

Boxes are the units of tests/structure/check_sources.py, in layers: each stands above all that it
includes. An arrow stands for the files of one unit that include the other; those that follow from
other arrows are left out. --check writes nothing and exits 1 when the file is another one. Needs
only Python's standard library.
"""
import collections
import pathlib
import sys
from xml.sax.saxutils import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/structure"))
sys.dont_write_bytecode = True
import check_sources  # noqa: E402

OUT = ROOT / "docs/pictures/architecture.svg"
NOT_DRAWN = ("examples", "bench", "python", "tests", "include")
WIDTH, BOX, HEIGHT, PITCH, TOP = 1000, 152, 44, 88, 20
# Unit -> centre of its box, and what is in it. A unit that is not named here stands at the first
# free place of its layer.
PLACES = {
    "traces": (420, "the recording, its JSON"),
    "simulator/plan": (240, "decisions, rules, JSON"),
    "simulator/machine": (620, "link, launch pace, rests"),
    "simulator/step": (420, "unroll, index, lifetimes"),
    "simulator/schedule": (320, "tenants, stays, actions"),
    "simulator/lowering": (420, "decisions to a schedule"),
    "simulator/hazards": (240, "the proof"),
    "simulator/allocator": (620, "the caching allocator"),
    "simulator/placement": (420, "addresses, pages"),
    "simulator/replay": (560, "memory and time"),
    "simulator/network": (420, "ranks, all-reduce"),
    "planner": (360, "options, bounds, search"),
    "report": (360, "explanations, exports"),
    "cli": (550, "stowage"),
    "cli/torch": (740, "stowage-torch"),
    "profiler/assembly": (880, "raw records to a trace"),
    "profiler/cupti": (880, "times from the GPU"),
    "profiler/torch": (850, "passes, observers"),
    "executor/device": (820, "streams, lanes, arena"),
    "executor": (800, "runs a schedule, models"),
    "executor/distributed": (620, "ranks, reduction"),
    "gui/model": (170, "what the views show"),
    "gui/widgets": (170, "plots, trees, dialogs"),
    "gui/app": (170, "stowage-gui"),
}
# Where an arrow over several layers passes those between, from the upper to the lower end.
LANES = {
    ("report", "simulator/hazards"): (245, 205),
    ("executor", "simulator/hazards"): (265,),
    ("executor", "simulator/lowering"): (455,),
    ("planner", "simulator/lowering"): (390,),
    ("simulator/replay", "simulator/machine"): (520, 540),
    ("simulator/lowering", "simulator/machine"): (470,),
    ("profiler/torch", "profiler/cupti"): (940, 940, 930),
    ("cli/torch", "profiler/torch"): (800,),
}
PLAIN = "#ffffff"
WORLD_COLOURS = {"LibTorch": "#ffd9c2", "CUDA": "#cdeeb5", "Qt": "#cfe0ff"}
WEIGHTS = ((10, 3.2, "10 files and more"), (4, 2.0, "4 to 9"), (1, 1.0, "1 to 3"))


class Units:
    """What the sources say: arrows[a][b] = files of unit a that include b; worlds[a], in order."""

    def __init__(self, files):
        self.names = [u for u in check_sources.ARROWS if u.split("/")[0] not in NOT_DRAWN]
        including = collections.defaultdict(set)
        worlds = collections.defaultdict(set)
        for path, text in files.items():
            unit = check_sources.unit_of(path)
            for line in text.splitlines():
                include = check_sources.INCLUDE.match(line)
                if not include:
                    continue
                target = check_sources.unit_of(include.group(2))
                if target not in (None, unit):
                    including[unit, target].add(path)
                for world, pattern in check_sources.WORLD_PATTERNS.items():
                    if target is None and pattern.match(include.group(2)):
                        worlds[unit].add(world)
        present = {check_sources.unit_of(path) for path in files}
        self.names = [u for u in self.names if u in present]
        self.worlds = {u: [w for w in WORLD_COLOURS if w in worlds[u]] for u in self.names}
        self.arrows = {a: {b: len(including[a, b]) for b in self.names if (a, b) in including}
                       for a in self.names}

    def below(self, unit):
        """All that the unit includes, by way of others too."""
        seen, left = set(), [unit]
        while left:
            for target in self.arrows[left.pop()]:
                if target not in seen:
                    seen.add(target)
                    left.append(target)
        return seen

    def drawn_arrows(self):
        """(upper, lower, files), without those that follow from others."""
        below = {unit: self.below(unit) for unit in self.names}
        for unit in self.names:
            assert unit not in below[unit], f"{unit} includes itself by way of others"
            for target, files in self.arrows[unit].items():
                if not any(target in below[other] for other in self.arrows[unit]):
                    yield unit, target, files

    def layers(self):
        layer = {}

        def of(unit):
            if unit not in layer:
                layer[unit] = 1 + max((of(target) for target in self.arrows[unit]), default=-1)
            return layer[unit]

        for unit in self.names:
            of(unit)
        return layer


class Picture:
    def __init__(self, units):
        self.units = units
        self.layer = units.layers()
        self.bottom = TOP + HEIGHT + PITCH * max(self.layer.values())
        self.x = {u: PLACES[u][0] for u in units.names if u in PLACES}
        for unit in units.names:
            if unit not in self.x:
                self.x[unit] = self.free_place(self.layer[unit])

    def free_place(self, layer):
        taken = [x for unit, x in self.x.items() if self.layer[unit] == layer]
        for x in range(WIDTH - BOX // 2 - 10, BOX // 2, -10):
            if all(abs(x - other) >= BOX + 10 for other in taken):
                return x
        raise SystemExit(f"no room in layer {layer}: give its units other places")

    def y(self, layer):
        """Upper edge of the boxes of a layer."""
        return self.bottom - HEIGHT - PITCH * layer

    def routes(self):
        """Each arrow's places in the layers from its upper to its lower end, ends spread over the
        edge of their box in the order in which the arrows come."""
        lanes = {}
        for upper, lower, files in self.units.drawn_arrows():
            between = self.layer[upper] - self.layer[lower] - 1
            lane = LANES.get((upper, lower), ())
            if len(lane) != between:
                first, last = self.x[upper], self.x[lower]
                lane = [round(first + (last - first) * (i + 1) / (between + 1))
                        for i in range(between)]
            lanes[upper, lower] = (list(lane), files)
        ends = {}
        for unit in self.units.names:
            for end, mine in ((0, [a for a in lanes if a[0] == unit]),
                              (1, [a for a in lanes if a[1] == unit])):
                def next_x(arrow, end=end):
                    lane = lanes[arrow][0]
                    return (lane[-end] if lane else self.x[arrow[1 - end]], arrow)
                mine.sort(key=next_x)
                for i, arrow in enumerate(mine):
                    spread = min(26, (BOX - 40) / max(1, len(mine) - 1))
                    ends[arrow, end] = self.x[unit] + (i - (len(mine) - 1) / 2) * spread
        for arrow, (lane, files) in lanes.items():
            yield arrow, [ends[arrow, 0], *lane, ends[arrow, 1]], files

    def arrow(self, arrow, route, files):
        top = self.y(self.layer[arrow[0]]) + HEIGHT
        path = [f"M{route[0]:.0f},{top}"]
        for i, (x, to) in enumerate(zip(route, route[1:])):
            last = i + 2 == len(route)
            begin = self.y(self.layer[arrow[0]] - i) + HEIGHT
            end = self.y(self.layer[arrow[0]] - i - 1) - (7 if last else 0)
            middle = (begin + end) / 2
            path.append(f"C{x:.0f},{middle:.0f} {to:.0f},{middle:.0f} {to:.0f},{end}")
            if not last:
                path.append(f"V{end + HEIGHT}")
        width = next(width for least, width, _ in WEIGHTS if files >= least)
        return (f'<path d="{"".join(path)}" fill="none" stroke="#52606d" stroke-width="{width}" '
                f'marker-end="url(#head)"><title>{arrow[0]} includes {arrow[1]} in {files_text(files)}'
                '</title></path>')

    def box(self, unit):
        left, top = self.x[unit] - BOX // 2, self.y(self.layer[unit])
        colours = [WORLD_COLOURS[world] for world in self.units.worlds[unit]] or [PLAIN]
        part = BOX / len(colours)
        yield from (f'<rect x="{left + i * part:.0f}" y="{top}" width="{part:.0f}" '
                    f'height="{HEIGHT}" fill="{colour}"/>' for i, colour in enumerate(colours))
        yield (f'<rect x="{left}" y="{top}" width="{BOX}" height="{HEIGHT}" rx="3" fill="none" '
               'stroke="#1f2933"/>')
        name = unit
        if unit in check_sources.ROOMS:
            number = check_sources.ROOMS.index(unit) + 1
            name = f"{number}  {unit.removeprefix('simulator/')}"
        yield text(self.x[unit], top + 18, name, 'text-anchor="middle" font-weight="bold"')
        yield text(self.x[unit], top + 35, PLACES.get(unit, (0, ""))[1],
                   'text-anchor="middle" font-size="11.5"')

    def simulator(self):
        rooms = [unit for unit in self.units.names if unit in check_sources.ROOMS]
        left = min(self.x[unit] for unit in rooms) - BOX // 2 - 42
        right = max(self.x[unit] for unit in rooms) + BOX // 2 + 14
        top = self.y(max(self.layer[unit] for unit in rooms)) - 16
        bottom = self.y(min(self.layer[unit] for unit in rooms)) + HEIGHT + 16
        yield (f'<rect x="{left}" y="{top}" width="{right - left}" height="{bottom - top}" rx="8" '
               'fill="#e4e7eb" stroke="#7b8794"/>')
        middle = (top + bottom) / 2
        yield text(0, 0, "simulator", 'text-anchor="middle" font-weight="bold" '
                   f'transform="translate({left + 16},{middle:.0f}) rotate(-90)"')
        yield text(0, 0, "rooms in order: each may include lower numbers",
                   'text-anchor="middle" font-size="11.5" '
                   f'transform="translate({left + 32},{middle:.0f}) rotate(-90)"')

    def legend(self):
        x, y = 500, TOP + 12
        yield text(x, y, "An arrow: files of the upper one include files of the lower one.")
        yield text(x, y + 18, "What follows from other arrows is left out.")
        at = x
        for words, colour in (("neither", PLAIN), *WORLD_COLOURS.items()):
            yield (f'<rect x="{at}" y="{y + 30}" width="18" height="12" fill="{colour}" '
                   'stroke="#1f2933"/>')
            yield text(at + 24, y + 40, words)
            at += 110
        at = x
        for _, width, words in reversed(WEIGHTS):
            yield (f'<path d="M{at},{y + 58}h18" stroke="#52606d" stroke-width="{width}"/>')
            yield text(at + 24, y + 62, words + (" files" if at == x else ""))
            at += 110

    def svg(self):
        height = self.bottom + TOP
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" font-family="Helvetica,Arial,sans-serif" font-size="13" '
            'fill="#1f2933">',
            "<title>Who includes whom in Stowage</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="1" refY="4" markerWidth="8" '
            'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            '<path d="M0,0L8,4L0,8Z" fill="#52606d"/></marker></defs>',
            f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#f5f7fa"/>',
            *self.simulator(),
        ]
        lines += [self.arrow(*route) for route in self.routes()]
        for unit in self.units.names:
            lines += self.box(unit)
        return "\n".join([*lines, *self.legend(), "</svg>", ""])


def files_text(files):
    return next(words for least, _, words in WEIGHTS if files >= least)


def text(x, y, words, extra=""):
    return f'<text x="{x}" y="{y}" {extra}>{escape(words)}</text>'


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__)
        return 0 if sys.argv[1] in ("-h", "--help") else 2
    drawn = Picture(Units(check_sources.read_tree(ROOT))).svg()
    if not sys.argv[1:]:
        OUT.write_text(drawn, encoding="utf-8")
    elif not OUT.exists() or OUT.read_text(encoding="utf-8") != drawn:
        print(f"{OUT.relative_to(ROOT)} is not what the sources say: run scripts/architecture_picture.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
