"""What is in a trace, what changed between two values, which policies there are."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any, Literal, Mapping, Union

from . import _core
from ._errors import UsageError
from ._exports import svg_for_html, text_style
from ._plan import Plan
from ._planning import PlanOutcome
from ._simulation import Simulation
from ._tables import Table
from ._trace import Trace

_ALL = 1_000_000


class Inspection:
    """Phases, layers, and what is alive at one moment of a trace. Bytes and ns."""

    __slots__ = ("_inspected", "_content", "_trace")

    def __init__(self, inspected: _core.Inspected, trace: Trace) -> None:
        """Not for users: see inspect()."""
        self._inspected = inspected
        self._trace = trace
        self._content: dict[str, Any] = json.loads(inspected.json(_ALL))

    @property
    def run(self) -> dict[str, Any]:
        """Model, batch, dtype, device, step_ns, .."""
        run: dict[str, Any] = self._content["run"]
        return run

    @property
    def phases(self) -> Table:
        """kind, micro_batch, ops, begin_ns, duration_ns, peak_requested_bytes."""
        return Table(self._content["phases"])

    @property
    def layers(self) -> Table:
        """Each without the layers inside it: name, calls, ops, forward_ns, backward_ns, parameter_bytes,
        saved_bytes, bytes_at_peak."""
        return Table(self._content["layers"])

    @property
    def moment(self) -> dict[str, Any]:
        """Where in the step: op_name, layer, phase, time_ns, requested_bytes, ..; by_class and by_layer (or by_op)
        say who holds these, by_use what they are there for then: needed_bytes (in use, or used again sooner than they
        could leave and return), saved_bytes (idle saved tensors, which an offload can move), idle_bytes (their next use
        is later than that), dead_bytes (nothing in the step uses them any more)."""
        return {key: value for key, value in self._content["peak"].items() if key != "storages"}

    @property
    def storages(self) -> Table:
        """All that is alive then, largest first: bytes, class, layer, site, made_by, use (needed, saved, idle, dead),
        could_leave."""
        return Table(self._content["peak"]["storages"])

    @property
    def saved(self) -> dict[str, int]:
        """Saved tensors made in the step: storages, bytes, alive_bytes then, could_leave_bytes."""
        saved: dict[str, int] = self._content["saved"]
        return saved

    def to_dict(self) -> dict[str, Any]:
        """What `stowage inspect --json` prints (docs/cli.md), with all storages."""
        content: dict[str, Any] = json.loads(self._inspected.json(_ALL))
        return content

    def text(self, top: int = 10) -> str:
        """For people; `top`: rows of each table."""
        return self._inspected.text(top=_rows(top), **text_style())

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<stowage.Inspection of {self._trace!r}>"

    def _repr_html_(self) -> str:
        return svg_for_html(self._trace.svg()) + f"<pre>{html.escape(self.text())}</pre>"


def _rows(top: int) -> int:
    if not 1 <= top <= _ALL:
        raise UsageError(f"top: {top} is not a number of rows", hint=f"1 to {_ALL}")
    return top


def inspect(trace: Trace, *, by: Literal["layer", "op", "class"] = "layer", at: str | int = "peak") -> Inspection:
    """What is in a trace.

    Args:
        trace: The recording.
        by: How what is alive is grouped.
        at: Which moment: "peak", an op's number, or an op's name, then its highest point.

    Raises:
        UsageError: No such op or grouping.
    """
    return Inspection(_core.inspect(trace._recording, by, str(at)), trace)


class Diff:
    """What is not the same in two traces, two plans or two answers."""

    __slots__ = ("_compared", "_content")

    def __init__(self, compared: _core.Compared) -> None:
        """Not for users: see diff()."""
        self._compared = compared
        self._content: dict[str, Any] = json.loads(compared.json())

    @property
    def kind(self) -> str:
        """"trace", "plan", or the verb whose answers they are."""
        return str(self._content["kind"])

    @property
    def equal(self) -> bool:
        """Whether all facts are the same."""
        return bool(self._content["equal"])

    @property
    def changes(self) -> Table:
        """section, name, unit, before, after, difference, relative."""
        return Table(self._content["changes"])

    def to_dict(self) -> dict[str, Any]:
        """What `stowage diff --json` prints (docs/cli.md)."""
        content: dict[str, Any] = json.loads(self._compared.json())
        return content

    def text(self, top: int = 20) -> str:
        """For people; `top`: rows of each section."""
        return self._compared.text(_rows(top))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<stowage.Diff ({self.kind}), {len(self._content['changes'])} changes>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text())}</pre>"


# What diff() compares.
Comparable = Union[Trace, Plan, Simulation, PlanOutcome, Inspection, Mapping[str, Any], str, "os.PathLike[str]"]


def _bytes_and_name(value: Comparable, name: str) -> tuple[bytes, str]:
    if isinstance(value, (Trace, Plan)):
        return value.to_json(), name
    if isinstance(value, (Simulation, PlanOutcome, Inspection)):
        return json.dumps(value.to_dict()).encode(), name
    if isinstance(value, Mapping):
        return json.dumps(value).encode(), name
    file = os.fspath(value)
    if file.endswith(".gz"):
        return Trace.load(file).to_json(), file
    return Path(file).read_bytes(), file


def diff(before: Comparable, after: Comparable) -> Diff:
    """Compares two traces, two plans, two simulations, outcomes or inspections, two answers of a verb (as
    dictionaries), or files of these. Raises UsageError: they are not of one kind; BadInput; OSError."""
    a, name_a = _bytes_and_name(before, "before")
    b, name_b = _bytes_and_name(after, "after")
    return Diff(_core.diff(a, name_a, b, name_b))


def policies() -> Table:
    """Policies to plan and simulate with: name, summary, options (each with name, default, help)."""
    return Table(json.loads(_core.policies())["policies"])


def policy(name: str, **options: object) -> str:
    """A policy with options, as plan() and simulate() take it: policy("torchtune", stash=5) is "torchtune:stash=5".
    Raises UsageError: no such policy or option."""
    known = {row["name"]: [option["name"] for option in row["options"]] for row in policies()}
    if name not in known:
        raise UsageError(f"unknown policy '{name}'", hint=", ".join(known))
    for option in options:
        if option not in known[name]:
            hint = ", ".join(known[name]) or "it has none"
            raise UsageError(f"unknown option of policy {name} '{option}'", hint=hint)
    spec = ",".join(f"{option}={_option(value)}" for option, value in options.items())
    return f"{name}:{spec}" if spec else name


def _option(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
