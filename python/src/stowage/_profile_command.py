"""`python -m stowage profile FILE.py:function -o T`: records one step that a user's function makes.

`stowage profile python:FILE.py:function` runs it; options, output, errors and exit codes are the command's
(docs/cli.md).
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import warnings
from typing import Any, Iterator, NoReturn

from ._errors import BadInput, Error, Infeasible, Unavailable, UsageError

# Of models that are built in, or of a plan's.
_OF_MODELS = ("--batch", "--seq", "--dtype", "--autocast", "--optimizer", "--grad-scaler", "--plan", "--trace",
              "--micro-batches")
_CODES: tuple[tuple[type[BaseException], str, int], ...] = (
    (UsageError, "usage", 2), (BadInput, "bad_input", 3), (Infeasible, "condition", 1), (Unavailable, "environment", 4))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint="see python -m stowage profile --help")


def add_profile(verbs: Any) -> None:
    """The verb's line in the help of all."""
    verbs.add_parser("profile", help="record one step of a function of yours for the command and the desktop program",
                     add_help=False)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m stowage profile", allow_abbrev=False, usage="%(prog)s FILE.py:function --output FILE [options]",
        description="Records one training step into a trace. The function returns (model, optimizer, step): step() is "
        "forward, backward, the optimizer's step and zero_grad(), and runs some 25 times, which is training; without an "
        "optimizer None. It may take `device`, and step its number.")
    parser.add_argument("function", metavar="FILE.py:function")
    parser.add_argument("-o", "--output", required=True, metavar="FILE",
                        help="the trace, .json or .json.gz; - is stdout")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="what the function is given as device (default: cuda "
                        "where there is a GPU)")
    parser.add_argument("--memory-limit", metavar="SIZE", help="device memory that the step may use")
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of PyTorch's and Python's generators ahead of the function (1)")
    parser.add_argument("--threads", type=_count, metavar="N",
                        help="intra-op threads (default: 1 on a CPU, where more allocate in no order; else PyTorch's choice)")
    parser.add_argument("--warmup", type=_count, default=3, metavar="N", help="steps before anything is recorded (3)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress and no warnings on stderr")
    parser.add_argument("--color", choices=["auto", "always", "never"], default="auto", metavar="MODE",
                        help="auto, always or never (auto respects NO_COLOR)")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10000:
        raise argparse.ArgumentTypeError(f"{text} is not allowed: a whole number from 1 to 10000")
    return int(text)


def profile(arguments: list[str]) -> int:
    """Runs the verb; returns its exit code. Raises SystemExit(0) behind --help."""
    out, is_json = sys.stdout, "--json" in arguments
    color = next((after for option, after in zip(arguments, arguments[1:]) if option == "--color"), "auto")
    try:
        # The user's code prints where progress goes: stdout is the trace's or the answer's.
        with contextlib.redirect_stdout(sys.stderr):
            text = _profiled(arguments, color, out)
        out.write(text)
        out.flush()
        return 0
    except KeyboardInterrupt:
        return _failed("interrupted", 130, "interrupted", "", "", is_json, color, out)
    except Error as error:
        name, code = next(((name, code) for kind, name, code in _CODES if isinstance(error, kind)), ("internal", 70))
        return _failed(name, code, error.message, error.where, error.hint, is_json, color, out)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return _failed("environment", 4, "stdout is closed", "", "", False, color, out)
    except (ImportError, OSError) as error:
        return _failed("environment", 4, str(error), "", "", is_json, color, out)
    except Exception as error:  # of the user's code they are errors of the package's
        return _failed("internal", 70, f"{type(error).__name__}: {error}", "", "", is_json, color, out)


def _failed(name: str, code: int, message: str, where: str, hint: str, is_json: bool, color: str, out: Any) -> int:
    text = (f"{where}: " if where else "") + message + (f" ({hint})" if hint else "")
    print(f"stowage: {_paint('error:', 31, color)} {text}", file=sys.stderr)
    if is_json:
        json.dump({"schema": "stowage-error/1", "error": {"code": name, "exit_code": code, "message": message,
                                                          "where": where, "hint": hint}}, out, indent=2)
        out.write("\n")
    return code


def _paint(text: str, number: int, color: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty()
    return text if color == "never" or color != "always" and plain else f"\033[1;{number}m{text}\033[0m"


def _profiled(arguments: list[str], color: str, out: Any) -> str:
    if "-h" in arguments or "--help" in arguments:
        with contextlib.redirect_stdout(out):
            _parser().parse_args(["--help"])
    given, unknown = _parser().parse_known_args(arguments)
    if unknown:
        option = unknown[0].partition("=")[0]
        of_models = option in _OF_MODELS
        raise UsageError(f"{option} is of built-in models" if of_models else f"unknown option '{option}'",
                         hint="what the function makes has it" if of_models else "see python -m stowage profile --help")
    from ._sizes import bytes_of

    limit = bytes_of(given.memory_limit, "--memory-limit") if given.memory_limit is not None else None
    if given.json and given.output == "-":
        raise UsageError("--json and -o - would both write to stdout", hint="give -o a file")
    # Torch only now: help and wrong arguments need none.
    from ._user_function import UserFunction

    function = UserFunction(given.function)
    _check_output(given.output, function.file)
    with _warnings(given.quiet, color):
        trace = _recorded(function, given, limit, ["stowage", "profile", *arguments])
    if given.output == "-":
        return trace.to_json().decode()
    from ._profiled import profile_json, profile_text

    trace.save(given.output)
    return profile_json(trace, given.output) if given.json else profile_text(trace, given.output)


# Ahead of a recording of minutes.
def _check_output(output: str, file: str) -> None:
    if output == "-":
        return
    if os.path.exists(output) and os.path.exists(file) and os.path.samefile(output, file):
        raise UsageError(f"{output} is the function's file, which would be lost", hint="give -o another file")
    if not os.path.isdir(os.path.dirname(output) or "."):
        raise Unavailable("cannot be written: No such file or directory", output, hint="create the folder first")


@contextlib.contextmanager
def _warnings(quiet: bool, color: str) -> Iterator[None]:
    from ._training import StowageWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if quiet else "always", StowageWarning)
        others = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any) -> None:
            if issubclass(category, StowageWarning):
                print(f"stowage: {_paint('warning:', 33, color)} {message}", file=sys.stderr)
            else:
                others(message, category, *where)

        warnings.showwarning = show
        yield


def _recorded(function: Any, given: argparse.Namespace, limit: int | None, argv: list[str]) -> Any:
    import torch

    from . import _torch
    from ._planning import plan as make_plan
    from ._training import Recording, Run

    device = _device(given.device)
    if device.type == "cpu" or given.threads is not None:
        torch.set_num_threads(given.threads or 1)
    if device.type == "cpu":
        _torch.device("cpu")  # counts what is made from now on
    elif limit is not None:
        share = limit / torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(share, 1.0), device)
    torch.manual_seed(given.seed)
    random.seed(given.seed)
    sys.argv = [function.file]
    try:
        made = function.make(device)
        on = {parameter.device.type for parameter in made.model.parameters()}
        if given.device is not None and on in ({"cpu"}, {"cuda"}) and on != {given.device}:
            raise UsageError(f"--device is {given.device}, and the model of {function.spec} is on {' and '.join(sorted(on))}",
                             hint="let the function take device, and make the model there")
        with Run(made.model, made.optimizer, lambda trace: make_plan(trace, policy="resident"), (None, None), None,
                 Recording(warmup=given.warmup), facts={"model": f"python:{function.spec}", "argv": argv}) as run:
            trace = _run_steps(run, made, given)
    except torch.OutOfMemoryError as error:
        raise Infeasible("out of memory: " + str(error).splitlines()[0], hint="a smaller batch, or a larger --memory-limit; "
                         "a function's step is not recorded with everything offloaded") from error
    except NotImplementedError as error:
        raise BadInput(str(error), function.file) from error
    peak = trace.peaks["requested_bytes"]
    if limit is not None and peak > limit:
        raise Infeasible(f"the step takes {peak} bytes, {peak - limit} above --memory-limit {given.memory_limit}",
                         hint="a smaller batch, or a larger limit; a function's step is not recorded with everything "
                         "offloaded")
    return trace


def _run_steps(run: Any, made: Any, given: argparse.Namespace) -> Any:
    shows, shown, k = sys.stderr.isatty() and not given.quiet, "", 0
    while not run.keys or run.trace() is None:
        with run.step():
            made.run(k)
        k += 1
        part = run.report().partition(": ")[2].partition(",")[0]
        if shows and part and part != shown:
            print(f"stowage: {part} ..", file=sys.stderr)
            shown = part
    return run.trace()


def _device(name: str | None) -> Any:
    import torch

    if name == "cpu" or name is None and not torch.cuda.is_available():
        return torch.device("cpu")
    if not torch.cuda.is_available():
        why = "this torch is built without CUDA" if torch.version.cuda is None else "torch finds none"
        raise Unavailable(f"no CUDA device: {why}", hint="use --device cpu")
    return torch.device("cuda", torch.cuda.current_device())
