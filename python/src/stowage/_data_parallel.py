"""One plan for all ranks of a data-parallel model, for steps that are the same on them.

Measured times differ from rank to rank, and so do the plans that follow them; where one rank found no plan it would
leave the others waiting for its gradients. So the group's first rank plans, and the others take its plan, or its
error, for recordings with the same fingerprint.

Ranks tell each other through the store that PyTorch's own rendezvous made. No collective is added to the step's, and a
rank waits for nobody but one that is planning, which itself waits for nobody: recordings may end on some ranks sooner
than on others; those run steps without a plan until it is there.
"""

from __future__ import annotations

import collections
import json
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from . import _errors
from ._errors import Error, Unavailable
from ._plan import Plan
from ._planning import PlanOutcome
from ._simulation import simulate
from ._trace import Trace

_FIRST_RANK_IS_NEAR = 5.0  # s that its recording's last step may end later than this rank's
_PATIENCE = 20  # steps without a plan until a rank that is not the first one plans
_SILENCE = 15.0  # s without a word from a rank that plans, which is gone then
_BEAT = 1.0  # s between its words

_AHEAD_OF_BACKWARD = ("zero_grad", "data", "forward")
_VIEWS = ("aten::unflatten_dense_tensors", "aten::slice", "aten::narrow", "aten::view", "aten::as_strided")

_attached: collections.Counter[str] = collections.Counter()  # runs of this process, by group


@dataclass(frozen=True)
class Found:
    """A plan or why there is none.

    Attributes:
        outcome: Where this rank planned.
        lines: What a user should know.
    """

    plan: Plan | None
    error: Error | None
    outcome: PlanOutcome | None
    lines: tuple[str, ...] = ()


def is_data_parallel(model: torch.nn.Module) -> bool:
    """Whether ranks reduce its gradients."""
    return isinstance(model, DistributedDataParallel)


def keep_buckets_apart(model: torch.nn.Module) -> RemovableHandle | None:
    """DDP's buckets of all steps but the first ones in memory of their own, as a plan counts them; until it is removed.

    DDP makes them anew in a forward behind the first reduction, sized by the order in which gradients were ready, where
    PyTorch's allocator has room: a small one may then hold the segment of a large one of the first step, which is free
    otherwise. In a pool of their own they cannot. Made where DDP makes them, so that the order of collectives stays.
    """
    if not isinstance(model, DistributedDataParallel) or next(model.parameters()).device.type != "cuda":
        return None
    if torch.cuda.get_allocator_backend() != "native":
        return None
    return model.register_forward_pre_hook(_make_buckets_apart)


def _make_buckets_apart(model: DistributedDataParallel, _: Any) -> None:
    # With find_unused_parameters there is nothing to make anew; of join() other ranks are told first, which is DDP's to do.
    makes_none = not hasattr(model, "reducer") or (model.find_unused_parameters and not model.static_graph)
    if model._has_rebuilt_buckets or makes_none or model._join_config.enable or not torch.is_grad_enabled():
        return
    with torch.cuda.use_mem_pool(torch.cuda.MemPool()):
        model._has_rebuilt_buckets = model.reducer._rebuild_buckets()


def is_sharded(model: torch.nn.Module) -> bool:
    """Whether FSDP (either one) holds its weights in shards, which it gathers and frees within a step."""
    fsdp = sys.modules.get("torch.distributed.fsdp")  # without it there is no such model
    kinds = tuple(getattr(fsdp, name) for name in ("FullyShardedDataParallel", "FSDPModule") if hasattr(fsdp, name))
    return bool(kinds) and any(isinstance(module, kinds) for module in model.modules())


def plans_alone(model: torch.nn.Module) -> bool:
    """Whether there are other ranks, of which this model does not tell that they train the same."""
    is_one_of_many = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    return is_one_of_many and not isinstance(model, DistributedDataParallel)


def communicates_in_forward(trace: Trace) -> tuple[str, str] | None:
    """The first collective of a forward, but for those that spread DDP's buffers: op and layer ("" is outside of any).

    Where it ran again, this rank would call it once more than the others, or mix it with the reduction of gradients;
    and what it writes into no op makes again.
    """
    text = trace.to_json()
    if b"c10d" not in text:
        return None
    recorded = json.loads(text)
    ops, strings = recorded["ops"], recorded["strings"]
    kinds = [recorded["legend"]["phase_kind"][kind] for kind in recorded["phases"]["kind"]]
    uses = None
    for op in range(ops["n"]):
        name = strings[ops["name"][op]]
        if kinds[ops["phase"][op]] not in _AHEAD_OF_BACKWARD or not name.startswith(("c10d::", "_c10d_functional::")):
            continue
        uses = uses or _Uses(recorded)
        if ops["layer"][op] != 0 or not uses.is_for_buffers(op):
            return name, strings[recorded["layers"]["name"][ops["layer"][op]]] if ops["layer"][op] else ""
    return None


class _Uses:
    """Which op is given which storages."""

    def __init__(self, recorded: dict[str, Any]) -> None:
        self._names = [recorded["strings"][name] for name in recorded["ops"]["name"]]
        self._is_older = [event < 0 for event in recorded["storages"]["alloc_event"]]
        self._of_op: dict[int, list[int]] = {}
        self._of_storage: dict[int, list[int]] = {}
        for op, tensor in zip(recorded["uses"]["op"], recorded["uses"]["tensor"], strict=True):
            storage = recorded["tensors"]["storage"][tensor] if tensor >= 0 else -1
            if storage >= 0:
                self._of_op.setdefault(op, []).append(storage)
                self._of_storage.setdefault(storage, []).append(op)

    # What it communicates is older than the step, or is copied to what is, and used for nothing else.
    def is_for_buffers(self, op: int) -> bool:
        storages = self._of_op.get(op, [])
        return bool(storages) and all(
            self._is_older[storage] or all(self._is_view(later) or self._copies_to_older(later, storage)
                                           for later in self._of_storage[storage] if later > op)
            for storage in storages)

    def _is_view(self, op: int) -> bool:
        return self._names[op] in _VIEWS

    def _copies_to_older(self, op: int, storage: int) -> bool:
        return self._names[op] == "aten::copy_" and all(
            other == storage or self._is_older[other] for other in self._of_op[op])


def runs_again(plan: Plan) -> bool:
    """Whether it has anything of the forward run again."""
    content = plan.to_dict()
    return bool(content.get("recompute")) or any(rule.get("do") == "recompute" for rule in content.get("saved", []))


def plans_of_ranks(model: torch.nn.Module, asked: str) -> RankPlans | None:
    """Of the ranks that reduce this model's gradients; None: there is one rank.

    Args:
        asked: The budget and the like; ranks that were asked for something else plan for themselves.
    """
    if not isinstance(model, DistributedDataParallel) or dist.get_world_size(model.process_group) < 2:
        return None
    group = model.process_group
    _attached[group.group_name] += 1
    prefix = f"stowage/{group.group_name}/{_attached[group.group_name]}"
    store = dist.PrefixStore(prefix, dist.distributed_c10d._get_default_store())
    return RankPlans(store, dist.get_rank(group), asked)


class RankPlans:
    """The ranks' plans of one run."""

    def __init__(self, store: dist.Store, rank: int, asked: str) -> None:
        self._store = store
        self._rank = rank
        self._asked = asked
        self._recordings: collections.Counter[str] = collections.Counter()
        self._places: dict[int, str] = {}  # of recordings that wait, by their id
        self._waited: dict[int, int] = {}

    def find(self, trace: Trace, divides: bool, make: Callable[[Trace], PlanOutcome]) -> Found | None:
        """The plan of all ranks with this step; None: the rank that plans has no recording yet, ask again.

        Args:
            trace: The same object when asked again.
            divides: Whether the optimizer's step is recorded as updates of one parameter.
            make: Plans.

        Raises:
            Exception: What make() raises, on this rank or on the one that planned.
            Unavailable: The rank that plans is gone, or the store, with the rank or the agent that had it.
        """
        try:
            place = self._place_of(trace, divides)
            is_mine = self._is_mine(trace, place)
            if is_mine is None:
                return None
        except RuntimeError as error:
            raise Unavailable(f"no word of the other ranks' plans: {str(error).splitlines()[0]}") from error
        del self._places[id(trace)]
        return self._make(trace, place, make) if is_mine else self._take(trace, place, make)

    # Where the plan for it is put: not a place that another recording of this run had.
    def _place_of(self, trace: Trace, divides: bool) -> str:
        if id(trace) not in self._places:
            what = f"{trace.fingerprint} {trace.device_name} {trace.torch} {divides} {self._asked}"
            self._recordings[what] += 1
            self._places[id(trace)] = f"{what} {self._recordings[what]}"
            self._waited[id(trace)] = 0
        return self._places[id(trace)]

    # Whether this rank is to plan; None: that is not settled.
    def _is_mine(self, trace: Trace, place: str) -> bool | None:
        claim = f"{place} by"
        if self._rank != 0:
            # Once, and no longer: the first rank may need steps that need this rank.
            is_claimed = self._wait(claim, _FIRST_RANK_IS_NEAR if self._waited[id(trace)] == 0 else 0.0)
            self._waited[id(trace)] += 1
            if is_claimed or self._waited[id(trace)] <= _PATIENCE:
                return False if is_claimed else None
        return bool(self._store.compare_set(claim, "", str(self._rank)) == str(self._rank).encode())

    # Whether it is in the store. In short turns, so that Ctrl-C ends it: the store's own wait is deaf to that.
    def _wait(self, key: str, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while not self._store.check([key]):
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        return True

    # Says again and again that this rank is there, until the event.
    def _beat(self, place: str, over: threading.Event) -> None:
        beats = 0
        while not over.is_set():
            try:
                self._store.set(f"{place} alive {beats}", "")
            except RuntimeError:
                return  # whoever waits learns it likewise
            beats += 1
            over.wait(_BEAT)

    # Plans for all ranks.
    def _make(self, trace: Trace, place: str, make: Callable[[Trace], PlanOutcome]) -> Found:
        told: dict[str, Any] = {"error": ["Error", f"rank {self._rank} was interrupted while it planned", "", "", ""]}
        over = threading.Event()
        beats = threading.Thread(target=self._beat, args=(place, over), daemon=True)
        beats.start()
        try:
            outcome = make(trace)
            told = {"plan": outcome.plan.to_json().decode(), "on": outcome.budget_on, "budget": outcome.budget_bytes,
                    "peak": outcome.peak_bytes, "error": _error_to_tell(outcome.error)}
        except Exception as error:
            told["error"] = _error_to_tell(error)
            raise
        finally:
            over.set()
            beats.join()
            self._store.set(place, json.dumps(told))
        return Found(None if outcome.error else outcome.plan, outcome.error, outcome)

    # Takes what another rank has found, but for a plan that exceeds the budget here.
    def _take(self, trace: Trace, place: str, make: Callable[[Trace], PlanOutcome]) -> Found:
        told = self._told(place)
        by = self._store.get(f"{place} by").decode()
        if told["error"] is not None:
            kind, *facts = told["error"]
            error = getattr(_errors, kind)(*facts)
            if "plan" not in told:
                raise error
            return Found(None, error, None)
        plan = Plan.from_json(told["plan"])
        peak = getattr(simulate(trace, plan), f"peak_{told['on']}_bytes")
        if told["budget"] is None or peak is None or peak <= max(told["budget"], told["peak"]):
            return Found(plan, None, None)
        outcome = make(trace)
        line = (f"rank {by}'s plan takes {peak:,} bytes on rank {self._rank}, which has more than that rank in memory; "
                f"the budget is {told['budget']:,}: rank {self._rank} has a plan of its own")
        return Found(None if outcome.error else outcome.plan, outcome.error, outcome, (line,))

    # What the rank that plans has found; waits for it as long as it says that it is there.
    def _told(self, place: str) -> dict[str, Any]:
        beats, heard = 0, time.monotonic()
        try:
            while not self._wait(place, _BEAT / 4):
                if self._store.check([f"{place} alive {beats}"]):
                    beats, heard = beats + 1, time.monotonic()
                elif time.monotonic() - heard > _SILENCE:
                    raise Unavailable("the rank that makes the plan is gone")
            told: dict[str, Any] = json.loads(self._store.get(place))
        except Unavailable:
            raise
        except RuntimeError as error:
            raise Unavailable(f"the rank that makes the plan is gone: {str(error).splitlines()[0]}") from error
        return told


def _error_to_tell(error: Exception | None) -> list[str] | None:
    if error is None:
        return None
    if isinstance(error, Error):
        return [type(error).__name__, error.message, error.file, error.pointer, error.hint]
    return ["Error", f"{type(error).__name__}: {error}", "", "", ""]
