"""The tensors that a plan was made with, where they are found: whether they are still those."""

from __future__ import annotations

from typing import Any

import torch


class BoundTensors:
    """Parameters, buffers and optimizer state as they are now.

    Asked ahead of each step (some 20 us for a hundred parameters): a walk through all modules would take a millisecond.
    """

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None) -> None:
        """Walks through the model."""
        self._optimizer = optimizer
        self._members: list[tuple[dict[str, Any], str, torch.Tensor]] = []
        for module in model.modules():
            for members in (module._parameters, module._buffers):
                self._members.extend((members, name, tensor) for name, tensor in members.items() if tensor is not None)
        self._state = [] if optimizer is None else [
            (parameter, what, piece) for parameter, state in optimizer.state.items()
            for what, piece in state.items() if isinstance(piece, torch.Tensor)]
        self._entries = self._entries_now()

    def _entries_now(self) -> int:
        return 0 if self._optimizer is None else sum(map(len, self._optimizer.state.values()))

    def are_there(self) -> bool:
        """Whether each is still in its place: load_state_dict() may put others there, a first update makes state."""
        if any(members.get(name) is not tensor for members, name, tensor in self._members):
            return False
        if self._optimizer is None:
            return True
        if self._entries_now() != self._entries:
            return False
        state = self._optimizer.state
        return all(state.get(parameter, {}).get(what) is piece for parameter, what, piece in self._state)
