"""What a step would take under a plan."""

from __future__ import annotations

import html
import json
import os
from typing import TYPE_CHECKING, Any, Literal, Mapping, Union

from . import _core
from ._exports import Exports, svg_for_html, text_style
from ._plan import Plan
from ._tables import Table
from ._trace import Trace

if TYPE_CHECKING:
    from ._planning import Policy, PlanOutcome


class Simulation(Exports):
    """A step under a plan on the model of the machine that the trace was recorded on. Bytes and ns.

    The peaks are exact: bytes are a function of program order. Times are a prediction.
    """

    __slots__ = ("_simulated", "_content", "_trace")

    def __init__(self, simulated: _core.Simulated, trace: Trace) -> None:
        """Not for users: see simulate()."""
        self._simulated = simulated
        self._trace = trace
        self._content: dict[str, Any] = json.loads(simulated.json())

    @property
    def trace(self) -> Trace:
        """The recording."""
        return self._trace

    @property
    def plan(self) -> Plan:
        """The plan, its budget in bytes."""
        return Plan(self._simulated.plan, self._trace.path)

    @property
    def feasible(self) -> bool:
        """Whether it keeps the plan's budgets; True without one."""
        return bool(self._content["feasible"])

    @property
    def peak_requested_bytes(self) -> int:
        """Peak of what the program asked for."""
        return int(self._content["peak_requested_bytes"])

    @property
    def peak_active_bytes(self) -> int:
        """Peak of what the memory handed out."""
        return int(self._content["peak_active_bytes"])

    @property
    def peak_reserved_bytes(self) -> int | None:
        """Peak of what is taken of the card; None: the device has no such counter."""
        bytes: int | None = self._content["peak_reserved_bytes"]
        return bytes

    @property
    def host_bytes(self) -> int:
        """Host memory for what is away."""
        return int(self._content["host_bytes"])

    @property
    def step_ns(self) -> int:
        """Time of the step."""
        return int(self._content["step_ns"])

    @property
    def stall_ns(self) -> int:
        """Part of it in which compute waits for copies or for the host."""
        return int(self._content["stall_ns"])

    @property
    def resident(self) -> dict[str, Any]:
        """The same figures with nothing moved."""
        resident: dict[str, Any] = self._content["resident"]
        return resident

    @property
    def stalls(self) -> Table:
        """Longest first: which copy, why it was late, what would help (docs/exports.md)."""
        return Table(self._content["stalls"])

    @property
    def notes(self) -> list[str]:
        """Remarks of the lowering and the replay."""
        return list(self._content["notes"])

    def curve(self) -> dict[str, list[int]]:
        """Memory over time, a step function: time_ns, requested_bytes, active_bytes, reserved_bytes, of equal
        length; a counter that is not known is empty, or -1 ahead of the first known value."""
        return self._simulated.curve()

    def timeline(self) -> dict[str, Any]:
        """Lanes and memory as `stowage simulate --timeline` writes them."""
        timeline: dict[str, Any] = json.loads(self._simulated.timeline_json())
        return timeline

    def to_dict(self) -> dict[str, Any]:
        """What `stowage simulate --json` prints (docs/cli.md)."""
        content: dict[str, Any] = json.loads(self._simulated.json())
        return content

    def text(self) -> str:
        """For people: the memory curve, figures, the longest stalls."""
        return self._simulated.text(**text_style())

    def _exported(self, format: str, table: str) -> bytes:
        return self._simulated.export(format, table)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return (
            f"<stowage.Simulation peak {self.peak_active_bytes} bytes active, step {self.step_ns} ns, "
            f"stall {self.stall_ns} ns>"
        )

    def _repr_html_(self) -> str:
        text = f"<pre>{html.escape(self.text())}</pre>"
        return f"{svg_for_html(self.svg())}<details><summary>text</summary>{text}</details>"


# What simulate() replays.
Replayable = Union[Plan, "PlanOutcome", Mapping[str, Any], "os.PathLike[str]", "Policy", None]


def simulate(
    trace: Trace,
    plan: Replayable = None,
    *,
    placement: Literal["planned", "caching"] | None = None,
    settings: Mapping[str, float] | None = None,
) -> Simulation:
    """Replays a step under a plan.

    Args:
        trace: The recording.
        plan: A Plan, what plan() returned, a plan file's content or its path (a pathlib.Path); a policy (a text
            such as "torchtune:stash=5", or a function as plan() takes it); None: nothing moves.
        placement: "planned" or "caching" memory; None: the plan's, of a policy what the trace's device usually has.
        settings: Another machine, such as {"link.h2d_gbps": 25}.

    Raises:
        BadInput: The plan is for another trace, or a rule of it matches nothing.
        UsageError: An unknown policy, placement or setting.
    """
    from ._planning import PlanOutcome
    from ._planning import plan as make_plan

    if settings:
        trace = trace.with_settings(settings)
    if plan is None:
        plan = "resident"
    if callable(plan):
        plan = make_plan(trace, policy=plan, placement=placement)
    if isinstance(plan, str):
        return Simulation(_core.simulate_policy(trace._recording, plan, placement), trace)
    name = "plan"
    if isinstance(plan, PlanOutcome):
        plan = plan.plan
    elif isinstance(plan, Mapping):
        plan = Plan.from_dict(plan)
    elif isinstance(plan, os.PathLike):
        name = os.fspath(plan)
        plan = Plan.load(plan)
    return Simulation(_core.simulate_plan(trace._recording, plan._value, name, placement), trace)
