"""Exceptions: what the library answers as an Error, as Python's."""

from __future__ import annotations

import re


class Error(Exception):
    """What went wrong, in one line, and what to do about it.

    Attributes:
        message: What is wrong, without a full stop.
        file: The file that it is about, or "".
        pointer: JSON pointer of the place in that file, or "".
        hint: What to do about it, or "".
    """

    def __init__(self, message: str, file: str = "", pointer: str = "", hint: str = "") -> None:
        super().__init__(message, file, pointer, hint)
        self.message = message
        self.file = file
        self.pointer = pointer
        self.hint = hint

    @property
    def where(self) -> str:
        """"p.json: /saved/3", or ""."""
        return ": ".join(part for part in (self.file, self.pointer) if part)

    def __str__(self) -> str:
        text = ": ".join(part for part in (self.file, self.pointer, self.message) if part)
        return f"{text} ({self.hint})" if self.hint else text


class UsageError(Error, ValueError):
    """An argument is wrong: no budget, an unknown policy, a size that is none."""


class BadInput(Error, ValueError):
    """A trace or a plan that cannot be used: no such format, or made for another trace."""


class Infeasible(Error, RuntimeError):
    """There is no such plan. Raised by PlanOutcome.plan_or_raise() alone: plan() returns it as a value."""


class Unavailable(Error, RuntimeError):
    """Not possible on this machine: no space, no permission, not built."""


class InternalError(Error, RuntimeError):
    """A bug of Stowage."""


_BY_EXIT_CODE: dict[int, type[Error]] = {1: Infeasible, 2: UsageError, 3: BadInput, 4: Unavailable}


# Options of the command that hints name, which are arguments here.
_OPTION = re.compile(r"--(budget-on|host-budget|budget|time-limit|policy|placement|fit|allow|trace|plan)\b")


def _hint(text: str) -> str:
    text = text.replace("--threads 1", "torch.set_num_threads(1)")
    return _OPTION.sub(lambda option: option[1].replace("-", "_"), text)


def from_library(code: int, message: str, file: str, pointer: str, hint: str) -> Error:
    """The exception of an Error of the library; `code` is the exit code that it has in the command."""
    return _BY_EXIT_CODE.get(code, InternalError)(message, file, pointer, _hint(hint))
