"""Stowage: where every tensor of a PyTorch training step should live.

    trace = stowage.Trace.load("t.json.gz")
    outcome = stowage.plan(trace, "60%")
    print(outcome.text())
    outcome.plan_or_raise().save("p.json")

Values are immutable, sizes are bytes, times are nanoseconds. docs/python.md has examples.
"""

from . import _core
from ._errors import BadInput, Error, Infeasible, InternalError, Unavailable, UsageError
from ._plan import Plan
from ._planning import Decision, PlanOutcome, Policy, plan
from ._reports import Diff, Inspection, diff, inspect, policies, policy
from ._simulation import Simulation, simulate
from ._tables import Table
from ._trace import SavedTensor, Trace

__version__: str = _core.version

__all__ = [
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
    "SavedTensor",
    "Simulation",
    "Table",
    "Trace",
    "Unavailable",
    "UsageError",
    "diff",
    "inspect",
    "plan",
    "policies",
    "policy",
    "simulate",
]
