"""Files that documents and comments name must exist.

Usage: check_doc_paths.py ROOT. Looks at README.md, CONTRIBUTING.md and docs/ (what stands in
backticks) and at every C++ file (paths below one of the project's folders). Prints one line a
finding, `file:line: what`; exits 1 if there is any.
"""

import pathlib
import re
import sys

QUOTED = re.compile(r"`([a-z0-9_][A-Za-z0-9_./-]*)`")
PATH = re.compile(r"(?<![\w./-])((?:[a-z0-9_]+/)+[a-z0-9_]+\.(?:h|cpp|py|sh|md|cmake|json))\b")
# A name without a folder is taken for a file of ours when it ends so.
BARE = re.compile(r"^[a-z0-9_]+\.(h|cpp|py|sh|md|cmake)$")
FOLDERS = ("bench", "cli", "docs", "examples", "executor", "gui", "include", "planner", "profiler", "python",
           "report", "scripts", "simulator", "tests", "traces")


class Tree:
    """paths: of all files, relative, with '/'."""

    def __init__(self, paths):
        self.paths = set(paths)
        self.names = {path.rsplit("/", 1)[-1] for path in self.paths}

    def has(self, named):
        """A file; a folder; all files of one stem ("traces/gzip", "docs/decisions/0011")."""
        return named in self.paths or any(
            path.startswith((named.rstrip("/") + "/", named + ".", named + "-"))
            for path in self.paths)

    def check_document(self, text):
        """Yields (line number, what is named and not there)."""
        for number, line in enumerate(text.splitlines(), 1):
            for named in QUOTED.findall(line):
                if named.split("/")[0] in FOLDERS and "/" in named and not self.has(named):
                    yield number, named
                if BARE.match(named) and named not in self.names:
                    yield number, named

    def check_source(self, text):
        for number, line in enumerate(text.splitlines(), 1):
            for named in PATH.findall(line):
                if named.split("/")[0] in FOLDERS and not self.has(named):
                    yield number, named


def main():
    root = pathlib.Path(sys.argv[1])
    files = [path for top in [*FOLDERS] for path in (root / top).rglob("*")
             if path.is_file() and "__pycache__" not in path.parts] + list(root.glob("*.md"))
    tree = Tree(path.relative_to(root).as_posix() for path in files)
    findings = checked = 0
    for path in sorted(files):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".md" and ("/" not in name or name.startswith("docs/")):
            check = tree.check_document
        elif path.suffix in (".h", ".cpp"):
            check = tree.check_source
        else:
            continue
        checked += 1
        for number, named in check(path.read_text(encoding="utf-8")):
            findings += 1
            print(f"{name}:{number}: {named} is not there")
    print(f"{checked} files, {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
