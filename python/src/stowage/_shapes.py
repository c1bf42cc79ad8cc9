"""What steps that are alike have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Hashable

import torch


def shapes_of(batch: Any) -> Hashable:
    """The shapes of a batch's tensors, with the names of those that have one."""
    if isinstance(batch, torch.Tensor):
        return tuple(batch.shape)
    if isinstance(batch, Mapping):
        return tuple((name, shapes_of(part)) for name, part in batch.items())
    if isinstance(batch, (list, tuple)):
        return tuple(map(shapes_of, batch))
    return None
