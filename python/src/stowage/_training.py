"""A training loop that is recorded, planned and run under its plan: ``attach()``."""

import sys
import warnings
from collections.abc import Callable, Hashable
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from . import _engine, _torch
from ._layers import LayerCalls, choose_layers
from ._updates import SplitUpdates, is_split
from ._plan import Plan
from ._planning import PlanOutcome, plan as make_plan
from ._trace import Trace


class StowageWarning(UserWarning):
    """Something that a user should know: a step off its plan, a figure that is not known."""


@dataclass(frozen=True)
class Recording:
    """How many of the loop's own steps a recording takes.

    One step ahead of it is looked at. The least that is exact is ``Recording(warmup=2, steps=4, observed=2)``: 12
    steps in all. More make times better.
    """

    warmup: int = 3  #: before anything is recorded; twice
    steps: int = 10  #: unobserved, for the step's time; 4 at least
    observed: int = 3  #: with every op; 2 at least


@dataclass(frozen=True)
class StepReport:
    """What one planned step did. Bytes."""

    on_plan: bool
    first_difference: str  #: empty where ``on_plan``
    peak_requested_bytes: int
    offloaded_bytes: int
    reloaded_bytes: int


class _Keyed:
    """What a run knows of the steps of one key."""

    def __init__(self):
        self.autocast = None  # of its forward, "" for none; None: no step has been made
        self.recording = None
        self.trace = None
        self.outcome = None
        self.plan = None
        self.planned = None
        self.reports = 0
        self.off_plan = 0
        self.last_report = None


class Run:
    """A model and its optimizer whose steps are recorded, then planned. Made by :func:`attach`."""

    def __init__(self, model, optimizer, make, trace, plan, layers, recording):
        self.model = model
        self.optimizer = optimizer
        self._make = make
        self._layers = choose_layers(model, layers)
        self._recording = recording
        self._keyed: dict[Hashable, _Keyed] = {}
        self._given = (trace, plan)
        self._in_step = False
        self._last = None
        self._active = None  # the key whose plan has parameters away
        self._attached = True
        self._updates = SplitUpdates(optimizer) if optimizer is not None and is_split(optimizer) else None
        _torch.use_cpu()
        _torch.count_in([tensor for _, tensor in self._all_tensors()])
        _engine.attach()

    # -- what there is --------------------------------------------------------------------------------------------

    def _parameters(self):
        return [(name, parameter) for name, parameter in self.model.named_parameters()]

    def _buffers(self):
        return [(name, buffer) for name, buffer in self.model.named_buffers()]

    def _optimizer_state(self, names=None):
        if self.optimizer is None:
            return []
        state = []
        for name, parameter in self._parameters():
            if names is not None and name not in names:
                continue
            for what, piece in self.optimizer.state.get(parameter, {}).items():
                if isinstance(piece, torch.Tensor):
                    state.append((f"{name}.{what}", piece))
        return state

    def _all_tensors(self):
        return self._parameters() + self._buffers() + self._optimizer_state()

    # -- steps ----------------------------------------------------------------------------------------------------

    @contextmanager
    def step(self, key: Hashable = None):
        """One training step: forward, backward, the optimizer's step and ``zero_grad``.

        ``key`` tells steps apart that are not alike (a batch's shape): each has a recording and a plan of its own. The
        first steps of a key are recorded, which is training as ever; the others run under the plan.

        Raises what the step raises (everything of the plan is cleaned up first, and the next step may follow), and
        behind the last recorded step :class:`stowage.Error` where no plan can be made.
        """
        if not self._attached:
            raise RuntimeError("this run is detached")
        if self._in_step:
            raise RuntimeError("a step of this run is running already")
        keyed = self._keyed.setdefault(key, _Keyed())
        self._last = key
        self._in_step = True
        try:
            self._begin(keyed)
            try:
                with LayerCalls(self._layers) as calls:
                    if self._updates is None:
                        yield self
                    else:
                        with self._updates:
                            yield self
                        self._tell_of_no_update(keyed)
            except BaseException:
                self._abort(keyed)
                raise
            keyed.autocast = calls.autocast
            self._end(keyed)
        finally:
            self._in_step = False

    def _begin(self, keyed):
        if keyed.planned is None and keyed.plan is None and self._given != (None, None):
            self._take_given(keyed)
        if self._active is not None and self._active is not keyed:
            self._active.planned.materialise()
            self._active = None
        if keyed.plan is not None and self._has_what_moves(keyed):
            if keyed.planned is None:
                self._apply(keyed)
            self._active = keyed
            keyed.planned.begin()
            return
        if keyed.autocast is None or keyed.plan is not None:
            return  # the first step shows what a recording has to know ahead
        if keyed.recording is None:
            keyed.recording = _torch.Recording(self._run_facts(keyed), self._recording.warmup, self._recording.steps,
                                               self._recording.observed)
        _torch.count_in([tensor for _, tensor in self._optimizer_state()])
        keyed.recording.begin(self._parameters(), self._buffers(), self._optimizer_state())

    # A given plan that moves optimizer state, ahead of the first step, which makes it.
    def _has_what_moves(self, keyed):
        return keyed.planned is not None or "optimizer" not in keyed.plan.to_dict() or bool(self._optimizer_state())

    # A scaler that found an overflow: the optimizer's step was not called.
    def _tell_of_no_update(self, keyed):
        if keyed.planned is not None and not self._updates.updated and keyed.planned.has_updates:
            _torch.skip_update()

    def _abort(self, keyed):
        if keyed.planned is not None:
            keyed.planned.abort()
        elif keyed.recording is not None:
            keyed.recording.abort()
            keyed.recording = None

    def _end(self, keyed):
        if keyed.planned is not None:
            figures = keyed.planned.end()
            keyed.reports += 1
            keyed.last_report = StepReport(
                figures["on_plan"], figures["first_difference"], figures["peak_requested_bytes"],
                figures["offloaded_bytes"], figures["reloaded_bytes"])
            keyed.off_plan += not figures["on_plan"]
            self._say(keyed.planned.lines())
            return
        if keyed.recording is None:
            return
        last = keyed.recording.end()
        self._say(keyed.recording.warnings())
        if last:
            recording, keyed.recording = keyed.recording, None
            keyed.trace = Trace.from_json(recording.trace_json())
            keyed.outcome = self._make(keyed.trace)
            keyed.plan = keyed.outcome.plan_or_raise()

    def _apply(self, keyed):
        keyed.planned = _torch.PlannedLoop(
            keyed.trace.to_json(), keyed.plan.to_json(), self._parameters(),
            self._buffers() + self._optimizer_state(),
            lambda parameters: self._optimizer_state({name for name, _ in parameters}))
        self._say(keyed.planned.lines())

    def _take_given(self, keyed):
        trace, plan = self._given
        keyed.trace = trace
        if plan is None:
            keyed.outcome = self._make(trace)
            plan = keyed.outcome.plan_or_raise()
        keyed.plan = plan

    def _say(self, lines):
        for line in lines:
            warnings.warn(line, StowageWarning, stacklevel=4)

    def _run_facts(self, keyed):
        dtypes = {parameter.dtype for parameter in self.model.parameters()}
        names = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16", torch.float64: "fp64"}
        dtype = names.get(next(iter(dtypes)), "mixed") if len(dtypes) == 1 else "mixed"
        # A plan's host cannot do what only Python can (simulator/step/device_updates.h).
        optimizer = "python:" + type(self.optimizer).__name__.lower() if self.optimizer is not None else "none"
        return {"model": f"python:{type(self.model).__name__}", "dtype": dtype, "autocast": keyed.autocast,
                "optimizer": optimizer, "batch": 0, "seq": 0, "argv": list(sys.argv)}

    # -- between steps --------------------------------------------------------------------------------------------

    @contextmanager
    def materialised(self):
        """Parameters, optimizer state and gradients are all there: to evaluate, to save, to load."""
        self._refuse_in_step("materialised()")
        if self._active is not None:
            self._active.planned.materialise()
        yield self.model

    def detach(self) -> None:
        """Leaves the plan: everything comes back, and nothing of the model or of PyTorch is other than before."""
        if not self._attached:
            return
        self._refuse_in_step("detach()")
        self._attached = False
        for keyed in self._keyed.values():
            keyed.planned = None
            keyed.recording = None
        self._active = None
        _engine.detach()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.detach()

    def _refuse_in_step(self, what):
        if self._in_step:
            raise RuntimeError(f"{what} within a step")

    # -- what came of it ------------------------------------------------------------------------------------------

    def _of(self, key):
        if key is None:
            key = self._last
        if key not in self._keyed:
            raise KeyError(f"no step had the key {key!r}")
        return self._keyed[key]

    @property
    def is_planned(self) -> bool:
        """Whether the next step of the last one's key runs under a plan."""
        return self._last in self._keyed and self._keyed[self._last].plan is not None

    def trace(self, key: Hashable = None) -> Trace:
        """The recording of the steps of this key (of the last step's)."""
        return self._of(key).trace

    def plan(self, key: Hashable = None) -> Plan:
        """Their plan."""
        return self._of(key).plan

    def outcome(self, key: Hashable = None) -> PlanOutcome:
        """What planning said: bound, floor, figures. None where the plan was given."""
        return self._of(key).outcome

    def last_report(self, key: Hashable = None) -> StepReport:
        """What the last planned step did."""
        return self._of(key).last_report

    def predicted(self, key: Hashable = None) -> dict:
        """Of a planned step: ``peak_requested_bytes``, ``step_ns``, ``stall_ns``, ``host_bytes``, ..."""
        keyed = self._of(key)
        return keyed.planned.predicted if keyed.planned is not None else {}

    def report(self, key: Hashable = None) -> str:
        """What planned steps did and what was predicted, in words."""
        keyed = self._of(key)
        if keyed.last_report is None:
            if keyed.recording is None:
                return "No planned step has run."
            return f"Recording: {keyed.recording.part}, {keyed.recording.steps} steps so far."
        predicted = keyed.planned.predicted["peak_requested_bytes"] if keyed.planned is not None else None
        last = keyed.last_report
        lines = [f"{keyed.reports} planned steps, {keyed.off_plan} of them off the plan.",
                 f"Peak requested {last.peak_requested_bytes:,} bytes"
                 + (f", predicted {predicted:,}." if predicted is not None else "."),
                 f"Offloaded {last.offloaded_bytes:,} bytes a step."]
        if not last.on_plan:
            lines.append(f"The last one left the plan: {last.first_difference}.")
        return "\n".join(lines)


def attach(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None, budget: str | int | None = None, *,
           plan: Plan | str | None = None, trace: Trace | str | None = None,
           layers: Callable[[str, torch.nn.Module], bool] | None = None, recording: Recording = Recording(),
           **planning) -> Run:
    """Has the training steps of ``model`` run under a plan.

    ``budget`` is what the step may take ("20GB", "60%", bytes); the first steps are recorded and a plan for it is
    made, unless ``trace`` is a recording of the step, or ``plan`` a plan together with the trace that it was made of
    (where such a plan moves optimizer state and there is none yet, the first step runs without it).
    ``planning`` goes to :func:`stowage.plan`. ``layers(path, module)`` says which modules plans tell apart.

    Raises :class:`stowage.BadInput` for files that are none, ``ValueError`` for arguments that do not go together, and
    :class:`NotImplementedError` for a model that is not on the CPU.
    """
    if isinstance(trace, str):
        trace = Trace.load(trace)
    if isinstance(plan, str):
        plan = Plan.load(plan)
    if plan is not None and trace is None:
        raise ValueError("a plan needs the trace that it was made of: attach(.., plan=.., trace=..)")
    if plan is None and budget is None and "policy" not in planning:
        raise ValueError("attach() needs a budget, a policy or a plan")
    devices = {parameter.device.type for parameter in model.parameters()}
    if devices - {"cpu"}:
        raise NotImplementedError(f"models on {', '.join(sorted(devices - {'cpu'}))} cannot be attached from Python yet")

    def make(recorded):
        return make_plan(recorded, budget, **planning)

    return Run(model, optimizer, make, trace, plan, layers, recording)
