"""A callback for transformers' Trainer (and what is built on it, such as TRL's trainers)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Callable, Hashable

import torch
import transformers

from ._shapes import shapes_of
from ._training import Run, attach


class StowageCallback(transformers.TrainerCallback):
    """Has a Trainer's steps run under a plan.

        trainer = transformers.Trainer(.., callbacks=[StowageCallback("60%")])

    A step is what the Trainer takes for one: all parts of an accumulation and the optimizer's step. It begins at the
    model's first forward with gradients, which shows the shapes: each has a recording and a plan, as have the last
    steps of an epoch that have fewer parts. Ahead of an evaluation or a checkpoint everything comes back; at the end
    the plan is left.

    Attributes:
        run: The Run; None until training begins. Keeps its reports behind the end.
    """

    def __init__(self, budget: str | int | None = None, *, key: Callable[[Any], Hashable] | None = shapes_of,
                 **options: Any) -> None:
        """Takes what attach() takes besides model and optimizer.

        Args:
            key: Of a step, from the keyword arguments of its first forward (its arguments where there are none); None:
                all steps are alike, and begin where the Trainer says so. As do those of a model that is compiled as a
                whole, or that is never called itself.
        """
        self.run: Run | None = None
        self._budget = budget
        self._key = key
        self._options = options
        self._step: ExitStack | None = None
        self._awaited: Any = None  # the hook that waits for the first forward of a step
        self._is_called = True  # the model, in steps

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any = None, optimizer: Any = None,
                       **_: Any) -> None:
        """Attaches to the model; to the optimizer itself where accelerate wraps it."""
        self._abandon()
        self._is_called = self._key is not None and not getattr(args, "torch_compile", False)
        self.run = attach(model, getattr(optimizer, "optimizer", optimizer), self._budget, **self._options)

    def on_step_begin(self, args: Any, state: Any, control: Any, *, model: Any = None, train_dataloader: Any = None,
                      **_: Any) -> None:
        """Begins a step, or waits for its first forward."""
        if self._is_called:
            self._await_forward(model, _parts(args, state, train_dataloader))
        else:
            self._begin(None)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ends it, and brings everything back where the Trainer is going to look at the model."""
        if self._awaited is not None:
            self._forget_forward()
            self._is_called = False  # parts of it are, at most
        if self._step is not None:
            step, self._step = self._step, None
            step.close()
        if control.should_evaluate or control.should_save or control.should_training_stop:
            self.run.materialise()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leaves the plan."""
        self._abandon()

    # The hook is there until it is called, so that the model is itself between steps.
    def _await_forward(self, model: torch.nn.Module, parts: int) -> None:
        self._forget_forward()

        def first(_: torch.nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            if torch.is_grad_enabled():
                self._forget_forward()
                self._begin((self._key(named or arguments), parts))

        self._awaited = model.register_forward_pre_hook(first, prepend=True, with_kwargs=True)

    def _forget_forward(self) -> None:
        if self._awaited is not None:
            self._awaited.remove()
            self._awaited = None

    def _begin(self, key: Hashable) -> None:
        step = ExitStack()
        step.enter_context(self.run.step(key))
        self._step = step

    # An exception that a Trainer raises ends its training without a word to callbacks.
    def _abandon(self) -> None:
        self._forget_forward()
        if self._step is not None:
            step, self._step = self._step, None
            error = RuntimeError("the step raised")
            step.__exit__(RuntimeError, error, None)
        if self.run is not None:
            self.run.detach()


# Of the accumulation that begins: an epoch's last one may have fewer.
def _parts(args: Any, state: Any, loader: Any) -> int:
    most = int(args.gradient_accumulation_steps)
    try:
        batches = len(loader)
    except TypeError:
        return most
    begun = round((state.epoch or 0) % 1 * batches) % batches
    return min(most, batches - begun)
