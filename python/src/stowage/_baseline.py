"""Baselines of `stowage check` (docs/ci.md) of steps that Python recorded: what the plain step needs, to the byte.

Tensors that are older than the step and that it never uses count in no baseline: they are the process's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import _core
from ._errors import BadInput
from ._reports import Inspection, inspect
from ._trace import Trace

SCHEMA = "stowage-baseline/1"
_CLASSES = ("parameter", "gradient", "optimizer_state", "buffer", "activation", "temporary", "input", "output",
            "workspace", "other")
_KEY = ("holding", "class", "layer", "op")
_SHOWN = 3  # rows that grew
_BLOCK = 512  # bytes, as PyTorch's allocator rounds on a GPU


def _is_foreign(storage: dict[str, Any]) -> bool:
    return storage["class"] == "other" and storage["made_by"] is None


def foreign_bytes(trace: Trace) -> int:
    """Of tensors that are alive all step long and have nothing to do with it."""
    return sum(storage["bytes"] for storage in inspect(trace).storages if _is_foreign(storage))


# Of what is alive where most is requested. What else the allocator counts as active (rests of segments that it does
# not cut) hangs on what the process did before.
def _active_bytes(peak: Inspection) -> int:
    return sum(-(-storage["bytes"] // _BLOCK) * _BLOCK for storage in peak.storages if not _is_foreign(storage))


def _rows(trace: Trace, peak: Inspection) -> list[dict[str, Any]]:
    """As report/peak_content.h groups and sorts them."""
    order = {layer["name"]: number for number, layer in enumerate(trace.layers)}
    packs: dict[str, int] = {}
    for number, saved in enumerate(trace.saved_tensors()):
        packs.setdefault(saved["site"], number)
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for storage in peak.storages:
        if _is_foreign(storage) or storage["bytes"] == 0:
            continue
        site = storage["site"] if storage["made_by"] is not None else None
        layer = site.rpartition("#")[0] if site is not None else storage["layer"]
        op = storage["made_by"] or ""
        key = (_CLASSES.index(storage["class"]), order.get(layer, -1), layer, op)
        row = rows.setdefault(key, {"holding": "original", "class": storage["class"], "layer": layer, "op": op,
                                    "sites": [], "storages": 0, "bytes": 0})
        if site is not None and site not in row["sites"]:
            row["sites"].append(site)
        row["storages"] += 1
        row["bytes"] += storage["bytes"]
    for row in rows.values():
        row["sites"].sort(key=lambda site: packs.get(site, -1))
    return [rows[key] for key in sorted(rows)]


@dataclass(frozen=True)
class Baseline:
    """The file's content, as dictionaries with its keys."""

    content: dict[str, Any]

    @classmethod
    def of(cls, trace: Trace, seed: int) -> Baseline:
        """Of the step that was recorded, which began with this seed."""
        recorded = json.loads(trace.to_json())
        run, env = recorded["run"], recorded["env"]
        step = {"model": run["model"], "batch": run["batch"], "seq": run["seq"], "dtype": run["dtype"],
                "optimizer": run["optimizer"], "seed": seed}
        step.update({key: run[key] for key in ("autocast", "grad_scaler") if run[key]})
        peak = inspect(trace)
        rows = _rows(trace, peak)
        needed = sum(row["bytes"] for row in rows)
        on_cpu = env["device"] == "cpu"
        active = needed if on_cpu else _active_bytes(peak)
        made_with = {
            "stowage": _core.version, "libtorch": env["torch"], "device": env["device"],
            "device_name": "" if on_cpu else env["device_name"], "allocator": env["allocator"],
            "threads": run["threads"] if on_cpu else 0, "deterministic": bool(run["deterministic"]), "plan": None,
            "placement": None}
        measured = {"peak_requested_bytes": needed, "peak_active_bytes": active, "peak_reserved_bytes": None,
                    "host_bytes": 0, "stall_ns": None, "step_ns": None}
        moment = peak.moment
        at_peak = {"requested_bytes": needed, "op": moment["op_name"] or "", "layer": moment["layer"] or "",
                   "phase": moment["phase"] or "", "storages": rows, "host": []}
        return cls({"schema": SCHEMA, "step": step, "made_with": made_with, "measured": measured, "at_peak": at_peak})

    @classmethod
    def load(cls, file: Path) -> Baseline:
        """Raises BadInput: it is none, or of another format; OSError."""
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
        except ValueError:
            raise BadInput("the file is no JSON", str(file)) from None
        if not isinstance(content, dict) or content.get("schema") != SCHEMA:
            raise BadInput(f"it is no baseline of the format {SCHEMA}", str(file), "/schema")
        needed = {"step": (), "made_with": (), "measured": ("peak_requested_bytes",), "at_peak": ("storages",)}
        for key, inner in needed.items():
            if not isinstance(content.get(key), dict) or any(name not in content[key] for name in inner):
                raise BadInput("a part of a baseline is missing", str(file), f"/{key}")
        return cls(content)

    def to_json(self) -> str:
        """The same bytes for the same content, one row of storages a line, as `stowage check` writes it."""
        def indented(part: Any) -> str:
            return json.dumps(part, indent=2, ensure_ascii=False).replace("\n", "\n  ")

        def lines(rows: list[dict[str, Any]]) -> str:
            if not rows:
                return "[]"
            dumped = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
            return "[" + ",".join(f"\n      {row}" for row in dumped) + "\n    ]"

        parts = [f'  "schema": {json.dumps(self.content["schema"])}']
        parts += [f'  "{key}": {indented(self.content[key])}' for key in ("step", "made_with", "measured")]
        at_peak = self.content["at_peak"]
        inner = [f'    "{key}": {json.dumps(at_peak[key], ensure_ascii=False)}'
                 for key in ("requested_bytes", "op", "layer", "phase")]
        inner += [f'    "{key}": {lines(at_peak[key])}' for key in ("storages", "host")]
        parts.append('  "at_peak": {\n' + ",\n".join(inner) + "\n  }")
        return "{\n" + ",\n".join(parts) + "\n}\n"

    def save(self, file: Path) -> None:
        """Writes it, and its folder. Raises OSError."""
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.to_json(), encoding="utf-8")

    @property
    def peak(self) -> int:
        """Requested bytes."""
        return int(self.content["measured"]["peak_requested_bytes"])

    def another_step(self, now: Baseline) -> str | None:
        """Why this is not the baseline of the step that `now` is of; None where it is."""
        return self._different("step", now, "it is of another step: its")

    def incomparable(self, now: Baseline) -> str | None:
        """Why bytes of the two cannot be compared; None where they can."""
        return self._different("made_with", now, "it is not comparable: its")

    def _different(self, part: str, now: Baseline, what: str) -> str | None:
        before, after = self.content[part], now.content[part]
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                return f"{what} {key} is {before.get(key)}, this one's is {after.get(key)}"
        return None

    def more_in(self, now: Baseline) -> str | None:
        """What `now` needs more, in a line; None where it needs no more."""
        if now.peak <= self.peak:
            return None
        more = f"{now.peak:,} bytes at the peak are {now.peak - self.peak:,} more than the baseline's {self.peak:,}"
        grew = []
        for more_bytes, row in self._grown(now)[:_SHOWN]:
            made_by = f" made by {row['op']}" if row["op"] else ""
            grew.append(f"{row['layer']}: {more_bytes:,} bytes more, {row['class']}{made_by}")
        return more + (f" ({'; '.join(grew)})" if grew else "")

    def _grown(self, now: Baseline) -> list[tuple[int, dict[str, Any]]]:
        before = {tuple(row[key] for key in _KEY): row["bytes"] for row in self.content["at_peak"]["storages"]}
        grown = [(row["bytes"] - before.get(tuple(row[key] for key in _KEY), 0), row)
                 for row in now.content["at_peak"]["storages"]]
        return sorted((each for each in grown if each[0] > 0), key=lambda each: -each[0])
