"""A callback for Lightning's Trainer."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Callable, Hashable

from ._errors import UsageError
from ._shapes import shapes_of
from ._training import Run, StowageWarning, attach

if TYPE_CHECKING:
    import lightning.pytorch as pl
elif "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    import pytorch_lightning as pl  # what the program uses, although both may be installed
else:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl


class StowageCallback(pl.Callback):
    """Has a Trainer's steps run under a plan.

        trainer = lightning.Trainer(.., callbacks=[StowageCallback("60%"), ..])

    A step is what Lightning takes for one: all batches of an accumulation and the optimizer's step. Those at the end of
    an epoch that have fewer batches are steps of another key, as are those of other shapes. Ahead of a validation, a
    checkpoint (whatever asks for the state_dict of the model or the optimizer) and the end of an epoch everything comes
    back; at the end, and behind an exception, the plan is left.

    Attributes:
        run: The Run; None until training begins. Keeps its reports behind the end.
    """

    def __init__(self, budget: str | int | None = None, *, key: Callable[[Any], Hashable] = shapes_of,
                 **options: Any) -> None:
        """Takes what attach() takes besides model and optimizer; key: of a step, from its first batch."""
        super().__init__()
        self.run: Run | None = None
        self._budget = budget
        self._key = key
        self._options = options
        self._step: ExitStack | None = None
        self._updates = 0  # of the Trainer, ahead of the step
        self._in_batch = False
        self._batches = 0  # of the step that runs, which are over
        self._hooks: list[Any] = []
        self._trainer: pl.Trainer | None = None

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Attaches to the module, behind the sanity check and behind the loading of a checkpoint."""
        self._leave()
        if trainer.world_size > 1:
            raise UsageError(f"a Trainer on {trainer.world_size} devices", hint="a plan is for one: devices=1")
        if len(trainer.optimizers) > 1:
            raise UsageError(f"a module with {len(trainer.optimizers)} optimizers", hint="a plan is for one")
        self._trainer = trainer
        self.run = attach(pl_module, trainer.optimizers[0] if trainer.optimizers else None, self._budget,
                          **self._options)
        for owner in (pl_module, *trainer.optimizers):
            self._hooks.append(owner.register_state_dict_pre_hook(lambda *_: self._show()))

    def on_train_batch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule, batch: Any,
                             batch_idx: int) -> None:
        """Begins a step, with the first batch of an accumulation."""
        self._in_batch = True
        if self._step is not None or batch_idx % trainer.accumulate_grad_batches:
            return
        key = (self._key(batch), min(trainer.accumulate_grad_batches, trainer.num_training_batches - batch_idx))
        self._updates, self._batches = trainer.global_step, 0
        step = ExitStack()
        step.enter_context(self.run.step(key))
        self._step = step

    def on_train_batch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule, outputs: Any, batch: Any,
                           batch_idx: int) -> None:
        """Ends it, behind the update."""
        self._in_batch = False
        self._batches += 1
        if self._is_updated():
            self._end()

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Brings everything back; ends a step whose batch was left out."""
        self._in_batch = False
        self._show()

    def on_validation_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Brings everything back."""
        self._show()

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        """Leaves the plan."""
        self._leave()

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        """Ends the step that raised, and leaves the plan."""
        self._leave(exception)

    # Whether the step that runs has all behind it.
    def _is_updated(self) -> bool:
        return self._step is not None and self._trainer.global_step != self._updates

    def _end(self) -> None:
        step, self._step = self._step, None
        step.close()

    def _abandon(self, error: BaseException) -> None:
        if self._step is not None:
            step, self._step = self._step, None
            step.__exit__(type(error), error, None)

    # Somebody is going to look at the model.
    def _show(self) -> None:
        if self.run is None:
            return
        if self._is_updated():
            self._end()
        elif self._step is not None:
            if self._in_batch:
                return  # the step's own, which sees what is there
            if self._batches:
                warnings.warn("a validation, a checkpoint or an epoch's end within an accumulation: the rest of this "
                              "step runs without a plan", StowageWarning, stacklevel=2)
            self._abandon(RuntimeError("the step was left"))
        self.run.materialise()

    def _leave(self, error: BaseException | None = None) -> None:
        self._abandon(error or RuntimeError("the step was left"))
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._trainer = None
        if self.run is not None:
            self.run.detach()
