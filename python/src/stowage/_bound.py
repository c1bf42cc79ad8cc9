"""The tensors that a plan was made with, where they are found: whether they are still those."""

from __future__ import annotations

import weakref
from typing import Any

import torch


class BoundTensors:
    """Parameters, buffers and optimizer state as they are now. Keeps none of them.

    Asked ahead of each step (some 50 us for a hundred parameters): a walk through all modules would take a millisecond.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        """Walks through the model."""
        self._optimizer = optimizer
        self._members = [(members, {name: _reference(tensor) for name, tensor in members.items()})
                         for module in model.modules() for members in (module._parameters, module._buffers)]
        self._state = {key: {what: _reference(piece) for what, piece in state.items()} for key, state in self._entries()}

    def _entries(self) -> list[tuple[Any, dict[str, Any]]]:
        if self._optimizer is None:
            return []
        return [(key, state) for key, state in self._optimizer.state.items()
                if isinstance(key, torch.Tensor) and isinstance(state, dict)]

    def are_there(self) -> bool:
        """Whether each is still in its place: load_state_dict() may put others there, a first update makes state."""
        if not all(_are(members, known) for members, known in self._members):
            return False
        entries = self._entries()
        return len(entries) == len(self._state) and all(_are(state, self._state.get(key, {})) for key, state in entries)


# What is no tensor may change.
def _reference(value: Any) -> weakref.ref[torch.Tensor] | None:
    return weakref.ref(value) if isinstance(value, torch.Tensor) else None


def _are(now: dict[str, Any], known: dict[str, weakref.ref[torch.Tensor] | None]) -> bool:
    if len(now) != len(known):
        return False
    for name, value in now.items():
        if isinstance(value, torch.Tensor):
            reference = known.get(name)
            if reference is None or reference() is not value:
                return False
        elif known.get(name) is not None:
            return False
    return True
