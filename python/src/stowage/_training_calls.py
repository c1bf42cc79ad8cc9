"""What any training loop calls, told to a listener: batches, forward, backward, the optimizer's step,
zero_grad(), and whatever reads all parameters.

PyTorch's own functions have another one in their place while the context lasts, on this thread; modules and
optimizers themselves stay as they are, but for the `step` of the optimizer that watch_updates() names. A call within
another one (a block's within its model's, whatever backward runs again) is not told. Some 0.2 us a call.
"""

from __future__ import annotations

import functools
import threading
from types import MethodType, TracebackType
from typing import Any, Callable, Protocol

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data.dataloader import _BaseDataLoaderIter


class Listener(Protocol):
    """Told ahead of a call, behind it, or both.

    Attributes:
        calls: Who tells; set by TrainingCalls.
    """

    calls: TrainingCalls | None

    def before_forward(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The outermost module that is called."""

    def before_batch(self) -> None:
        """The next one of a DataLoader."""

    def before_backward(self) -> None:
        """loss.backward() or torch.autograd.backward()."""

    def before_update(self, optimizer: torch.optim.Optimizer, closure: object) -> None:
        """Any optimizer's step(), from inside of it; closure: what it was given to compute the loss, or None."""

    def after_update(self) -> None:
        """The step() of the optimizer that watch_updates() named, from outside of it."""

    def before_zero_grad(self, owner: torch.nn.Module | torch.optim.Optimizer, set_to_none: bool) -> None:
        """Of a model or an optimizer."""

    def after_zero_grad(self, owner: torch.nn.Module | torch.optim.Optimizer) -> None:
        """Behind it."""

    def before_read(self) -> None:
        """Parameters or states are about to be read, or written, by no step."""

    def on_error(self, error: BaseException) -> None:
        """One of these calls raises."""


class TrainingCalls:
    """Context in which a listener is told of them."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._depth = 0
        self._thread = 0
        self._undo: list[Callable[[], None]] = []
        listener.calls = self

    def __enter__(self) -> TrainingCalls:
        told = self._listener
        self._thread = threading.get_ident()
        module, optimizer = torch.nn.Module, torch.optim.Optimizer
        self._replace(module, "__call__", lambda called, /, *args, **kwargs: told.before_forward(called, args, kwargs))
        self._replace(torch.autograd, "backward", lambda *_, **__: told.before_backward())
        self._replace(torch.autograd, "grad")
        self._replace(_BaseDataLoaderIter, "__next__", lambda _: told.before_batch())
        for owner in (module, optimizer):
            self._replace(owner, "zero_grad",
                          lambda owner, set_to_none=True: told.before_zero_grad(owner, set_to_none),
                          lambda owner, *_, **__: told.after_zero_grad(owner))
            for name in ("state_dict", "load_state_dict"):
                self._replace(owner, name, lambda *_, **__: told.before_read())
        self._replace(module, "named_parameters", lambda *_, **__: told.before_read())
        self._replace(torch, "save", lambda *_, **__: told.before_read())
        hook = register_optimizer_step_pre_hook(
            lambda updating, args, kwargs: told.before_update(updating, (*args[1:], kwargs.get("closure"))[0]))
        self._undo.append(hook.remove)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 where: TracebackType | None) -> None:
        while self._undo:
            self._undo.pop()()

    def watch_updates(self, optimizer: torch.optim.Optimizer) -> None:
        """Tells of the ends of this optimizer's steps from now on."""
        own = optimizer.__dict__.get("step")
        # A method, since learning rate schedulers that are made later take its __func__.
        original = optimizer.step

        @functools.wraps(original)
        def step(_: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> Any:
            return original(*args, **kwargs)

        watched = MethodType(self._told(step, None, lambda *_, **__: self._listener.after_update()), optimizer)
        optimizer.__dict__["step"] = watched

        def undo() -> None:
            if optimizer.__dict__.get("step") is not watched:
                return  # wrapped by somebody else since
            del optimizer.__dict__["step"]
            if own is not None:
                optimizer.__dict__["step"] = own

        self._undo.append(undo)

    def _replace(self, owner: Any, name: str, before: Callable[..., None] | None = None,
                 after: Callable[..., None] | None = None) -> None:
        original = getattr(owner, name)
        setattr(owner, name, self._told(original, before, after))
        self._undo.append(lambda: setattr(owner, name, original))

    def _told(self, original: Callable[..., Any], before: Callable[..., None] | None,
              after: Callable[..., None] | None) -> Callable[..., Any]:
        is_compiling = torch.compiler.is_compiling
        this_thread = threading.get_ident

        @functools.wraps(original)
        def told(*args: Any, **kwargs: Any) -> Any:
            # is_compiling() first: it is all of this that torch.compile sees.
            if is_compiling() or self._depth or this_thread() != self._thread:
                return original(*args, **kwargs)
            self._depth = 1
            try:
                if before is not None:
                    before(*args, **kwargs)
                result = original(*args, **kwargs)
                if after is not None:
                    after(*args, **kwargs)
                return result
            except StopIteration:
                raise
            except BaseException as error:
                self._listener.on_error(error)
                raise
            finally:
                self._depth = 0

        return told
