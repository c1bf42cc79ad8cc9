"""A training loop that is recorded, planned and run under its plan."""

from __future__ import annotations

import inspect
import sys
import warnings
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Hashable, Iterator

import torch

from . import _engine, _torch
from ._alike import AlikeSteps
from ._bound import BoundTensors
from ._data_parallel import RankPlans, communicates_in_forward, is_sharded, keep_buckets_apart, plans_alone, plans_of_ranks, runs_again
from ._errors import BadInput, Error, UsageError
from ._layers import EXCHANGED, FOREIGN, LayerCalls, choose_layers
from ._plan import Plan
from ._planning import PlanOutcome, check_request, names_of
from ._planning import plan as make_plan
from ._trace import Trace
from ._updates import SplitUpdates, is_split

Named = list[tuple[str, torch.Tensor]]

_MANY_KEYS = 8
_MOST_AGAIN = 5  # recordings of one key that a rank makes again


class StowageWarning(UserWarning):
    """Something that a user should know: a step off its plan, a figure that is not known."""


@dataclass(frozen=True)
class Recording:
    """How many of the loop's own steps a recording takes, at most.

    One step ahead of it is looked at. The least that is exact is Recording(warmup=2, steps=4, observed=2): 12 steps in
    all. More make times better.

    Attributes:
        warmup: Ahead of the unobserved steps, and ahead of the observed ones.
        steps: Unobserved, for the step's time and peaks; 4 or more.
        observed: With every op and allocation; 2 or more.
    """

    warmup: int = 3
    steps: int = 10
    observed: int = 3

    def __post_init__(self) -> None:
        if self.warmup < 1 or self.steps < 4 or self.observed < 2:
            raise UsageError(f"{self} records too little", hint="warmup=1, steps=4 and observed=2 at least")


@dataclass(frozen=True)
class StepReport:
    """What one planned step did.

    Attributes:
        on_plan: Whether it was the recorded step.
        first_difference: Where it was not; empty where on_plan.
        peak_requested_bytes: The most that was allocated at once, of the whole process on this device.
        offloaded_bytes: Of saved tensors, copied out.
        reloaded_bytes: Of saved tensors, copied back.
        peak_active_bytes: Likewise as the allocator rounds it, and as it may cache it.
        peak_reserved_bytes: The most that PyTorch's allocator and the plan's memory had of a GPU; None on the CPU.
    """

    on_plan: bool
    first_difference: str
    peak_requested_bytes: int
    offloaded_bytes: int
    reloaded_bytes: int
    peak_active_bytes: int = 0
    peak_reserved_bytes: int | None = None


class _Keyed:
    """What a run knows of the steps of one key."""

    def __init__(self, divides: bool) -> None:
        self.autocast: str | None = None  # of its forward, "" for none; None: no step has been made
        self.divides = divides  # the optimizer's step, into updates of one parameter
        self.recording: Any = None
        self.alike: AlikeSteps | None = None  # where the recording may leave steps out
        self.is_recorded = False  # the step that runs
        self.recorder_bytes = 0  # that the recording itself has between steps: a calibration's buffers
        self.again = 0  # recordings that were given up since their steps were not alike
        self.is_given_up = False  # by a rank, which would leave the others waiting if it raised
        self.error: Error | None = None  # why there is no plan
        self.trace: Trace | None = None
        self.outcome: PlanOutcome | None = None
        self.plan: Plan | None = None
        self.planned: Any = None
        self.bound: BoundTensors | None = None  # what it was made with
        self.steps = 0  # that were planned
        self.off_plan = 0  # of these
        self.last_report: StepReport | None = None


class Run:
    """A model and its optimizer whose steps are recorded, then planned. attach() makes it."""

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                 make: Callable[[Trace], PlanOutcome], given: tuple[Trace | None, Plan | None],
                 layers: Callable[[str, torch.nn.Module], bool] | None, recording: Recording,
                 records_all: bool = False, facts: dict[str, Any] | None = None, ranks: RankPlans | None = None) -> None:
        """Not for users: see attach(). records_all: a recording leaves no step out (see AlikeSteps); facts: what a trace
        says of the run otherwise than by itself; ranks: what a rank of a data-parallel run plans with."""
        self.model = model
        self.optimizer = optimizer
        self._make = make
        self._given = given
        self._ranks = ranks
        kind, index = _place_of(model)
        self._place = torch.device(kind, index) if kind == "cuda" else torch.device(kind)
        self._calls = LayerCalls(choose_layers(model, layers), kind)
        self._recording = recording
        self._records_all = records_all
        self._facts = facts or {}
        self._updates = SplitUpdates(optimizer) if optimizer is not None and is_split(optimizer) else None
        # A GPU's parameters PyTorch updates in a few kernels for all of them: divided where a plan needs it, no sooner.
        self._divides_at_first = kind == "cpu"
        self._keyed: dict[Hashable, _Keyed] = {}
        self._last: Hashable = None
        self._in_step = False
        self._has_said_once = False
        self._active: _Keyed | None = None  # whose plan may have parameters away
        self._attached = True
        shared = [name for name, tensor in self._parameters() + self._buffers()
                  if tensor.device.type == "cpu" and tensor.is_shared()]
        if shared:
            raise UsageError(f"{shared[0]} is in memory that processes share, which no plan moves")
        self._device = _torch.device(kind, index)
        self._count_in(self._parameters() + self._buffers() + self._optimizer_state())
        _engine.attach()
        self._leave_engine = weakref.finalize(self, _engine.detach)
        self._buckets = keep_buckets_apart(model)

    def _parameters(self) -> Named:
        return list(self.model.named_parameters())

    def _buffers(self) -> Named:
        return [(name, buffer) for name, buffer in self.model.named_buffers() if buffer.device == self._place]

    def _count_in(self, named: Named) -> None:
        self._device.count_in([tensor for _, tensor in named])

    def _optimizer_state(self, names: set[str] | None = None) -> Named:
        if self.optimizer is None:
            return []
        return [(f"{name}.{what}", piece)
                for name, parameter in self._parameters() if names is None or name in names
                for what, piece in self.optimizer.state.get(parameter, {}).items()
                if isinstance(piece, torch.Tensor) and piece.device == self._place]

    def _older(self) -> Named:
        """Besides parameters. Gradients are the last, as those that a step makes anew have no place to move into."""
        gradients = [(f"{name}.grad", parameter.grad) for name, parameter in self._parameters()
                     if parameter.grad is not None and parameter.grad.device == self._place]
        return self._buffers() + self._optimizer_state() + gradients

    @contextmanager
    def step(self, key: Hashable = None) -> Iterator[Run]:
        """One training step: forward, backward, the optimizer's step and zero_grad().

        The first steps of a key are recorded, which is training as ever; the others run under the plan. Nothing of a
        step (its graph, views of parameters) may be kept for the next one but detached results.

        Args:
            key: Tells steps apart that are not alike, such as a batch's shape: each has a recording and a plan.

        Raises:
            Exception: What the step raises; everything of the plan is cleaned up first, and the next step may follow.
            BadInput: Behind the last recorded step: two of them were not alike. One that begins with other memory than
                the others (behind a validation) is left out of the recording.
            Infeasible: Behind the last recorded step, or ahead of one where another rank plans: no plan keeps the
                budget.
            Unavailable: No word of the rank that plans.
        """
        if not self._attached:
            raise UsageError("this run is detached")
        if self._in_step:
            raise UsageError("a step of this run is running already")
        if key not in self._keyed:
            self._keyed[key] = _Keyed(self._divides_at_first)
            self._tell_of_many_keys()
        keyed = self._keyed[key]
        keyed.is_recorded = False
        self._last = key
        self._in_step = True
        try:
            self._begin(keyed)
            try:
                with self._calls:
                    if self._updates is None or not keyed.divides:
                        yield self
                    else:
                        with self._updates:
                            yield self
                        self._tell_of_no_update(keyed)
            except BaseException:
                self._abort(keyed)
                raise
            keyed.autocast = self._calls.autocast or ""
            self._end(keyed)
        finally:
            self._in_step = False

    def _begin(self, keyed: _Keyed) -> None:
        if keyed.error is not None:
            raise keyed.error
        if keyed.plan is None and self._given != (None, None):
            self._take_given(keyed)
        if keyed.plan is None and keyed.trace is not None:
            self._find_plan(keyed)
        if self._active is not None and self._active is not keyed:
            self._active.planned.materialise()
            self._active = None
        if keyed.plan is not None and self._has_what_moves(keyed):
            if keyed.planned is not None and not (keyed.bound and keyed.bound.are_there()):
                keyed.planned.materialise()
                keyed.planned = None
            if keyed.planned is None:
                self._apply(keyed)
                keyed.divides = keyed.planned.has_updates
            self._active = keyed
            keyed.planned.begin()
            return
        if keyed.autocast is None or keyed.trace is not None or keyed.is_given_up:
            return  # the first step shows what a recording has to know ahead; or another rank is yet to plan
        self._begin_recorded(keyed)

    def _begin_recorded(self, keyed: _Keyed) -> None:
        if keyed.recording is None:
            self._say_what_runs_once()
            self._new_recording(keyed)
            keyed.alike = None if self._records_all else AlikeSteps(self._recording.warmup)
        state = self._optimizer_state()
        self._count_in(state)
        if keyed.alike is not None:
            decision = keyed.alike.of(self._requested_bytes() - keyed.recorder_bytes, keyed.recording.steps)
            if decision == "leave out":
                return
            if decision == "record from here":
                keyed.recording.abort()
                self._new_recording(keyed)
        keyed.is_recorded = True
        keyed.recording.begin(self._parameters(), self._buffers(), state)

    def _requested_bytes(self) -> int:
        return self._device.memory()["requested_bytes"]

    def _new_recording(self, keyed: _Keyed) -> None:
        keyed.recorder_bytes = 0
        keyed.recording = _torch.Recording(self._device, self._run_facts(keyed), self._recording.warmup,
                                           self._recording.steps, self._recording.observed)

    def _tell_of_many_keys(self) -> None:
        if len(self._keyed) == _MANY_KEYS and all(keyed.plan is None for keyed in self._keyed.values()):
            self._say([f"steps of {_MANY_KEYS} keys have begun, and none has a plan: each is recorded by itself (pad "
                       "batches to a few shapes, or bring them together in fewer keys)"])

    def _say_what_runs_once(self) -> None:
        once = self._calls.run_once
        if not once or self._has_said_once:
            return
        self._has_said_once = True
        path, kind = next(iter(once.items()))
        more = f" and {len(once) - 1} other layers" if len(once) > 1 else ""
        cache = " (use_cache=False gives them none)" if "Cache" in kind else ""
        why = {FOREIGN: "is there for the call alone", EXCHANGED: "a call puts another one in the place of"}
        self._say([f"{path}{more} get a {kind}, which {why.get(kind, 'a call may change')}: no plan has them run "
                   f"again{cache}"])

    # A given plan that moves optimizer state, ahead of the first step, which makes it.
    def _has_what_moves(self, keyed: _Keyed) -> bool:
        return keyed.planned is not None or "optimizer" not in keyed.plan.to_dict() or bool(self._optimizer_state())

    # A gradient scaler that found an overflow does not call the optimizer's step.
    def _tell_of_no_update(self, keyed: _Keyed) -> None:
        if keyed.planned is not None and keyed.planned.has_updates and not self._updates.updated:
            _torch.skip_update()

    def _abort(self, keyed: _Keyed) -> None:
        if keyed.planned is not None:
            keyed.planned.abort()
        elif keyed.is_recorded:
            keyed.recording.abort()
            keyed.recording = None

    def _end(self, keyed: _Keyed) -> None:
        if keyed.planned is not None:
            did = keyed.planned.end()
            keyed.steps += 1
            keyed.last_report = StepReport(did["on_plan"], did["first_difference"], did["peak_requested_bytes"],
                                           did["offloaded_bytes"], did["reloaded_bytes"], did["peak_active_bytes"],
                                           did["peak_reserved_bytes"] if did["peak_reserved_bytes"] >= 0 else None)
            keyed.off_plan += not did["on_plan"]
            self._say(keyed.planned.lines())
        elif keyed.is_recorded:
            if self._end_recorded(keyed):
                self._find_plan(keyed)

    # Whether that was the last step of the recording, whose trace is there now.
    def _end_recorded(self, keyed: _Keyed) -> bool:
        try:
            before = self._requested_bytes()
            last = keyed.recording.end()  # what is measured next gets its buffers here, ahead of its first step
            keyed.recorder_bytes += self._requested_bytes() - before
            self._say(keyed.recording.warnings())
            if last:
                recording, keyed.recording = keyed.recording, None
                keyed.trace = Trace.from_json(recording.trace_json())
            return keyed.trace is not None
        except BadInput as error:
            # Gloo frees what it has sent on a thread of its own, at times late; and a rank that raises leaves the
            # others waiting.
            if self._ranks is not None:
                keyed.recording = None
                keyed.again += 1
                keyed.is_given_up = keyed.again > _MOST_AGAIN
                what = "this rank goes on without a plan" if keyed.is_given_up else "the step is recorded again"
                self._say([f"{error.message}; {what}"])
                return False
            if keyed.alike is None or keyed.alike.grown_bytes == 0:
                raise
            raise BadInput(error.message, hint=f"steps begin with {keyed.alike.grown_bytes:,} bytes more from one to "
                           "the next: keep numbers (loss.item()) of them, no tensors") from None

    # Makes a plan of the recording, or takes that of another rank, which may not be there yet.
    def _find_plan(self, keyed: _Keyed) -> None:
        if self._ranks is None:
            keyed.outcome = self._make(keyed.trace)
            keyed.error = keyed.outcome.error
        else:
            found = self._ranks.find(keyed.trace, keyed.divides, self._make)
            if found is None:
                return
            keyed.outcome, keyed.error, keyed.plan = found.outcome, found.error, found.plan
            self._say(found.lines)
        if keyed.error is not None and self._updates is not None and not keyed.divides:
            self._say([f"{keyed.error}: the step is recorded again, with the update of one parameter at a time, "
                       "which a plan can do more with"])
            keyed.divides, keyed.trace, keyed.outcome, keyed.error = True, None, None, None
            return
        if keyed.error is not None:
            raise keyed.error
        if keyed.plan is None:
            keyed.plan = keyed.outcome.plan

    def _apply(self, keyed: _Keyed) -> None:
        if runs_again(keyed.plan) and (told := communicates_in_forward(keyed.trace)):
            raise UsageError(f"the plan has parts of the forward run again, which calls {told[0]} in {told[1] or 'the step'}: "
                             "other ranks would wait for each other", hint="no plan that recomputes")
        keyed.bound = BoundTensors(self.model, self.optimizer)
        self._count_in(self._optimizer_state())
        # Asked in the call alone; what C++ holds of it shall not keep this run alive.
        here = [self]
        keyed.planned = _torch.PlannedLoop(
            self._device, keyed.trace.to_json(), keyed.plan.to_json(), self._parameters(),
            self._older() if keyed.plan.placement == "planned" else [],
            lambda parameters: here[0]._optimizer_state({name for name, _ in parameters}),
            any(each.autocast is not None for each in self._keyed.values()))
        here.clear()
        self._say(keyed.planned.lines())

    def _take_given(self, keyed: _Keyed) -> None:
        keyed.trace, keyed.plan = self._given
        if keyed.plan is None:
            keyed.outcome = self._make(keyed.trace)
            keyed.plan = keyed.outcome.plan_or_raise()

    def _say(self, lines: Iterable[str]) -> None:
        for line in lines:
            warnings.warn(line, StowageWarning, stacklevel=4)

    def _run_facts(self, keyed: _Keyed) -> dict[str, Any]:
        names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}
        dtypes = {parameter.dtype for parameter in self.model.parameters()}
        # A plan's host cannot do what only Python can (simulator/step/device_updates.h).
        optimizer = "none" if self.optimizer is None else "python:" + type(self.optimizer).__name__.lower()
        return {"model": f"python:{type(self.model).__name__}", "autocast": keyed.autocast, "optimizer": optimizer,
                "dtype": names.get(next(iter(dtypes)), "mixed") if len(dtypes) == 1 else "mixed", "batch": 0, "seq": 0,
                "argv": list(sys.argv), **self._facts}

    def materialise(self) -> None:
        """Brings parameters, optimizer state and gradients back until the next step: to evaluate, to save, to load.

        Raises:
            torch.OutOfMemoryError: There is no room for all of them; nothing is lost.
        """
        if self._in_step:
            raise UsageError("materialise() within a step")
        if self._active is not None:
            self._active.planned.materialise()

    @contextmanager
    def materialised(self) -> Iterator[torch.nn.Module]:
        """A block in which materialise() has been called."""
        self.materialise()
        yield self.model

    def detach(self) -> None:
        """Leaves the plan: everything comes back, and nothing of the model or of PyTorch is other than before."""
        if self._in_step:
            raise UsageError("detach() within a step")
        if not self._attached:
            return
        self._attached = False
        for keyed in self._keyed.values():
            keyed.planned = None
            keyed.recording = None
        self._active = None
        self._calls.restore()
        if self._buckets is not None:
            self._buckets.remove()
        if self._updates is not None:
            self._updates.restore()
        self._leave_engine()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        self.detach()

    def _of(self, key: Hashable) -> _Keyed:
        key = self._last if key is None else key
        if key not in self._keyed:
            raise UsageError(f"no step of the key {key!r} has begun")
        return self._keyed[key]

    @property
    def keys(self) -> list[Hashable]:
        """Of the steps so far, in the order of their first ones."""
        return list(self._keyed)

    @property
    def is_planned(self) -> bool:
        """Whether there is a plan for steps of the last one's key."""
        return self._last in self._keyed and self._keyed[self._last].plan is not None

    def trace(self, key: Hashable = None) -> Trace | None:
        """The recording of steps of this key (the last step's); None while they are recorded."""
        return self._of(key).trace

    def plan(self, key: Hashable = None) -> Plan | None:
        """Their plan; None while they are recorded."""
        return self._of(key).plan

    def outcome(self, key: Hashable = None) -> PlanOutcome | None:
        """What planning said: figures, bound, floor; None where the plan was given, or made by another rank."""
        return self._of(key).outcome

    def last_report(self, key: Hashable = None) -> StepReport | None:
        """What the last planned step did; None ahead of the first."""
        return self._of(key).last_report

    def predicted(self, key: Hashable = None) -> dict[str, int] | None:
        """Of a planned step: peak_requested_bytes, peak_active_bytes, peak_reserved_bytes (-1 on the CPU), host_bytes,
        step_ns, stall_ns."""
        keyed = self._of(key)
        return keyed.planned.predicted if keyed.planned is not None else None

    def planned_memory(self, key: Hashable = None) -> dict[str, Any] | None:
        """Of the plan's own memory, over all its steps; None where it has none.

        bytes taken from the driver or the system, older_bytes of what is older than the steps and lies there, setup_ns;
        how many allocations were served there, were conflicts (somebody still had some of their bytes) or unforeseen,
        which PyTorch's allocator had to serve; surprises: the first of these, in words; lent: how often pages were
        given back between steps, for an evaluation or the like, as the device had nothing else.
        """
        keyed = self._of(key)
        return keyed.planned.memory() if keyed.planned is not None else None

    def report(self, key: Hashable = None) -> str:
        """What is known of steps of this key, in words."""
        keyed = self._of(key)
        if keyed.last_report is None:
            if keyed.recording is None:
                if keyed.is_given_up:
                    return "Its steps were not alike: this rank trains without a plan.\n"
                if keyed.trace is not None and keyed.plan is None and keyed.error is None:
                    return "Recorded; the rank that plans has not recorded its steps yet.\n"
                return "No planned step has run.\n"
            return f"Recording: {keyed.recording.part}, {keyed.recording.steps} steps so far.\n"
        last = keyed.last_report
        lines = [f"{keyed.steps} planned steps, {keyed.off_plan} of them off the plan."]
        peak = f"Peak requested {last.peak_requested_bytes:,} bytes"
        predicted = self.predicted(key)
        lines.append(peak + (f", predicted {predicted['peak_requested_bytes']:,}." if predicted else "."))
        if last.peak_reserved_bytes is not None:
            reserved = f"Peak reserved {last.peak_reserved_bytes:,} bytes"
            lines.append(reserved + (f", predicted {predicted['peak_reserved_bytes']:,}." if predicted else "."))
        memory = self.planned_memory(key)
        if memory and memory["conflicts"] + memory["unforeseen"]:
            lines.append(f"Not in the plan's memory: {memory['unforeseen']} allocations that were not foreseen, "
                         f"{memory['conflicts']} whose place was still in use.")
            lines.extend(f"  {surprise}" for surprise in memory["surprises"])
        if memory and memory["lent"]:
            lines.append(f"Its pages were lent between steps {memory['lent']} times: the device had no others.")
        lines.append(f"Saved tensors copied out: {last.offloaded_bytes:,} bytes a step.")
        if not last.on_plan:
            lines.append(f"The last one left the plan: {last.first_difference}.")
        return "\n".join(lines) + "\n"


# Where all of its parameters are: "cpu" and 0, or "cuda" and which.
def _place_of(model: torch.nn.Module) -> tuple[str, int]:
    places = sorted({str(parameter.device) for parameter in model.parameters()})
    if len(places) > 1:
        raise NotImplementedError(f"a model on {' and '.join(places)} cannot be attached: only one on one device")
    place = torch.device(places[0] if places else "cpu")
    if place.type not in ("cpu", "cuda"):
        raise NotImplementedError(f"a model on {place.type} cannot be attached: only one on the CPU or a GPU")
    return place.type, place.index or 0


# What makes a plan of a recording.
def _planning_of(budget: str | int | None, planning: dict[str, Any]) -> Callable[[Trace], PlanOutcome]:
    def make(recorded: Trace) -> PlanOutcome:
        if planning.get("policy", "auto") != "auto" or not communicates_in_forward(recorded):
            return make_plan(recorded, budget, **planning)
        return make_plan(recorded, budget, **planning | _without_recompute(planning))

    return make


# Where a function says it, a plan that recomputes is refused when it is applied.
def _without_recompute(planning: dict[str, Any]) -> dict[str, Any]:
    allowed, denied = planning.get("allow"), planning.get("deny")
    if callable(allowed) or callable(denied):
        return {}
    if allowed is not None:
        return {"allow": [kind for kind in names_of(allowed) if kind != "recompute"]}
    return {"deny": sorted({*names_of(denied or []), "recompute"})}


# The same on all ranks for what is the same: no addresses, no order of a set.
def _told(value: Any) -> Any:
    if callable(value):
        made_of = getattr(value, "func", value)
        return getattr(made_of, "__module__", ""), getattr(made_of, "__qualname__", type(made_of).__qualname__)
    return sorted(value) if isinstance(value, list) else value


def attach(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    budget: str | int | None = None,
    *,
    plan: Plan | str | None = None,
    trace: Trace | str | None = None,
    layers: Callable[[str, torch.nn.Module], bool] | None = None,
    recording: Recording = Recording(),
    **planning: Any,
) -> Run:
    """Has the training steps of a model run under a plan.

    The first steps are recorded and a plan for the budget is made, unless there is a trace or a plan already. Results
    are the same bit by bit. Ranks of a model in DistributedDataParallel share one plan.

    Args:
        model: On the CPU, or on the current GPU.
        optimizer: Its steps are told to the plan parameter by parameter where it is one of torch.optim's.
        budget: What a step may take: "20GB", "60%" of what it takes without a plan, or bytes.
        plan: A plan (or its file) of `trace`. Where it moves optimizer state and there is none yet, the first step
            runs without it.
        trace: A recording (or its file) of the step.
        layers: Says which modules plans tell apart, by path and module. Without it: every module that is called, but
            for those around the model's blocks (the elements of its lists) and those without parts inside of a block.
        recording: How many steps a recording takes.
        planning: What plan() takes besides: allow, deny, policy, host_budget, ..

    Raises:
        BadInput: A file that is none.
        UsageError: Arguments that do not go together; a budget that is no size, with the likely meaning.
        NotImplementedError: The model is elsewhere, on several devices, or in FSDP's shards.
        Unavailable: Its GPU's memory cannot be followed.
    """
    if plan is not None and trace is None:
        raise UsageError("a plan needs the trace that it was made of", hint="attach(.., plan=.., trace=..)")
    if plan is None and budget is None and not {"policy", "fit"} & planning.keys():
        raise UsageError("nothing says what the step may take", hint="a budget, fit, a policy or a plan")
    if unknown := planning.keys() - set(inspect.signature(make_plan).parameters) | planning.keys() & {"trace", "budget"}:
        raise TypeError(f"attach() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    if is_sharded(model):
        raise NotImplementedError("a model that FSDP shards cannot be attached: its weights come and go within a step "
                                  "already; one in DistributedDataParallel can")
    if plan is None:
        check_request(budget, **planning)
    for which in ("allow", "deny"):
        if planning.get(which) is not None and not callable(planning[which]):
            planning[which] = names_of(planning[which])  # asked for each plan
    given = (Trace.load(trace) if isinstance(trace, str) else trace, Plan.load(plan) if isinstance(plan, str) else plan)
    if plan is None and plans_alone(model):
        warnings.warn("the model is not in DistributedDataParallel: each rank plans for itself, and one that finds no "
                      "plan raises alone, while the others wait for it", StowageWarning, stacklevel=2)
    asked = repr([budget, *((name, _told(value)) for name, value in sorted(planning.items()))])
    return Run(model, optimizer, _planning_of(budget, planning), given, layers, recording,
               ranks=plans_of_ranks(model, asked))
