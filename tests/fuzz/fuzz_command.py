"""Runs the real command on damaged traces, plans, answers and baselines, over all verbs that read them.

Usage: fuzz_command.py STOWAGE SOURCE_DIR [--seeds 0..20000] [--jobs 2] [--keep DIR] [--memory-gib 2] [--seconds 10]
                       [--torch-every 0]

Seed N always gives the same file and the same commands, so `--seeds N..N+1 --keep DIR` shows one case again, and a
range goes on where another one ended. A case fails when a run of it dies of a signal, ends with a code that
docs/cli.md does not have for bad input (70 among them), needs more memory or processor time than it may, prints a
control character, an error of more than one line, or JSON that is none. Prints a line a failure and one at the end;
exits 1 if there is any.

--torch-every N: every Nth case of a plan or a baseline also goes through the verbs that run the model.
"""
import argparse
import collections
import concurrent.futures
import gzip
import json
import os
import pathlib
import random
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import mutations  # noqa: E402

CODES = {0, 1, 2, 3, 4}
KINDS = ["trace", "trace", "trace", "plan", "plan", "answer", "baseline"]
SAMPLES = ["mlp-l6-fp32-cpu", "mlp-l6-fp32-h200"]
BUDGETS = ["70%", "40%", "100%", "1MiB", "9999999999999GB", "0"]
POLICIES = ["resident", "save_on_cpu", "layerwise", "torchtune:stash=5", "thunder", "checkpoint", "selective", "zero_offload"]


class Ground:
    """The undamaged files, which the command itself makes of the samples."""

    def __init__(self, stowage, source, folder):
        self.folder = folder
        self.files = {kind: [] for kind in KINDS}
        for sample in SAMPLES:
            trace = source / "traces" / "samples" / (sample + ".trace.json.gz")
            self.add("trace", sample, gzip.decompress(trace.read_bytes()))
            for name, options in [("auto", ["--budget", "70%"]), ("low", ["--budget", "45%", "--deny", "recompute"]),
                                  ("policy", ["--policy", "save_on_cpu"])]:
                plan = folder / f"{sample}.{name}.plan.json"
                answer = self.run([stowage, "plan", trace, *options, "-o", plan, "--json"])
                self.add("answer", f"{sample}.{name}", answer)
                self.add("plan", f"{sample}.{name}", plan.read_bytes(), sample)
                self.add("answer", f"{sample}.{name}.sim", self.run([stowage, "simulate", trace, "--plan", plan, "--json"]))
            self.add("answer", f"{sample}.inspect", self.run([stowage, "inspect", trace, "--json"]))
        self.add("baseline", "golden", (source / "tests" / "golden" / "baseline.json").read_bytes())

    @staticmethod
    def run(command):
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout

    def add(self, kind, name, data, sample=None):
        path = self.folder / f"{name}.{kind}.json"
        path.write_bytes(data)
        trace = self.folder / f"{sample or name}.trace.json"
        self.files[kind].append((path, trace, data, json.loads(data)))


def damaged(kind, ground, rng):
    path, trace, data, document = rng.choice(ground.files[kind])
    how = rng.random()
    if how < 0.75:
        data = mutations.damage_json(document, rng)
    elif how < 0.9:
        data = mutations.damage_bytes(data, rng)
    else:
        return path, trace, mutations.damage_gzip(data, rng)
    return path, trace, gzip.compress(data, 1, mtime=0) if rng.random() < 0.1 else data


def exports(rng, name):
    return [["--format", "csv", "--table", rng.choice(["memory", "storages", "stalls", "timeline"])],
            ["--format", rng.choice(["chrome", "svg", "memory-viz"])]][rng.randrange(2)] + ["-o", name]


def commands(kind, file, path, trace, work, rng, torch):
    """What is run on `file`, a damaged copy of `path`, which belongs to `trace`."""
    out = str(work / "out")
    as_json = rng.choice([[], ["--json"]])
    if kind == "trace":
        plan = [["--policy", rng.choice(POLICIES)], ["--plan", str(path).replace(".trace.json", ".auto.plan.json")], []]
        yield ["inspect", file, "--by", rng.choice(["layer", "op", "class"]), "--at", rng.choice(["peak", "0", "9", "aten::mm"]),
               *as_json]
        yield ["simulate", file, *rng.choice(plan), *rng.choice([[], ["--explain"], ["--timeline", out]]), *as_json]
        yield ["plan", file, *rng.choice([["--budget", rng.choice(BUDGETS)], ["--fit", "24GiB"], ["--policy", rng.choice(POLICIES)]]),
               "-o", out, *rng.choice([[], ["--explain"]]), *as_json]
        yield ["export", file, *rng.choice(plan), *exports(rng, out)]
        yield ["diff", *rng.choice([[file, path], [path, file], [file, file]]), *as_json]
    elif kind == "plan":
        yield ["simulate", trace, "--plan", file, *rng.choice([[], ["--placement", rng.choice(["planned", "caching"])]]), *as_json]
        yield ["export", trace, "--plan", file, *exports(rng, out)]
        yield ["plan", trace, "--budget", rng.choice(BUDGETS), "--pins", file, "-o", out, *as_json]
        yield ["diff", *rng.choice([[file, path], [path, file], [file, file]]), *as_json]
        if torch:
            yield [rng.choice(["execute", "verify", "check"]), "--plan", file, "--trace", trace, "--steps", "3", *as_json]
    else:
        yield ["diff", *rng.choice([[file, path], [path, file], [file, file]]), *as_json]
        if torch and kind == "baseline":
            yield ["check", "--model", "mlp:layers=2,width=64", "--batch", "4", "--device", "cpu", "--steps", "3", "--baseline", file,
                   *as_json]


def is_plain(text):
    try:
        return not any(ord(c) < 0x20 and c != "\n" or 0x7F <= ord(c) < 0xA0 for c in text.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def complaint(command, outcome):
    """What is wrong with a run; empty: nothing."""
    if outcome.returncode < 0:
        return f"signal {-outcome.returncode}"
    if outcome.returncode not in CODES:
        return f"exit code {outcome.returncode}"
    if b"not enough memory" in outcome.stderr:
        return "memory"
    if not is_plain(outcome.stderr) or not is_plain(outcome.stdout):
        return "control characters"
    errors = [line for line in outcome.stderr.split(b"\n") if line.startswith(b"stowage: error: ")]
    if outcome.returncode != 0 and len(errors) != 1:
        return f"{len(errors)} error lines"
    if any(len(line) > 4000 for line in errors):
        return "an error of megabytes"
    if "--json" in command:
        try:
            json.loads(outcome.stdout)
        except ValueError:
            return "JSON that is none"
    return ""


class Fuzzer:
    def __init__(self, options, ground):
        self.options = options
        self.ground = ground

    def limits(self):
        if self.options.memory_gib > 0:
            most = int(self.options.memory_gib * (1 << 30))
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CPU, (self.options.seconds, self.options.seconds + 1))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def case(self, seed):
        """Lines about what failed, and the exit codes."""
        rng = random.Random(seed)
        kind = rng.choice(KINDS)
        torch = self.options.torch_every > 0 and seed % self.options.torch_every == 0
        with tempfile.TemporaryDirectory(dir=self.ground.folder) as name:
            work = pathlib.Path(name)
            path, trace, data = damaged(kind, self.ground, rng)
            file = work / f"{kind}.json"
            file.write_bytes(data)
            found, codes = [], []
            for command in commands(kind, str(file), str(path), str(trace), work, rng, torch):
                # LibTorch maps more than it uses; its verbs take a model's time.
                limits = None if command[0] in ("execute", "verify", "check") else self.limits
                what, code = self.run(command, limits)
                codes.append(code)
                if what:
                    found.append(f"seed {seed}: {what}: stowage {' '.join(command)}")
            if found and self.options.keep:
                folder = pathlib.Path(self.options.keep)
                folder.mkdir(parents=True, exist_ok=True)
                (folder / f"{seed}.{kind}").write_bytes(data)
        return found, codes

    def run(self, command, limits):
        try:
            outcome = subprocess.run([self.options.stowage, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     stdin=subprocess.DEVNULL, preexec_fn=limits, timeout=900, check=False,
                                     env={**os.environ, "LC_ALL": "C.UTF-8"})
        except subprocess.TimeoutExpired:
            return "no end", None
        return complaint(command, outcome), outcome.returncode


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stowage")
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("--seeds", default="0..20000")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep")
    parser.add_argument("--memory-gib", type=float, default=2, help="0: no limit, for a sanitizer's build")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--torch-every", type=int, default=0)
    return parser.parse_args()


def fuzz(options, ground):
    first, last = (int(n) for n in options.seeds.split(".."))
    fuzzer = Fuzzer(options, ground)
    failed = 0
    runs = collections.Counter()
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for seed, (found, codes) in zip(range(first, last), pool.map(fuzzer.case, range(first, last), chunksize=8)):
            failed += bool(found)
            runs.update(codes)
            for line in found:
                print(line, flush=True)
            if (seed + 1) % 1000 == 0:
                print(f"{seed + 1 - first} cases, {failed} failed; go on with --seeds {seed + 1}..{last}", flush=True)
    ended = ", ".join(f"{count} with {code}" for code, count in sorted(runs.items(), key=str))
    print(f"{last - first} cases of {options.seeds}, {failed} failed; {runs.total()} runs: {ended}", flush=True)
    return 1 if failed or last <= first else 0


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="stowage-fuzz-") as folder:
        ground = Ground(options.stowage, options.source, pathlib.Path(folder))
        return fuzz(options, ground)


if __name__ == "__main__":
    sys.exit(main())
