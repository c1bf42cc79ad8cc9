"""A recorded training step."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Mapping

from . import _core
from ._exports import Exports
from ._tables import Table


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that autograd saved for backward: what a policy of your own is asked about.

    Attributes:
        site: Its name in a plan: "layers.3.mlp#2", the third that a call of that layer saves.
        layer: The layer that saved it, dotted: "layers.3.mlp".
        op: The op that saved it: "aten::gelu"; None outside any.
        made_by: The op that made the tensor; None: it is older than the step.
        shape: Of the saved view.
        dtype: "float32", "bfloat16", ..
        bytes: Of the saved view.
        storage: Number of its storage; saved tensors with one number share bytes.
        storage_bytes: Of the whole storage.
        storage_class: "activation", "parameter", "input", ..
        made_in_step: Whether the storage was made in the step. What was not (a parameter, an input) stays.
        can_recompute: Whether single ops of the forward make it again; then all of one storage have to be.
    """

    site: str
    layer: str
    op: str | None
    made_by: str | None
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    storage: int
    storage_bytes: int
    storage_class: str
    made_in_step: bool
    can_recompute: bool


def path_text(path: str | os.PathLike[str]) -> str:
    """A path for the library, to which "-" is standard input. Raises OSError: it cannot be read."""
    with open(path, "rb"):
        pass
    text = os.fspath(path)
    return "./-" if text == "-" else text


class Trace(Exports):
    """One training step as `stowage profile` or a recording of your own loop wrote it (docs/trace-format.md).

    Immutable; may be used by several threads at once. Sizes are bytes, times nanoseconds.
    """

    __slots__ = ("_recording", "_path")

    def __init__(self, recording: _core.Recording, path: str | None = None) -> None:
        """Not for users: see load() and from_json()."""
        self._recording = recording
        self._path = path

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Reads a trace (.json or .json.gz). Raises BadInput: it is none; OSError: it cannot be read."""
        text = path_text(path)
        return cls(_core.Recording.load(text), text)

    @classmethod
    def from_json(cls, text: bytes | str, name: str = "trace") -> Trace:
        """Of JSON as to_json() gives it; `name` is what errors call it. Raises BadInput."""
        return cls(_core.Recording.from_json(text.encode() if isinstance(text, str) else text, name))

    def to_json(self) -> bytes:
        """JSON, the same bytes for the same trace."""
        return self._recording.to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the trace, compressed where `path` ends with .gz, whole or not at all. Raises Unavailable."""
        self._recording.save(os.fspath(path))
        self._path = os.fspath(path)

    def with_settings(self, settings: Mapping[str, float]) -> Trace:
        """The same step on another machine, such as {"link.h2d_gbps": 25} (`stowage simulate --help` has the
        names). Raises UsageError: an unknown name, a value out of range."""
        changed = self._recording.with_settings([f"{name}={value!r}" for name, value in settings.items()])
        return Trace(changed)

    @property
    def path(self) -> str | None:
        """Where it was read from or last written to."""
        return self._path

    @property
    def model(self) -> str:
        """"gpt2:layers=6,width=256"."""
        return self._recording.model

    @property
    def batch(self) -> int:
        """Samples of a step."""
        return self._recording.batch

    @property
    def seq(self) -> int:
        """Length of a sequence; 0: the model has none."""
        return self._recording.seq

    @property
    def dtype(self) -> str:
        """fp32, tf32, bf16 or amp."""
        return self._recording.dtype

    @property
    def optimizer(self) -> str:
        """none, sgd, adam or adamw."""
        return self._recording.optimizer

    @property
    def device(self) -> str:
        """"cpu" or "cuda"."""
        return self._recording.device

    @property
    def device_name(self) -> str:
        """The CPU's or the GPU's model."""
        return self._recording.device_name

    @property
    def torch(self) -> str:
        """PyTorch's version."""
        return self._recording.torch

    @property
    def created(self) -> str:
        """When it was recorded, ISO 8601 in UTC."""
        return self._recording.created

    @property
    def fingerprint(self) -> str:
        """"sha256:..", of the saved tensors: a plan is for traces with the same one."""
        return self._recording.fingerprint

    @property
    def step_ns(self) -> int:
        """Time of a step without any observer; where it did not fit, of its replay."""
        return self._recording.step_ns

    @property
    def peaks(self) -> dict[str, int | None]:
        """Peaks of the training device: requested_bytes, active_bytes, reserved_bytes (None: no such counter)."""
        return self._recording.peaks()

    @property
    def ops(self) -> int:
        """How many ops ran, those within others left out."""
        return self._recording.ops

    @property
    def layers(self) -> Table:
        """In forward order: name, kind, calls, parameter_bytes."""
        return Table(self._recording.layers())

    def saved_tensors(self) -> Table:
        """What autograd saved, in order: a row has the attributes of SavedTensor."""
        return Table(self._recording.saved_tensors())

    def _exported(self, format: str, table: str) -> bytes:
        return _core.export_recorded(self._recording, format, table)

    def __repr__(self) -> str:
        run = f"{self.model}, batch {self.batch}" + (f", seq {self.seq}" if self.seq else "")
        counts = f"{self.ops} ops, {self._recording.saved} saved tensors"
        return f"<stowage.Trace {run}, {self.dtype} on {self.device}, {counts}>"

    def _repr_html_(self) -> str:
        from ._reports import inspect

        return inspect(self)._repr_html_()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trace) and (
            self._recording is other._recording
            or (self.fingerprint == other.fingerprint and self.to_json() == other.to_json())
        )

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Trace.from_json, (self.to_json(),))
