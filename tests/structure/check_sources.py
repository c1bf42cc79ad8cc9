"""Reads every C++ file and reports what breaks the rules of CONTRIBUTING.md.

Usage: check_sources.py ROOT. Prints one line a finding, `file:line: rule: what`; exits 1 if there is any.
"""

import pathlib
import re
import sys

MAX_LINES = 800
MAX_TORCH_H = 25
MAX_FUNCTION_LINES = 80

# The rooms of the simulator, in order: each may include those named before it.
ROOMS = ["simulator/" + room for room in
         ("plan", "machine", "step", "schedule", "lowering", "allocator", "placement", "hazards", "replay", "network")]
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
    "executor/distributed": {"traces", "executor", "executor/device"},
    "profiler/torch": {"traces", "simulator", "executor", "executor/device",
                       "profiler/assembly", "profiler/cupti"},
    "report": {"traces", "simulator", "planner"},
    "cli": {"traces", "simulator", "planner", "report"},
    "cli/torch": {"traces", "simulator", "planner", "report", "cli", "executor", "executor/device",
                  "executor/distributed", "profiler/assembly", "profiler/torch"},
    "gui/model": {"traces", "simulator", "planner", "report"},
    "gui/widgets": {"traces", "simulator", "planner", "report", "gui/model"},
    "gui/app": {"traces", "simulator", "planner", "report", "gui/model", "gui/widgets"},
    "include/stowage": {"traces", "simulator", "planner", "report", "executor", "executor/device",
                        "profiler/torch"},
    "examples": set(),
    "python": set(),
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
    "executor/distributed": {"LibTorch"},
    "profiler/torch": {"LibTorch", "CUDA"},
    "profiler/cupti": {"CUDA"},
    "cli/torch": {"LibTorch", "CUDA"},
    "examples": {"LibTorch", "CUDA"},
    "python": {"LibTorch", "CUDA"},
    "gui/model": {"Qt"},
    "gui/widgets": {"Qt"},
    "gui/app": {"Qt"},
    "bench/gui": {"Qt"},
    "tests": {"LibTorch", "CUDA", "Qt"},
    "tests/package": {"LibTorch", "CUDA"},
}
# Users' programs: the public API is for them, and they include nothing else of ours.
USERS = ("examples", "python", "tests/package")
WORLD_PATTERNS = {
    "LibTorch": re.compile(r"^(torch|ATen|c10|caffe2)/"),
    "CUDA": re.compile(r"^(cuda|cupti|cublas|cudnn|nv)[a-zA-Z0-9_]*(/|\.h)|^c10/cuda/|^ATen/cuda/"),
    "Qt": re.compile(r"^Q[A-Z]|^Qt[A-Z0-9]"),
}
# Tests that must build in the core preset.
CORE_TESTS = ("tests/traces/", "tests/simulator/", "tests/planner/", "tests/profiler/",
              "tests/report/", "tests/cli/", "tests/predictions/", "tests/support/")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# A definition of its own: none declared ahead, no member's, no specialization.
TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:struct|class|enum(?: class)?) (?:\[\[.*?\]\] )?(\w+)\b"
                  r"(?!::|<|\s*(?::[^{;]*)?;)", re.MULTILINE)
# What may hold a brace that is none: comments, texts, characters, directives.
NOT_CODE = re.compile(r'''//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'''
                      r'''|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*''',
                      re.DOTALL | re.MULTILINE)
OPENS_SCOPE = re.compile(r"(?:inline )?namespace\b|extern\b|(?=[^(]*$).*\b(?:struct|class|enum|union)\b",
                         re.DOTALL)
FUNCTION_NAME = re.compile(r"[\w:~]*operator[^\w\s]+(?=\()|[\w:~]+(?=\s*\()")
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


def functions(text):
    """Yields (line number, name, lines) for each function with a body.

    Counts braces: what is in a function (lambdas, local types) belongs to it. Formatted sources alone: a
    brace right behind a name begins a value, one behind a space a body.
    """
    code = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    open_braces = []  # kinds: "scope" (namespace, type), "function", "other"
    head = 0  # where the statement begins that the next brace may end
    for brace in re.finditer(r"[{};]", code):
        at = brace.start()
        in_scope = all(kind == "scope" for kind, _ in open_braces)
        if brace[0] == "{":
            words = code[head:at].strip()
            if not in_scope or re.match(r"[\w>]", code[at - 1]):
                open_braces.append(("other", head))
            elif OPENS_SCOPE.match(words):
                open_braces.append(("scope", head))
                head = at + 1
            elif "(" in words and "=" not in FUNCTION_NAME.split(words)[0]:
                open_braces.append(("function", at - len(code[head:at].lstrip())))
            else:
                open_braces.append(("other", head))
        elif brace[0] == "}" and open_braces:
            kind, begin = open_braces.pop()
            if kind == "function":
                name = FUNCTION_NAME.search(code, begin, at)
                yield (code.count("\n", 0, begin) + 1, name[0] if name else "?",
                       code.count("\n", begin, at) + 1)
            if kind != "other":
                head = at + 1
        elif in_scope:
            head = at + 1


def check_functions(text):
    for number, name, lines in functions(text):
        if lines > MAX_FUNCTION_LINES:
            yield number, "function", f"{name} has {lines} lines, at most {MAX_FUNCTION_LINES}"


def check_names(files):
    """Yields (path, line number, rule, what) where two files or two types share a name.

    A header and its own .cpp are one file; each program has a main.cpp. Types are those of headers. A
    public header may be called as what it shows, and users name their files as they like.
    """
    first_file = {}
    first_type = {}
    for path, text in sorted(files.items()):
        if unit_of(path) in ("tests", "include/stowage", *USERS):
            continue
        place, name = pathlib.PurePosixPath(path).parent, pathlib.PurePosixPath(path).stem
        other = first_file.setdefault(name, place)
        if other != place and name != "main":
            yield path, 1, "file name", f"{other} has a {name}, too"
        if not path.endswith(".h"):
            continue
        for found in TYPE.finditer(text):
            other = first_type.setdefault(found[1], path)
            if pathlib.PurePosixPath(other).parent != place:
                number = text.count("\n", 0, found.start()) + 1
                yield path, number, "type name", f"{other} has a {found[1]}, too"


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
    yield from check_names(files)
    torch_h = []
    for path, text in sorted(files.items()):
        for finding in check_text(path, text, files):
            yield (path, *finding)
        if unit_of(path) != "tests":
            for finding in check_functions(text):
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
