"""A training step that is recorded and run under a plan, then plainly from where it began, and compared.

The step is a function of its number alone, and of the model, the optimizer and torch's generators, which begin both
times alike. What is kept of its results lies outside of memory that is counted.
"""

from __future__ import annotations

import ctypes
import gc
import hashlib
import io
import random
from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch.utils import _pytree as pytree

from ._baseline import foreign_bytes
from ._errors import Error, Infeasible, UsageError
from ._planning import PlanOutcome, check_request
from ._planning import plan as make_plan
from ._trace import Trace
from ._training import Recording, Run, StepReport

Step = Callable[[int], Any]

_RECORDING = Recording(warmup=2, steps=4, observed=2)


@dataclass(frozen=True)
class CheckedStep:
    """What came of it.

    Attributes:
        trace: The recording that was planned.
        plain_trace: The first one, of the step as it is without a plan. Another than `trace` where that has the
            updates apart, as a plan for this budget needs them (on a GPU).
        outcome: What planning said; None without a budget.
        budget_bytes: The budget on the process's bytes of the counter that `outcome.budget_on` names; None without one.
        reports: Of the planned steps.
        difference: Where the steps were not those of the plain loop; None: the same bit by bit.
    """

    trace: Trace
    plain_trace: Trace
    outcome: PlanOutcome | None
    budget_bytes: int | None
    reports: tuple[StepReport, ...]
    difference: str | None

    @property
    def over_budget(self) -> str | None:
        """By what a planned step or all known plans exceed the budget, in a line; None: by nothing."""
        if self.outcome is None:
            return None
        if isinstance(self.outcome.error, Infeasible):
            return f"no plan keeps the budget of {self.budget_bytes:,} bytes: {self.outcome.error.message}"
        if self.outcome.error is not None:
            return str(self.outcome.error)
        peak = max((getattr(report, f"peak_{self.outcome.budget_on}_bytes") for report in self.reports), default=0)
        if peak > self.budget_bytes:
            return f"the planned steps peak at {peak:,} bytes, {peak - self.budget_bytes:,} above the budget"
        return None


def check_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, step: Step,
               budget: str | int | None, planned_steps: int, seed: int, planning: dict[str, Any]) -> CheckedStep:
    """Runs it recorded and planned, then as often plainly.

    Args:
        step: Takes its number, from 0 on; what it returns is compared.
        budget: As attach() takes it, but of what the step itself takes; None: it is recorded alone.
        planned_steps: Behind those that are recorded: 12, on a GPU as many as their times call for.
        planning: What plan() takes besides.

    Raises:
        UsageError: A budget or another argument is wrong; ahead of the first step.
        BadInput: Two steps are not alike.
        Exception: What the step raises.
    """
    if budget is not None:
        check_request(budget, **planning)
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    threads = torch.get_num_threads()
    if not on_gpu:
        torch.set_num_threads(1)
    generators = torch.get_rng_state(), torch.cuda.get_rng_state_all() if on_gpu else [], random.getstate()
    try:
        begin = _saved(model, optimizer)
        _seed(seed)
        planned = _planned(model, optimizer, step, budget, planned_steps, planning)
        _restore(begin, model, optimizer)
        del begin
        gc.collect()
        _seed(seed)
        difference = _difference(planned, [_value(step(k)) for k in range(len(planned.values))], model)
        if difference is not None and on_gpu and not torch.are_deterministic_algorithms_enabled():
            difference += " (kernels may differ by themselves: torch.use_deterministic_algorithms(True))"
        outcome = planned.outcome if budget is not None else None
        return CheckedStep(planned.trace, planned.plain_trace, outcome, outcome.budget_bytes if outcome is not None else None,
                           planned.reports, difference)
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(generators[0])
        if on_gpu:
            torch.cuda.set_rng_state_all(generators[1])
        random.setstate(generators[2])


@dataclass(frozen=True)
class _Planned:
    values: list[Any]  # of each step
    parameters: dict[str, Any] | None  # behind the last one; None: no plan keeps the budget
    trace: Trace
    plain_trace: Trace
    outcome: PlanOutcome
    reports: tuple[StepReport, ...]


def _planned(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, step: Step, budget: str | int | None,
             planned_steps: int, planning: dict[str, Any]) -> _Planned:
    # Two of each where the step is recorded again, with the updates apart.
    found: list[PlanOutcome] = []
    traces: list[Trace] = []

    def make(trace: Trace) -> PlanOutcome:
        traces.append(trace)
        asked = {} if budget is None else planning
        found.append(make_plan(trace, _budget_of_the_process(trace, budget, planning), **asked))
        return found[-1]

    values: list[Any] = []
    reports = []
    parameters = None
    run = Run(model, optimizer, make, (None, None), None, _RECORDING, records_all=True)
    with run:
        try:
            while not found or len(reports) < (planned_steps if budget is not None else 0):
                with run.step():
                    values.append(_value(step(len(values))))
                report = run.last_report()
                if report is not None:
                    reports.append(report)
            run.materialise()
            parameters = _parameters(model)
        except Error:
            # Of a plan that there is none, which is an answer; not of a step, in a second recording.
            if not found or found[-1].feasible or run.trace() is None:
                raise
    return _Planned(values, parameters, traces[-1], traces[0], found[-1], tuple(reports))


# Where the plain steps, which ended just now, were others; None: nowhere, bit by bit.
def _difference(planned: _Planned, plain: list[Any], model: torch.nn.Module) -> str | None:
    for k, (value, expected) in enumerate(zip(planned.values, plain)):
        if value != expected:
            return f"step {k} gives {_text(value)}, the plain one {_text(expected)}"
    expected_parameters = _parameters(model)
    for name, bits in (planned.parameters or {}).items():
        if bits != expected_parameters[name]:
            return f"{name} is another one behind {len(plain)} steps"
    return None


# Of which tensors that have nothing to do with the step are a part.
def _budget_of_the_process(trace: Trace, budget: str | int | None, planning: dict[str, Any]) -> str | int:
    if budget is None:
        return "100%"
    foreign = foreign_bytes(trace)
    if foreign == 0:
        return budget
    memory = {key: planning[key] for key in ("budget_on", "placement") if key in planning}
    asked = make_plan(trace, budget, policy=lambda saved: "keep", **memory)
    if isinstance(budget, str) and budget.endswith("%"):
        own = int(asked.resident[f"peak_{asked.budget_on}_bytes"]) - foreign
        return foreign + int(own * float(budget[:-1]) / 100)
    assert asked.budget_bytes is not None
    return foreign + asked.budget_bytes


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)


# Bytes of Python's, which nobody counts.
def _saved(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> bytes:
    tensors = {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}
    file = io.BytesIO()
    torch.save((tensors, optimizer.state_dict() if optimizer is not None else None), file)
    return file.getvalue()


def _restore(begin: bytes, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
    tensors, state = torch.load(io.BytesIO(begin), map_location="cpu", weights_only=False)
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            tensor.copy_(tensors[name])
    for parameter in model.parameters():
        parameter.grad = None
    if optimizer is None:
        return
    before = [dict(group) for group in optimizer.param_groups]
    optimizer.load_state_dict(state)
    # Which moves its state to where parameters are, but not what its groups say in tensors (a learning rate).
    for group, old in zip(optimizer.param_groups, before):
        for key, value in group.items():
            if isinstance(value, torch.Tensor) and isinstance(old.get(key), torch.Tensor):
                group[key] = value.to(old[key].device)


def _bits(tensor: torch.Tensor) -> tuple[Any, ...]:
    flat = tensor.detach().cpu().contiguous()
    data = ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b""
    shown = flat.item() if flat.numel() == 1 else tuple(flat.shape)
    return (str(tensor.dtype), tuple(tensor.shape), hashlib.sha256(data).hexdigest(), repr(shown))


def _parameters(model: torch.nn.Module) -> dict[str, Any]:
    return {name: _bits(tensor) for name, tensor in (*model.named_parameters(), *model.named_buffers())}


# Something without tensors that is equal where the results are, bit by bit.
def _value(result: Any) -> Any:
    leaves, _ = pytree.tree_flatten(result)
    return [_bits(leaf) if isinstance(leaf, torch.Tensor) else ("", (), "", repr(leaf)) for leaf in leaves]


def _text(value: Any) -> str:
    return ", ".join(leaf[3] for leaf in value)
