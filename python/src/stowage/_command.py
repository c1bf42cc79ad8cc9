"""What `python -m stowage` does: `run`, which trains an unchanged script under a plan, and `profile`, which records one
step of a function (_profile_command.py)."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ._errors import UsageError
from ._planning import check_request
from ._profile_command import add_profile, profile
from ._trace import Trace

if TYPE_CHECKING:
    from ._script_loop import ScriptLoop


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stowage", description="Trains PyTorch models under plans. Traces, plans and simulations are "
        "the `stowage` command's.")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    run = verbs.add_parser(
        "run", usage="%(prog)s --budget SIZE [options] SCRIPT [ARGS ..]",
        help="run a training script, which is not changed, under a plan",
        description="Runs a Python script as `python SCRIPT ARGS ..` does. Its training loop is found by what it "
        "calls; the first steps are recorded, a plan for the budget is made, and the others run under it. The exit "
        "code is the script's.")
    run.add_argument("--budget", required=True, metavar="SIZE",
                     help="what a step may take: 20GB, 60%% of what it takes without a plan, or bytes")
    run.add_argument("--key", choices=["shape"], help="a recording and a plan for each shape of the model's arguments")
    run.add_argument("--allow", metavar="KINDS", help="decisions that the plan may make, as of `stowage plan`")
    run.add_argument("--deny", metavar="KINDS", help="decisions that it may not make")
    run.add_argument("--trace", metavar="OUT", help="write the recording (.json or .json.gz)")
    run.add_argument("--plan", metavar="OUT", help="write the plan")
    run.add_argument("script", metavar="SCRIPT")
    run.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")
    add_profile(verbs)
    return parser


def say(text: str) -> None:
    """Each line to stderr, which tells it from the script's own."""
    for line in text.splitlines():
        print(f"stowage: {line}", file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Runs the verb; returns its exit code, of `run` 0. Raises what the script raises, SystemExit with its exit code
    too; SystemExit(2) for arguments that are wrong."""
    if arguments[:1] == ["profile"]:
        return profile(arguments[1:])
    parser = _parser()
    given = parser.parse_args(arguments)
    if not os.path.isfile(given.script):
        parser.error(f"there is no such script: {given.script}")
    planning = {name: value for name in ("allow", "deny") if (value := getattr(given, name)) is not None}
    try:
        check_request(given.budget, **planning)
    except UsageError as error:
        parser.error(str(error))
    # Torch only now: help needs none.
    from ._script_loop import ScriptLoop
    from ._training_calls import TrainingCalls

    loop = ScriptLoop(given.budget, given.key == "shape", planning, say)
    sys.argv = [given.script, *given.args]
    sys.path[0] = os.path.dirname(os.path.abspath(given.script))
    error: BaseException | None = None
    try:
        with TrainingCalls(loop):
            runpy.run_path(given.script, run_name="__main__")
    except BaseException as raised:
        error = raised
        raise
    finally:
        say(loop.finish(error))
        _save(loop, given.trace, given.plan)
    return 0


# The exit code stays the script's where a file cannot be written.
def _save(loop: ScriptLoop, trace_file: str | None, plan_file: str | None) -> None:
    written = 0
    for key in loop.run.keys if loop.run is not None else []:
        trace, plan = loop.run.trace(key), loop.run.plan(key)
        if trace is None:
            continue
        written += 1
        try:
            _save_one(trace, trace_file, written)
            if plan is not None and plan_file is not None:
                _numbered(plan_file, written).parent.mkdir(parents=True, exist_ok=True)
                plan.save(_numbered(plan_file, written))
        except (OSError, ValueError, RuntimeError) as error:
            say(f"not written: {error}")
    if written == 0 and (trace_file or plan_file):
        say("nothing was recorded to the end: no trace and no plan are written")


def _save_one(trace: Trace, file: str | None, number: int) -> None:
    if file is not None:
        _numbered(file, number).parent.mkdir(parents=True, exist_ok=True)
        trace.save(_numbered(file, number))


# t.json.gz, and of further keys t.2.json.gz, t.3.json.gz, ..
def _numbered(file: str, number: int) -> Path:
    path = Path(file)
    if number == 1:
        return path
    stem, dot, suffix = path.name.partition(".")
    return path.with_name(f"{stem}.{number}{dot}{suffix}")
