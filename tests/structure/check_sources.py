"""Reads every C++ file and reports what breaks the rules of CONTRIBUTING.md.

Usage: check_sources.py ROOT. Prints one line a finding, `file:line: rule: what`; exits 1 if there is any.
"""

import pathlib
import re
import sys

MAX_LINES = 800
MAX_TORCH_H = 25

# The rooms of the simulator, in order: each may include those named before it.
ROOMS = ["simulator/" + room for room in
         ("plan", "machine", "step", "schedule", "lowering", "hazards", "allocator", "replay")]
# A room that may not include one named before it all the same, and why: the proof must not know how a
# schedule was made.
NOT_ALLOWED = {("simulator/hazards", "simulator/lowering")}
# Unit -> the other units that it may include. A file belongs to the longest unit that its path begins with.
ARROWS = {
    "traces": set(),
    **{room: {"traces", *ROOMS[:number]} for number, room in enumerate(ROOMS)},
    "planner": {"traces", "simulator"},
    "profiler/assembly": {"traces"},
    "profiler/cupti": {"traces", "profiler/assembly"},
    "executor/device": {"traces", "simulator"},
    "executor": {"traces", "simulator", "executor/device"},
    "profiler/torch": {"traces", "simulator", "executor", "executor/device",
                       "profiler/assembly", "profiler/cupti"},
    "report": {"traces", "simulator", "planner"},
    "cli": {"traces", "simulator", "planner", "report"},
    "cli/torch": {"traces", "simulator", "planner", "report", "cli", "executor", "executor/device",
                  "profiler/assembly", "profiler/torch"},
    "gui/model": {"traces", "simulator", "planner", "report"},
    "gui/widgets": {"traces", "simulator", "planner", "report", "gui/model"},
    "gui/app": {"traces", "simulator", "planner", "report", "gui/model", "gui/widgets"},
    "include/stowage": {"traces", "simulator", "planner", "report", "executor", "executor/device",
                        "profiler/torch"},
    "examples": set(),
    "tests/package": set(),
    "bench": {"traces", "simulator", "planner", "profiler/assembly", "tests"},
    "bench/gui": {"traces", "simulator", "planner", "gui/model", "gui/widgets", "gui/app", "tests"},
    "bench/torch": {"traces", "cli/torch", "profiler/assembly", "profiler/torch"},
}
for unit in ARROWS:
    if "simulator" in ARROWS[unit]:
        ARROWS[unit] = ARROWS[unit] - {"simulator"} | set(ROOMS)
# Unit -> the outside worlds that it may include; a unit that is not named here may include none.
WORLDS = {
    "executor/device": {"LibTorch", "CUDA"},
    "executor": {"LibTorch", "CUDA"},
    "profiler/torch": {"LibTorch", "CUDA"},
    "profiler/cupti": {"CUDA"},
    "cli/torch": {"LibTorch", "CUDA"},
    "examples": {"LibTorch", "CUDA"},
    "gui/model": {"Qt"},
    "gui/widgets": {"Qt"},
    "gui/app": {"Qt"},
    "bench/gui": {"Qt"},
    "tests": {"LibTorch", "CUDA", "Qt"},
    "tests/package": {"LibTorch", "CUDA"},
}
# Users' programs: the public API is for them, and they include nothing else of ours.
USERS = ("examples", "tests/package")
WORLD_PATTERNS = {
    "LibTorch": re.compile(r"^(torch|ATen|c10|caffe2)/"),
    "CUDA": re.compile(r"^(cuda|cupti|cublas|cudnn|nv)[a-zA-Z0-9_]*(/|\.h)|^c10/cuda/|^ATen/cuda/"),
    "Qt": re.compile(r"^Q[A-Z]|^Qt[A-Z0-9]"),
}
# Tests that must build in the core preset.
CORE_TESTS = ("tests/traces/", "tests/simulator/", "tests/planner/", "tests/profiler/",
              "tests/report/", "tests/cli/", "tests/predictions/", "tests/support/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
PRINTS = re.compile(r"std::cout\b|(?<![\w:>.])(?:std::)?(?:printf|puts|putchar)\s*\(")


def unit_of(path):
    candidates = [u for u in list(ARROWS) + ["tests"] if path.startswith(u + "/")]
    return max(candidates, key=len, default=None)


def is_json_file(path):
    return pathlib.PurePosixPath(path).stem.endswith("_json")


def check_include(path, unit, included):
    """Yields (rule, what) for one include line."""
    target = unit_of(included)
    if target is None and included.startswith("simulator/"):
        yield "room", f"no room of the simulator ({included})"
    if included.startswith("stowage/") and unit not in USERS:
        yield "public", f"<stowage/..> is for users: include what it includes ({included})"
    allowed = ARROWS.get(unit, set())
    if unit != "tests" and target not in (None, unit) and (target not in allowed
                                                           or (unit, target) in NOT_ALLOWED):
        yield "arrow", f"{unit} may not use {target} ({included})"
    for world, pattern in WORLD_PATTERNS.items():
        allowed = world in WORLDS.get(unit, set()) and not path.startswith(CORE_TESTS)
        if target is None and pattern.match(included) and not allowed:
            yield "world", f"{world} is not allowed here ({included})"
    if included.startswith("nlohmann/") and unit != "tests" and not is_json_file(path):
        yield "json", "only *_json.* files include nlohmann_json"


def check_text(path, text, files=()):
    """Yields (line number, rule, what) for one file. files: the paths of all."""
    unit = unit_of(path)
    lines = text.splitlines()
    if len(lines) > MAX_LINES:
        yield len(lines), "length", f"{len(lines)} lines, at most {MAX_LINES}"
    is_header = path.endswith(".h")
    if is_header and not any(line.strip() == "#pragma once" for line in lines):
        yield 1, "pragma", "no #pragma once"
    may_print = (unit in ("tests", "bench", "bench/torch", "bench/gui", *USERS)
                 or path.endswith("/main.cpp"))
    for number, line in enumerate(lines, 1):
        include = INCLUDE.match(line)
        if include:
            beside = (pathlib.PurePosixPath(path).parent / include.group(2)).as_posix()
            if unit in USERS and beside in files:
                continue  # the program's own, whatever it is called
            for rule, what in check_include(path, unit, include.group(2)):
                yield number, rule, what
            continue
        code = line.split("//")[0]
        if not may_print and PRINTS.search(code):
            yield number, "print", "standard output belongs to main.cpp; take a std::ostream&"
        if is_header and re.match(r"\s*using\s+namespace\b", code):
            yield number, "using", "no using namespace in a header"


def check_first_include(path, text, header):
    """Yields the finding when a .cpp does not include its own header before all others.

    Then compiling the .cpp proves that the header compiles alone; headers.cmake relies on it.
    """
    for number, line in enumerate(text.splitlines(), 1):
        include = INCLUDE.match(line)
        if include:
            if include.group(2) != header:
                yield number, "first", f'the first include must be "{header}"'
            return
    yield 1, "first", f'does not include "{header}"'


def check_tree(files):
    """files: {path: text}. Yields (path, line number, rule, what)."""
    torch_h = []
    for path, text in sorted(files.items()):
        for finding in check_text(path, text, files):
            yield (path, *finding)
        header = path.removesuffix(".cpp") + ".h"
        if path.endswith(".cpp") and header in files:
            for finding in check_first_include(path, text, header):
                yield (path, *finding)
        if re.search(r'^\s*#\s*include\s*[<"]torch/torch\.h[>"]', text, re.MULTILINE):
            torch_h.append(path)
    for path in torch_h[MAX_TORCH_H:]:
        yield path, 1, "torch.h", f"{len(torch_h)} files include torch/torch.h, at most {MAX_TORCH_H}"


def read_tree(root):
    top = sorted({unit.split("/")[0] for unit in ARROWS} | {"tests"})
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for folder in top
        for path in (root / folder).rglob("*")
        if path.suffix in (".h", ".cpp")
    }


def main():
    files = read_tree(pathlib.Path(sys.argv[1]))
    findings = list(check_tree(files))
    for path, number, rule, what in findings:
        print(f"{path}:{number}: {rule}: {what}")
    print(f"{len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
