"""A callback for transformers' Trainer (and what is built on it, such as TRL's trainers)."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import transformers

from ._training import Run, attach


class StowageCallback(transformers.TrainerCallback):
    """Has a Trainer's steps run under a plan.

        trainer = transformers.Trainer(.., callbacks=[StowageCallback("60%")])

    A step is what the Trainer takes for one: all parts of an accumulation and the optimizer's step. Ahead of an
    evaluation or a checkpoint everything comes back; at the end the plan is left.

    Attributes:
        run: The Run; None until training begins. Keeps its reports behind the end.
    """

    def __init__(self, budget: str | int | None = None, **options: Any) -> None:
        """Takes what attach() takes besides model and optimizer."""
        self.run: Run | None = None
        self._budget = budget
        self._options = options
        self._step: ExitStack | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, *, model: Any = None, optimizer: Any = None,
                       **_: Any) -> None:
        """Attaches to the model; to the optimizer itself where accelerate wraps it."""
        self._abandon()
        self.run = attach(model, getattr(optimizer, "optimizer", optimizer), self._budget, **self._options)

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Begins a step."""
        self._step = ExitStack()
        self._step.enter_context(self.run.step())

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Ends it, and brings everything back where the Trainer is going to look at the model."""
        step, self._step = self._step, None
        step.close()
        if control.should_evaluate or control.should_save or control.should_training_stop:
            self.run.materialise()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Leaves the plan."""
        self._abandon()

    # An exception that a Trainer raises ends its training without a word to callbacks.
    def _abandon(self) -> None:
        if self._step is not None:
            step, self._step = self._step, None
            error = RuntimeError("the step raised")
            step.__exit__(RuntimeError, error, None)
        if self.run is not None:
            self.run.detach()
