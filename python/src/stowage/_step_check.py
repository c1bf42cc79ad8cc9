"""A training step that is run plainly, then recorded and run under a plan from where it began, and compared.

The step is a function of its number alone, and of the model, the optimizer and torch's generators, which begin both
times alike. What is kept of the plain steps lies outside of memory that is counted.
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
_RECORDED = 12  # steps that this takes, the one ahead of it too


@dataclass(frozen=True)
class CheckedStep:
    """What came of it.

    Attributes:
        trace: The recording.
        outcome: What planning said; None without a budget.
        budget_bytes: The budget on the requested bytes of the process; None without one.
        reports: Of the planned steps.
        difference: Where the steps were not those of the plain loop; None: the same bit by bit.
    """

    trace: Trace
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
        peak = max((report.peak_requested_bytes for report in self.reports), default=0)
        if peak > self.budget_bytes:
            return f"the planned steps peak at {peak:,} bytes, {peak - self.budget_bytes:,} above the budget"
        return None


def check_step(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, step: Step,
               budget: str | int | None, planned_steps: int, seed: int, planning: dict[str, Any]) -> CheckedStep:
    """Runs it 12 + planned_steps times plainly, then as often recorded and planned.

    Args:
        step: Takes its number, from 0 on; what it returns is compared.
        budget: As attach() takes it, but of what the step itself takes; None: it is recorded alone.
        planning: What plan() takes besides.

    Raises:
        UsageError: A budget or another argument is wrong; ahead of the first step.
        BadInput: Two steps are not alike.
        Exception: What the step raises.
    """
    if any(parameter.is_cuda for parameter in model.parameters()):
        raise UsageError("a step on a GPU cannot be checked so: how many steps its recording takes hangs on their time",
                         hint="check it on the CPU, or with `stowage check`")
    if budget is not None:
        check_request(budget, **planning)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    generators = torch.get_rng_state(), random.getstate()
    try:
        begin = _saved(model, optimizer)
        steps = _RECORDED + (planned_steps if budget is not None else 0)
        _seed(seed)
        plain = [_value(step(k)) for k in range(steps)]
        plain_parameters = _parameters(model)
        _restore(begin, model, optimizer)
        del begin
        gc.collect()
        _seed(seed)
        return _planned(model, optimizer, step, budget, planning, plain, plain_parameters)
    finally:
        torch.set_num_threads(threads)
        torch.set_rng_state(generators[0])
        random.setstate(generators[1])


def _planned(model: torch.nn.Module, optimizer: torch.optim.Optimizer | None, step: Step, budget: str | int | None,
             planning: dict[str, Any], plain: list[Any], plain_parameters: dict[str, Any]) -> CheckedStep:
    found: list[PlanOutcome] = []

    def make(trace: Trace) -> PlanOutcome:
        found.append(make_plan(trace, _budget_of_the_process(trace, budget), **({} if budget is None else planning)))
        return found[0]

    reports = []
    difference = None
    run = Run(model, optimizer, make, (None, None), None, _RECORDING, records_all=True)
    with run:
        for k, expected in enumerate(plain):
            try:
                with run.step():
                    value = _value(step(k))
            except Error:
                if not found or found[0].feasible:
                    raise
                break
            report = run.last_report()
            if report is not None:
                reports.append(report)
            if difference is None and value != expected:
                difference = f"step {k} gives {_text(value)}, the plain one {_text(expected)}"
        else:
            run.materialise()
            parameters = _parameters(model)
            for name in parameters:
                if difference is None and parameters[name] != plain_parameters[name]:
                    difference = f"{name} is another one behind {len(plain)} steps"
    trace = run.trace()
    assert trace is not None and found
    outcome = found[0] if budget is not None else None
    return CheckedStep(trace, outcome, outcome.budget_bytes if outcome is not None else None, tuple(reports),
                       difference)


def _budget_of_the_process(trace: Trace, budget: str | int | None) -> str | int:
    if budget is None:
        return "100%"
    foreign = foreign_bytes(trace)
    if foreign == 0:
        return budget
    if isinstance(budget, str) and budget.endswith("%"):
        own = trace.peaks["requested_bytes"] - foreign
        return foreign + int(own * float(budget[:-1]) / 100)
    asked = make_plan(trace, budget, policy=lambda saved: "keep").budget_bytes
    return foreign + asked


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
    tensors, state = torch.load(io.BytesIO(begin), weights_only=False)
    with torch.no_grad():
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            tensor.copy_(tensors[name])
    for parameter in model.parameters():
        parameter.grad = None
    if optimizer is not None:
        optimizer.load_state_dict(state)


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
