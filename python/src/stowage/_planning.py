"""From a trace and a budget to a plan."""

from __future__ import annotations

import difflib
import html
import json
import re
from typing import Any, Callable, Iterable, Iterator, Literal, Union

from . import _core
from ._errors import Error, UsageError
from ._exports import svg_for_html, text_style
from ._plan import Plan
from ._simulation import Simulation
from ._sizes import bytes_of
from ._trace import SavedTensor, Trace

Decision = Literal["keep", "offload", "recompute"]
# A policy by name, with options behind a colon, or one of your own.
Policy = Union[str, Callable[[SavedTensor], Decision]]
# Which of the saved tensors a plan may decide about.
Filter = Callable[[SavedTensor], bool]
Progress = Callable[[int, int, Union[int, None]], object]
Status = Literal["planned", "fits_already", "infeasible", "offload_cannot_help", "policy_over_budget", "not_found"]

_DECISIONS = ("keep", "offload", "recompute")
_KINDS = ("offload", "recompute", "params", "optimizer", "gradients", "micro-batch")
_SOME_PEAK = 10**15  # of which a share can be taken before there is a recording


class PlanOutcome:
    """What plan() found. Bytes and ns."""

    __slots__ = ("_planned", "_content", "_trace", "_simulation")

    def __init__(self, planned: _core.Planned, trace: Trace) -> None:
        """Not for users: see plan()."""
        self._planned = planned
        self._trace = trace
        self._content: dict[str, Any] = json.loads(planned.json())
        self._simulation: Simulation | None = None

    @property
    def status(self) -> Status:
        """planned: the plan keeps the budget, or there was none; fits_already: it moves nothing;
        infeasible, offload_cannot_help: proven, there is none; policy_over_budget: this policy's does not keep it;
        not_found: neither found nor disproven."""
        status: Status = self._content["outcome"]
        return status

    @property
    def feasible(self) -> bool:
        """Whether the plan keeps the budgets."""
        return bool(self._content["feasible"])

    @property
    def plan(self) -> Plan:
        """The plan; of an outcome that is not feasible the tightest one known."""
        return Plan(self._planned.plan, self._trace.path)

    def plan_or_raise(self) -> Plan:
        """The plan. Raises Infeasible, with the floor and the op that makes it, where it keeps no budget."""
        if self.error is not None:
            raise self.error
        return self.plan

    @property
    def error(self) -> Error | None:
        """Why there is no plan, as plan_or_raise() raises it; None where there is one."""
        error: Any = self._planned.error()
        return error if isinstance(error, Error) else None

    @property
    def budget_bytes(self) -> int | None:
        """The budget on the device's memory; None: none."""
        budget: int | None = self._content["budget"]["device_bytes"]
        return budget

    @property
    def budget_on(self) -> str:
        """The counter that it is on: "requested", "active" or "reserved"."""
        return str(self._content["budget"]["on"])

    @property
    def predicted(self) -> dict[str, Any]:
        """Of the plan: peak_requested_bytes, peak_active_bytes, peak_reserved_bytes, host_bytes, step_ns, stall_ns,
        transfer_bytes, .."""
        predicted: dict[str, Any] = self._content["predicted"]
        return predicted

    @property
    def resident(self) -> dict[str, Any]:
        """The same with nothing moved."""
        resident: dict[str, Any] = self._content["resident"]
        return resident

    @property
    def peak_bytes(self) -> int:
        """The plan's peak, in the counter of budget_on."""
        return int(self.predicted[f"peak_{self.budget_on}_bytes"])

    @property
    def step_ns(self) -> int:
        """The plan's step."""
        return int(self.predicted["step_ns"])

    @property
    def bound_ns(self) -> int:
        """No plan within the budgets has a shorter step than this."""
        return int(self._content["lower_bound"]["step_ns"])

    @property
    def gap(self) -> float:
        """How far the plan may be from the best one: (step - bound) / bound."""
        return float(self._content["gap"])

    @property
    def floor(self) -> dict[str, Any]:
        """Below `bytes` there is no plan; op_name, layer and storages say what makes it."""
        floor: dict[str, Any] = self._content["floor"]
        return floor

    @property
    def kept_from_bytes(self) -> int | None:
        """The smallest budget that the tightest plan known keeps; None: none was looked for."""
        least: int | None = self._content["kept_from_bytes"]
        return least

    @property
    def search(self) -> dict[str, Any]:
        """evaluations, candidates, .., stopped (by the time limit)."""
        search: dict[str, Any] = self._content["search"]
        return search

    @property
    def pinned(self) -> int:
        """How many decisions of the pins the plan has."""
        return int(self._content["pinned"])

    @property
    def notes(self) -> list[str]:
        """Remarks of the planner."""
        return list(self._content["notes"])

    @property
    def simulation(self) -> Simulation:
        """The plan on the recording."""
        if self._simulation is None:
            self._simulation = Simulation(self._planned.simulated, self._trace)
        return self._simulation

    def to_dict(self) -> dict[str, Any]:
        """What `stowage plan --json` prints (docs/cli.md)."""
        content: dict[str, Any] = json.loads(self._planned.json())
        return content

    def text(self, explain: bool = False) -> str:
        """For people; `explain`: also what makes the floor, what recompute buys, the rules, the search."""
        return self._planned.text(explain=explain, **text_style())

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        peak = f"peak {self.peak_bytes} bytes {self.budget_on}"
        return f"<stowage.PlanOutcome {self.status}, {peak}, step {self.step_ns} ns>"

    def _repr_html_(self) -> str:
        return svg_for_html(self.simulation.svg()) + f"<pre>{html.escape(self.text())}</pre>"


class _Bar:
    """A bar of tqdm's."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._bar = make(desc="planning", unit="plan", leave=False)

    def __call__(self, evaluations: int, most: int, best_step_ns: int | None) -> None:
        self._bar.total = most
        if best_step_ns is not None:
            self._bar.set_postfix_str(f"best step {best_step_ns / 1e6:.3g} ms", refresh=False)
        self._bar.update(evaluations - self._bar.n)

    def close(self) -> None:
        self._bar.close()


def _bar() -> _Bar | None:
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return _Bar(tqdm)


def _rules(trace: Trace, policy: Callable[[SavedTensor], Decision]) -> _core.Rules:
    """The decisions of a policy of the user's as rules."""
    decided = []
    for row in trace.saved_tensors():
        saved = SavedTensor(**row)
        decision = policy(saved) if saved.made_in_step and saved.bytes > 0 else "keep"
        if decision not in _DECISIONS:
            raise UsageError(
                f"the policy decides {decision!r} about {saved.site}", hint='"keep", "offload" or "recompute"'
            )
        decided.append(str(decision))
    return _core.rules_of(trace._recording, decided)


def names_of(given: str | Iterable[str] | Filter | None) -> list[str] | None:
    """The kinds of an allow or deny; None where there are none, or a function says it."""
    if given is None or callable(given):
        return None
    return given.split(",") if isinstance(given, str) else list(given)


def _size(given: str | int | None) -> str | None:
    return None if given is None else str(given)


def check_request(
    budget: str | int | None,
    *,
    fit: str | int | None = None,
    host_budget: str | int | None = None,
    policy: Policy = "auto",
    allow: str | Iterable[str] | Filter | None = None,
    deny: str | Iterable[str] | Filter | None = None,
    pins: Plan | str | Iterable[str] | None = None,
    time_limit: float | None = None,
    **_: object,
) -> None:
    """Raises UsageError for arguments of plan() that are wrong whatever the recording, a size with its likely meaning."""
    if budget is not None:
        bytes_of(budget, "budget", _SOME_PEAK)
    for name, size in (("fit", fit), ("host_budget", host_budget)):
        if size is not None:
            bytes_of(size, name)
    if policy == "auto" and budget is None and fit is None:
        raise UsageError("a plan needs a budget", hint='such as budget="24GiB", budget="60%" or fit="24GiB"')
    known = [str(row["name"]) for row in json.loads(_core.policies())["policies"]]
    if isinstance(policy, str) and (name := policy.partition(":")[0]) not in known:
        raise UsageError(f"unknown policy '{name}'", hint=_nearest(name, known))
    if policy != "auto" and (allow is not None or deny is not None):
        raise UsageError("allow and deny say what auto decides", hint="leave policy out")
    if pins is not None and (policy != "auto" or callable(allow) or callable(deny)):
        raise UsageError("pins say what the search of auto leaves as it is",
                         hint="leave policy out, and functions for allow and deny")
    for argument, kinds in (("allow", allow), ("deny", deny)):
        if callable(kinds) or isinstance(kinds, Iterator):  # which can be read once
            continue
        for kind in names_of(kinds) or []:
            if kind not in _KINDS:
                raise UsageError(f"{argument}: '{kind}' is nothing that auto decides", hint=_nearest(kind, _KINDS))
    if allow is not None and deny is not None:
        raise UsageError("allow and deny", hint="give one of them")
    if time_limit is not None and not time_limit > 0:
        raise UsageError(f"a time limit of {time_limit} s leaves no time for a search")


# Of an allow or deny that is a function: whether a plan may decide about a saved tensor.
def _filter(allow: str | Iterable[str] | Filter | None, deny: str | Iterable[str] | Filter | None) -> Filter | None:
    if callable(allow):
        return allow
    if callable(deny):
        return lambda saved: not deny(saved)
    return None


# A plan that keeps what a filter does not leave to decide: pins.
def _kept(trace: Trace, may_decide: Filter) -> Plan:
    saved = [SavedTensor(**row) for row in trace.saved_tensors()]
    kept = [each.site for each in saved if each.made_in_step and each.bytes > 0 and not may_decide(each)]
    rules = [{"site": _as_pattern(site), "do": "keep"} for site in kept]
    return Plan.from_dict({"schema": "stowage-plan/1", "saved": rules}, "the filter's plan")


# That matches this site alone (docs/plan-format.md).
def _as_pattern(site: str) -> str:
    return re.sub(r"[*?\[]", lambda found: f"[{found[0]}]", site)


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else "one of " + ", ".join(known)


def plan(
    trace: Trace,
    budget: str | int | None = None,
    *,
    budget_on: Literal["requested", "active", "reserved"] | None = None,
    fit: str | int | None = None,
    placement: Literal["planned", "caching"] | None = None,
    host_budget: str | int | None = None,
    policy: Policy = "auto",
    allow: str | Iterable[str] | Filter | None = None,
    deny: str | Iterable[str] | Filter | None = None,
    pins: Plan | str | Iterable[str] | None = None,
    time_limit: float | None = None,
    max_evaluations: int | None = None,
    seed: int = 1,
    progress: Progress | bool | None = None,
) -> PlanOutcome:
    """Finds the plan with the shortest step within a budget, with a lower bound that says how good it is.

    That there is no plan is an outcome, not an exception: see PlanOutcome.status. Other threads run meanwhile;
    Ctrl-C ends the search.

    Args:
        trace: The recording.
        budget: Device memory: "24GiB", "24GB", bytes, or "60%" of the peak with nothing moved. Needed by "auto"
            (or fit); with another policy None means no limit.
        budget_on: What it bounds; None: "reserved" where memory is planned on a GPU, else "active".
        fit: In place of budget: the size of a device, such as "24GiB", which holds reserved bytes and CUDA's context.
        placement: "planned" memory or "caching" (PyTorch's allocator); None: planned on a GPU.
        host_budget: Host memory that the plan may use: "64GiB", bytes.
        policy: "auto"; a known system with its options, such as "torchtune:stash=5" (see policies() and policy());
            or a function that decides about each saved tensor made in the step: SavedTensor -> "keep", "offload" or
            "recompute".
        allow: What "auto" may decide, of offload, recompute, params, optimizer, gradients, micro-batch; None: all. Or a
            function of a SavedTensor: whether the plan may decide about it, and then about nothing but such tensors.
            Floor and bound are of that.
        deny: What it leaves as it is; or a function that says of saved tensors that they stay, likewise.
        pins: Decisions that "auto" leaves as they are while it searches for the rest: the rules of a plan, or words such
            as "layers.0.mlp#1=keep", "layer:layers.3=recompute", "params:layers.*=stream".
        time_limit: Seconds, after which the best plan so far is the outcome.
        max_evaluations: Replays, likewise.
        seed: Written into the plan.
        progress: True for a bar (where tqdm is installed), or a function of the replays made, the most that there
            will be, and the best step so far (ns, or None); called a few times a second.

    Raises:
        UsageError: An argument is wrong.
        BadInput: The trace cannot be planned.
    """
    words = [pins] if isinstance(pins, str) else [] if pins is None or isinstance(pins, Plan) else list(pins)
    check_request(budget, fit=fit, host_budget=host_budget, policy=policy, allow=allow, deny=deny, pins=pins,
                  time_limit=time_limit)
    asked = _core.Asked()
    asked.budget = _size(budget)
    asked.budget_on = budget_on
    asked.fit = _size(fit)
    asked.placement = placement
    asked.host_budget = _size(host_budget)
    may_decide = _filter(allow, deny)
    if may_decide is None:
        asked.allow, asked.deny = names_of(allow), names_of(deny)
        asked.pinned = pins._value if isinstance(pins, Plan) else None
    else:
        asked.allow = ["offload", "recompute"]
        asked.pinned = _kept(trace, may_decide)._value
    asked.pins = words
    asked.seed = seed
    asked.max_evaluations = max_evaluations or 0
    rules = None
    if callable(policy):
        rules = _rules(trace, policy)
        asked.policy = "python:" + getattr(policy, "__name__", type(policy).__name__)
    else:
        asked.policy = policy
    bar = _bar() if progress is True else None
    callback = bar if isinstance(progress, bool) else progress
    try:
        planned = _core.make_plan(trace._recording, asked, rules, callback, min(time_limit or 0.0, 1e9))
    finally:
        if bar is not None:
            bar.close()
    return PlanOutcome(planned, trace)
