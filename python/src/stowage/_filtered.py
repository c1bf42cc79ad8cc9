"""A plan of the saved tensors that a filter of the user's leaves, and of nothing else.

Of a storage all saved tensors leave, or none. Storages are taken in an order (those that were saved first, which lie
there longest; the largest ones) until the budget is kept, by bisection: some 15 replays an order. They leave, or are
made again where ops can. Of these plans the one with the shortest step is taken; there is no search beyond them.
"""

from __future__ import annotations

from typing import Callable, Iterator, Protocol, Sequence, TypeVar

from ._errors import BadInput
from ._trace import SavedTensor


class Outcome(Protocol):
    """What is asked of a PlanOutcome."""

    @property
    def feasible(self) -> bool: ...
    @property
    def step_ns(self) -> int: ...
    @property
    def peak_bytes(self) -> int: ...


Found = TypeVar("Found", bound=Outcome)


def filtered_plan(saved: Sequence[SavedTensor], names: Callable[[SavedTensor], bool],
                  make: Callable[[list[str]], Found]) -> Found:
    """The best plan found; where none keeps the budget, the one with the lowest peak.

    Args:
        saved: In the recording's order.
        names: Whether the plan may decide about it. Asked of those that are made in the step.
        make: The outcome of these decisions, one for each saved tensor. Raises BadInput: they cannot be.
    """
    storages = _storages(saved, names)
    outcome = make(["keep"] * len(saved))
    if outcome.feasible or not storages:
        return outcome
    kept: list[Found] = []
    tightest = outcome
    for again in (False, True):
        if again and not any(all(saved[i].can_recompute for i in storage) for storage in storages):
            continue
        for order in (storages, sorted(storages, key=lambda storage: -saved[storage[0]].storage_bytes)):
            for found in _fewest(saved, order, again, make):
                if found.feasible:
                    kept.append(found)
                elif found.peak_bytes < tightest.peak_bytes:
                    tightest = found
    return min(kept, key=lambda found: found.step_ns) if kept else tightest


# Of each storage that may leave the numbers of its saved tensors, in the order of their first ones.
def _storages(saved: Sequence[SavedTensor], names: Callable[[SavedTensor], bool]) -> list[list[int]]:
    of_storage: dict[int, list[int]] = {}
    stays = set()
    for i, each in enumerate(saved):
        of_storage.setdefault(each.storage, []).append(i)
        if not each.made_in_step or each.storage_bytes == 0 or not names(each):
            stays.add(each.storage)
    return [numbers for storage, numbers in of_storage.items() if storage not in stays]


# The outcome with as few of these storages as keep the budget, or with all of them; none where they cannot be so.
def _fewest(saved: Sequence[SavedTensor], order: list[list[int]], again: bool,
            make: Callable[[list[str]], Found]) -> Iterator[Found]:
    def first(count: int) -> Found:
        decided = ["keep"] * len(saved)
        for storage in order[:count]:
            may_run = again and all(saved[i].can_recompute for i in storage)
            for i in storage:
                decided[i] = "recompute" if may_run else "offload"
        return make(decided)

    try:
        best = first(len(order))
    except BadInput:
        return
    low, high = 0, len(order)  # too few, enough
    while best.feasible and high - low > 1:
        middle = (low + high) // 2
        try:
            outcome = first(middle)
        except BadInput:  # what is to run again there cannot
            low = middle
            continue
        if outcome.feasible:
            best, high = outcome, middle
        else:
            low = middle
    yield best
