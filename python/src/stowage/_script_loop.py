"""The training loop of a script that knows nothing of Stowage, found by what it calls.

    cycle 1, plain        the optimizer whose step() is called; the model: the outermost module that was called, with
                          gradients enabled, and holds all its parameters; whether zero_grad() comes ahead of forward
    the gap behind it     whether zero_grad() comes there, and whether the next batch of a DataLoader comes first
    from cycle 2 on       steps of a Run

A step begins at the model's first forward behind the last update, or at zero_grad() where the loop begins with it: what
lies between is no batch for the next step then. It ends at the end of optimizer.step(), or of the zero_grad() behind it
where the loop ends with that. With a key for each shape, which is known at forward, it always begins there. zero_grad()
behind a backward without an update ends it, too: a gradient scaler has skipped the update.
"""

from __future__ import annotations

import enum
import gc
import weakref
from typing import Any, Callable, Hashable, Union

import torch
from torch.utils import _pytree as pytree

from . import _torch
from ._errors import Error
from ._training import Run, attach
from ._training_calls import TrainingCalls


class _At(enum.Enum):
    first_cycle = enum.auto()
    first_gap = enum.auto()
    between_steps = enum.auto()
    in_step = enum.auto()
    changing = enum.auto()  # a step begins or ends: what a Run calls for that is nobody's
    given_up = enum.auto()


Owner = Union[torch.nn.Module, torch.optim.Optimizer]


class ScriptLoop:
    """Listens to TrainingCalls. Where it cannot go on it says why and leaves the script to train plainly."""

    def __init__(self, budget: str, by_shape: bool, planning: dict[str, Any], say: Callable[[str], None]) -> None:
        self.calls: TrainingCalls | None = None  #: who tells of calls
        self.run: Run | None = None  #: None until the second step begins
        self._attach_to: Callable[..., Run] = lambda model, optimizer: attach(model, optimizer, budget, **planning)
        self._by_shape = by_shape
        self._say = say
        self._at = _At.first_cycle
        self._reason = ""  # for having given up
        self._called: list[weakref.ref[torch.nn.Module]] = []  # in the first cycle, outermost, with parameters
        self._model: torch.nn.Module | None = None
        self._optimizer: torch.optim.Optimizer | None = None
        self._parameters: set[int] = set()  # the optimizer's, by id
        self._trained: weakref.WeakKeyDictionary[torch.nn.Module, bool] = weakref.WeakKeyDictionary()
        self._training_mode = True
        self._zero_grad_ahead = False  # of the first forward
        self._zero_grad_behind = False  # behind the first update
        self._loads_batches = False
        self._loads_ahead_of_zero_grad = False  # behind the first update
        self._step: Any = None  # the open step's context
        self._has_backward = False  # in it
        self._is_updated = False
        self._skipped = 0  # begins of steps that could not run under the plan
        _torch.device("cpu")  # counts what is made from now on

    # ------------------------------------------------------------------ what is told

    def before_forward(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._at is _At.given_up:
            return
        if self._at is _At.first_cycle:
            self._note_called(module)
            return
        if not self._is_trained(module):
            return
        if not torch.is_grad_enabled() or module.training != self._training_mode:
            self.before_read()  # an evaluation
            return
        if self._at is _At.in_step:
            if not self._is_updated:
                return
            self._end()
        self._begin((args, kwargs))

    def before_batch(self) -> None:
        if self._at is _At.first_cycle:
            self._loads_batches = True
        elif self._at is _At.first_gap and not self._zero_grad_behind:
            self._loads_ahead_of_zero_grad = True

    def before_backward(self) -> None:
        self._has_backward = True

    def before_update(self, optimizer: torch.optim.Optimizer, closure: object) -> None:
        if self._at is _At.given_up or optimizer is self._optimizer:
            return
        if self._optimizer is not None:
            self._give_up("several optimizers are stepped: a plan is for one")
        elif closure is not None:
            self._give_up(f"{type(optimizer).__name__}.step() is given a closure that computes the loss")
        else:
            self._find_model(optimizer)

    def after_update(self) -> None:
        if self._at is _At.in_step:
            self._is_updated = True
            if not self._ends_at_zero_grad:
                self._end()

    def before_zero_grad(self, owner: Owner, set_to_none: bool) -> None:
        if self._at is _At.first_cycle:
            self._zero_grad_ahead |= not self._called
            return
        if self._at is _At.given_up or not self._is_owner(owner):
            return
        if self._at is _At.first_gap:
            self._zero_grad_behind = True
        elif self._at is _At.in_step:
            if self._ends_at_zero_grad or self._is_updated or not self._has_backward:
                return
            self._end()
        if self._begins_at_zero_grad and self._at is not _At.given_up:
            self._begin(None)
        elif self.run is not None and not set_to_none:
            self.run.materialise()

    def after_zero_grad(self, owner: Owner) -> None:
        if self._at is _At.in_step and self._ends_at_zero_grad and self._is_owner(owner):
            if self._is_updated or self._has_backward:
                self._end()

    def before_read(self) -> None:
        if self._at is _At.in_step and self._is_updated:
            self._end()
        if self._at is _At.between_steps:
            self.run.materialise()

    def on_error(self, error: BaseException) -> None:
        if self._at is _At.in_step:
            self._abort(error)

    # ------------------------------------------------------------------ finding

    def _note_called(self, module: torch.nn.Module) -> None:
        if torch.is_grad_enabled() and any(True for _ in module.parameters()):
            self._called.append(weakref.ref(module))

    def _find_model(self, optimizer: torch.optim.Optimizer) -> None:
        self._optimizer = optimizer
        self._parameters = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        called = [module for reference in self._called if (module := reference()) is not None]
        self._called.clear()
        holders = [module for module in called if self._holds_all(module)]
        if holders:
            self._training_mode = holders[0].training
        else:
            holders = self._uncalled_holders()
            self._training_mode = called[0].training if called else True
        if not called or not holders:
            self._give_up(f"no module that holds all parameters of {type(optimizer).__name__} was called")
            return
        self._model = holders[0]
        self._at = _At.first_gap
        self.calls.watch_updates(optimizer)

    def _holds_all(self, module: torch.nn.Module) -> bool:
        return self._parameters <= {id(parameter) for parameter in module.parameters()}

    # Where a model's parts are called and never the model itself. The outermost ones.
    def _uncalled_holders(self) -> list[torch.nn.Module]:
        # By type(): isinstance() asks objects for their __class__, which some answer with a warning.
        modules = [each for each in gc.get_objects() if issubclass(type(each), torch.nn.Module)]
        holders = [module for module in modules if self._holds_all(module)]
        inside = {id(part) for holder in holders for part in holder.modules() if part is not holder}
        return [holder for holder in holders if id(holder) not in inside]

    def _is_trained(self, module: torch.nn.Module) -> bool:
        if module not in self._trained:
            self._trained[module] = any(id(parameter) in self._parameters for parameter in module.parameters())
        return self._trained[module]

    def _is_owner(self, owner: Owner) -> bool:
        return owner is self._optimizer or (isinstance(owner, torch.nn.Module) and self._is_trained(owner))

    @property
    def _has_zero_grad_ahead(self) -> bool:
        return self._zero_grad_ahead and (self._loads_ahead_of_zero_grad or not self._loads_batches)

    @property
    def _begins_at_zero_grad(self) -> bool:
        return self._zero_grad_behind and self._has_zero_grad_ahead and not self._by_shape

    @property
    def _ends_at_zero_grad(self) -> bool:
        return self._zero_grad_behind and not self._has_zero_grad_ahead

    # ------------------------------------------------------------------ steps

    # `called`: arguments of the forward that begins it; None: zero_grad() does.
    def _begin(self, called: tuple[tuple[Any, ...], dict[str, Any]] | None) -> None:
        key = _shapes(called) if self._by_shape else None
        self._at = _At.changing
        try:
            if self.run is None:
                self.run = self._attach_to(self._model, self._optimizer)
                self._say(self._found())
            self._step = self.run.step(key)
            self._step.__enter__()
        except (Error, NotImplementedError) as error:
            self._give_up(str(error))
            return
        except torch.OutOfMemoryError:
            self._at = _At.between_steps
            raise
        except RuntimeError as error:  # a graph of an earlier step that the script still has holds parameters
            self._skip_step(error)
            return
        self._at = _At.in_step
        self._has_backward = self._is_updated = False

    def _skip_step(self, error: RuntimeError) -> None:
        self.run.materialise()
        self._at = _At.between_steps
        if self._skipped == 0:
            self._say(f"a step trains without the plan: {error}")
        self._skipped += 1

    def _end(self) -> None:
        self._at = _At.changing
        try:
            self._step.__exit__(None, None, None)
            self._at = _At.between_steps
        except Error as error:
            self._give_up(str(error))

    def _abort(self, error: BaseException) -> None:
        self._at = _At.changing
        self._step.__exit__(type(error), error, error.__traceback__)
        self._at = _At.between_steps

    def _give_up(self, reason: str) -> None:
        if self._at is _At.in_step:
            self._abort(RuntimeError(reason))
        self._at = _At.given_up
        self._reason = reason
        self._called.clear()
        if self.run is not None:
            self.run.detach()
        several = self.run is not None and torch.get_num_threads() > 1
        hint = "; OMP_NUM_THREADS=1 makes steps on a CPU alike" if several else ""
        self._say(f"{reason}{hint}. From here on the script trains without a plan")

    def finish(self, error: BaseException | None) -> str:
        """The script has ended, with this exception or by itself: everything is brought back. What to say of it."""
        if self._at is _At.in_step:
            if self._is_updated and error is None:
                self._end()
            else:
                self._abort(error or RuntimeError("the script ended within a step"))
        if self.run is None:
            return self._not_found()
        reports = "".join(self._report(key) for key in self.run.keys)
        self.run.detach()
        skipped = f"{self._skipped} times a step could not begin under the plan.\n" if self._skipped else ""
        left = f"Given up: {self._reason}\n" if self._at is _At.given_up else ""
        return (reports or "No planned step has run.\n") + skipped + left

    # ------------------------------------------------------------------ words

    def _found(self) -> str:
        begin = "zero_grad()" if self._begins_at_zero_grad else "forward"
        end = "zero_grad()" if self._ends_at_zero_grad else "step()"
        return (f"a step of {type(self._model).__name__} with {type(self._optimizer).__name__} goes from {begin} to "
                f"{end}; the next ones are recorded")

    def _not_found(self) -> str:
        if self._at is _At.given_up:
            return f"No planned step has run: {self._reason}\n"
        if self._at is _At.first_gap:
            return "No planned step has run: the script made one update alone\n"
        return "No training loop was found: no step() of an optimizer was called\n"

    def _report(self, key: Hashable) -> str:
        name = f"{_text(key)}: " if self._by_shape else ""
        return name + self.run.report(key)


def _shapes(called: Any) -> Hashable:
    leaves, _ = pytree.tree_flatten(called)
    return tuple(tuple(leaf.shape) for leaf in leaves if isinstance(leaf, torch.Tensor))


def _text(key: Any) -> str:
    return ", ".join("x".join(map(str, shape)) or "scalar" for shape in key)
