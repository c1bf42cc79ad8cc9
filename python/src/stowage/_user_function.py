"""A step that a function in a user's file makes: FILE.py:function, for `python -m stowage profile`.

    def net(device):                        # or without the argument
        model, optimizer = .., ..
        def step():                         # or step(k), its number from 0 on
            ..                              # forward, backward, update, zero_grad
        return model, optimizer, step       # optimizer: None where there is none
"""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Callable

import torch

from ._errors import BadInput, Error, UsageError

_RETURNS = "return model, optimizer, step, where step() is all of one step"


@dataclass(frozen=True)
class MadeStep:
    """What the function returned."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer | None
    run: Callable[[int], Any]  #: one step, by its number


class UserFunction:
    """The function, by name; nothing is loaded yet."""

    def __init__(self, spec: str) -> None:
        """spec: "FILE.py:function", with or without "python:" ahead. Raises UsageError: it is something else."""
        self.spec = spec.removeprefix("python:")
        self.file, colon, self.name = self.spec.rpartition(":")
        if not colon or not self.file or not self.name.isidentifier():
            raise UsageError(f"'{self.spec}' names no function of a file", hint="FILE.py:function")

    def make(self, device: torch.device) -> MadeStep:
        """Loads the file, calls the function. Raises BadInput: the file, or what the function does, cannot be used."""
        function = getattr(self._load(), self.name, None)
        if not callable(function):
            raise BadInput(f"there is no function '{self.name}'", self.file)
        arguments = {}
        for name, parameter in inspect.signature(function).parameters.items():
            if name == "device":
                arguments[name] = device
            elif parameter.default is parameter.empty and parameter.kind not in (parameter.VAR_POSITIONAL,
                                                                                 parameter.VAR_KEYWORD):
                raise BadInput(f"{self.name}() needs '{name}', which nobody gives it", self.file,
                               hint="it may take device, and nothing else without a default")
        made = self._called(lambda: function(**arguments))
        if not isinstance(made, tuple) or len(made) != 3:
            raise BadInput(f"{self.name}() returns {_kind(made)}", self.file, hint=_RETURNS)
        model, optimizer, step = made
        for part, name, kind in ((model, "model", torch.nn.Module), (optimizer, "optimizer", torch.optim.Optimizer)):
            if not isinstance(part, kind) and not (name == "optimizer" and part is None):
                raise BadInput(f"{self.name}() returns {_kind(part)} as its {name}", self.file, hint=_RETURNS)
        if not callable(step):
            raise BadInput(f"{self.name}() returns {_kind(step)} as its step", self.file, hint=_RETURNS)
        numbered = step if _takes_number(step) else lambda _: step()
        return MadeStep(model, optimizer, lambda k: self._called(lambda: numbered(k)))

    def _load(self) -> ModuleType:
        if not os.path.isfile(self.file):
            raise BadInput("there is no such file", self.file, hint="check the path")
        stem = os.path.splitext(os.path.basename(self.file))[0]
        name = stem if stem.isidentifier() and stem not in sys.modules else "stowage_profiled"
        spec = importlib.util.spec_from_file_location(name, self.file)
        if spec is None or spec.loader is None:
            raise BadInput("is no Python file", self.file, hint="its name ends in .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # as an import does; what is pickled looks there
        sys.path[0] = os.path.dirname(os.path.abspath(self.file))
        loader = spec.loader
        self._called(lambda: loader.exec_module(module))
        return module

    # Its exceptions, but for those of Stowage and of memory, as one line that says where.
    def _called(self, function: Callable[[], Any]) -> Any:
        try:
            return function()
        except (Error, torch.OutOfMemoryError):
            raise
        except (Exception, SystemExit) as error:
            file, line = self._place(error)
            text = (str(error).splitlines() or [""])[0]
            raise BadInput(f"line {line}: {type(error).__name__}" + (f": {text}" if text else ""), file) from error

    # Where in the user's own file, if there, it was raised.
    def _place(self, error: BaseException) -> tuple[str, int | None]:
        if isinstance(error, SyntaxError) and error.filename:
            return error.filename, error.lineno
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if os.path.realpath(frame.filename) == os.path.realpath(self.file)]
        return (self.file, own[-1].lineno) if own else (frames[-1].filename, frames[-1].lineno)


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} values"
    return "None" if value is None else f"a {type(value).__name__}"


def _takes_number(step: Callable[..., Any]) -> bool:
    try:
        inspect.signature(step).bind()
        return False
    except TypeError:
        return True
    except ValueError:
        return False
