"""Stowage: where every tensor of a PyTorch training step should live.

    trace = stowage.Trace.load("t.json.gz")
    outcome = stowage.plan(trace, "60%")
    print(outcome.text())
    outcome.plan_or_raise().save("p.json")

    run = stowage.attach(model, optimizer, budget="20GB")
    for batch in loader:
        with run.step(key=batch.shape):
            ..

Values are immutable, sizes are bytes, times are nanoseconds. docs/python.md has examples.
"""

import importlib
from typing import Any

from . import _core
from ._errors import BadInput, Error, Infeasible, InternalError, Unavailable, UsageError
from ._plan import Plan
from ._planning import Decision, PlanOutcome, Policy, plan
from ._reports import Diff, Inspection, diff, inspect, policies, policy
from ._simulation import Simulation, simulate
from ._tables import Table
from ._trace import SavedTensor, Trace

# Need torch, which values do not: the module of each.
_TRAINING = {**dict.fromkeys(("Recording", "Run", "StepReport", "StowageWarning", "attach"), "_training"),
             **dict.fromkeys(("Attribution", "hold"), "_attribution")}


def __getattr__(name: str) -> Any:
    if name in _TRAINING:
        return getattr(importlib.import_module(f".{_TRAINING[name]}", __name__), name)
    raise AttributeError(f"module 'stowage' has no attribute {name!r}")


__version__: str = _core.version

__all__ = [
    "Attribution",
    "BadInput",
    "Decision",
    "Diff",
    "Error",
    "Infeasible",
    "Inspection",
    "InternalError",
    "Plan",
    "PlanOutcome",
    "Policy",
    "Recording",
    "Run",
    "SavedTensor",
    "Simulation",
    "StepReport",
    "StowageWarning",
    "Table",
    "Trace",
    "Unavailable",
    "UsageError",
    "attach",
    "diff",
    "hold",
    "inspect",
    "plan",
    "policies",
    "policy",
    "simulate",
]
