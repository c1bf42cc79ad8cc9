"""Plans: where each tensor of a step lives."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Mapping

from . import _core


class Plan:
    """Decisions about one step, as a plan file has them (docs/plan-format.md). Immutable."""

    __slots__ = ("_value", "_trace_path")

    def __init__(self, value: _core.PlanValue, trace_path: str | None = None) -> None:
        """Not for users: see load(), from_dict() and plan()."""
        self._value = value
        self._trace_path = trace_path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Plan:
        """Reads a plan file. Raises BadInput: it is none, with the place in it; OSError: it cannot be read."""
        plan = cls(_core.PlanValue.from_json(Path(path).read_bytes(), os.fspath(path)))
        trace_file = plan.to_dict().get("for", {}).get("trace_file")
        if trace_file:
            plan._trace_path = os.path.join(os.path.dirname(path), trace_file)
        return plan

    @classmethod
    def from_json(cls, text: bytes | str, name: str = "plan") -> Plan:
        """Of a plan file's text; `name` is what errors call it. Raises BadInput."""
        return cls(_core.PlanValue.from_json(text.encode() if isinstance(text, str) else text, name))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], name: str = "plan") -> Plan:
        """Of a plan file's content. Raises BadInput, also for keys that no plan has."""
        return cls.from_json(json.dumps(content), name)

    def to_json(self) -> bytes:
        """The plan file: short, the same bytes for the same plan, good to read and to review in a diff."""
        return self._value.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The plan file's content."""
        content: dict[str, Any] = json.loads(self.to_json())
        return content

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a plan file, whole or not at all; it names the trace's file where that is known.
        Raises OSError."""
        target = Path(path)
        value = self._value
        if self._trace_path is not None:
            relative = os.path.relpath(self._trace_path, target.parent)
            value = value.with_trace_file(Path(relative).as_posix())
        beside = target.with_name(f".{target.name}.{os.getpid()}")
        try:
            beside.write_bytes(value.to_json())
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise

    @property
    def policy(self) -> str:
        """Who made it: "auto", "torchtune:stash=5", "python:name of a function"."""
        policy: str = self.to_dict().get("made_by", {}).get("policy", "")
        return policy

    @property
    def placement(self) -> str:
        """The memory that it runs in: "caching" (PyTorch's allocator) or "planned"."""
        placement: str = self.to_dict().get("placement", "caching")
        return placement

    @property
    def predicted(self) -> dict[str, Any] | None:
        """What the simulator said of it when it was made, in bytes and ns; None for one written by hand."""
        return self.to_dict().get("predicted")

    def __str__(self) -> str:
        return self.to_json().decode()

    def __repr__(self) -> str:
        count = len(self.to_dict().get("saved", []))
        rules = f"{count} rule{'' if count == 1 else 's'}"
        made = f" by {self.policy}" if self.policy else ""
        return f"<stowage.Plan{made}, {rules} for saved tensors, {self.placement} memory>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plan) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return (Plan.from_json, (self.to_json(),))
