"""The optimizer's step as updates of one parameter after another, each told to the step that runs.

With the optimizer's own arithmetic: its step is called with one parameter at a time, fused and foreach kernels as
they are set, so results are the same bit by bit.
"""

import torch

from . import _torch
from ._errors import UsageError

# Their updates of different parameters have nothing to do with each other. A subclass may see all of them at once.
_INDEPENDENT = {
    getattr(torch.optim, name)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
                 "Adafactor")
    if hasattr(torch.optim, name)}


# As all of these do it, ahead of everything else: once, and for the gradients alone.
def _call(closure):
    with torch.enable_grad():
        return closure()


def is_split(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its step can be divided so; another optimizer's is one piece of work to a plan."""
    step = type(optimizer).step
    return type(optimizer) in _INDEPENDENT and hasattr(step, "hooked") and hasattr(step, "__wrapped__")


class SplitUpdates:
    """Context in which the optimizer's step is divided. The user's own step hooks run around all of it, once."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self._optimizer = optimizer
        self._params = None  # of each group, while the step runs
        self.updated = False  # in this context

    def __enter__(self):
        self.restore()
        self.updated = False
        self._optimizer.register_step_pre_hook(self._update)
        behind = self._optimizer.register_step_post_hook(self._give_back)
        # Ahead of the user's, which shall see all parameters.
        self._optimizer._optimizer_step_post_hooks.move_to_end(behind.id, last=False)
        return self

    def __exit__(self, *_):
        self.restore()

    def restore(self) -> None:
        """Whatever an exception (Ctrl-C comes at any line) has left is put right."""
        for hooks in (self._optimizer._optimizer_step_pre_hooks, self._optimizer._optimizer_step_post_hooks):
            for number, hook in list(hooks.items()):
                if getattr(hook, "__self__", None) is self:
                    del hooks[number]
        self._give_back()

    # All updates; the step behind it finds no parameters. Returns the step's arguments where they become others.
    def _update(self, optimizer, args, kwargs):
        hooks = optimizer._optimizer_step_pre_hooks.values()
        if getattr(next(reversed(hooks)), "__self__", None) is not self:
            raise UsageError("a hook ahead of the optimizer's step was registered within a step of a run",
                             hint="register it ahead of the step")
        closure = args[1] if args[1:] else kwargs.get("closure")
        if closure is not None:
            loss = _call(closure)
        self.updated = True
        groups = optimizer.param_groups
        step = type(optimizer).step.__wrapped__
        self._params = [group["params"] for group in groups]
        try:
            for group in groups:
                group["params"] = []
            for group, params in zip(groups, self._params, strict=True):
                for parameter in params:
                    if parameter.grad is None or not _torch.update_begin(parameter):
                        continue
                    group["params"] = [parameter]
                    step(optimizer)
                    _torch.update_end(parameter)
                group["params"] = []
        except BaseException:
            self._give_back()
            raise
        return None if closure is None else ((optimizer,), {"closure": lambda: loss})

    def _give_back(self, *_):
        if self._params is None:
            return
        for group, params in zip(self._optimizer.param_groups, self._params, strict=True):
            group["params"] = params
        self._params = None
