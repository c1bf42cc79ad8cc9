"""The optimizer's step as updates of one parameter after another, each told to the step that runs.

With the optimizer's own arithmetic: its step is called with one parameter at a time, fused and foreach kernels as
they are set, so results are the same bit by bit.
"""

import torch

from . import _torch

# Their updates of different parameters have nothing to do with each other.
_INDEPENDENT = tuple(
    getattr(torch.optim, name)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
                 "Adafactor")
    if hasattr(torch.optim, name))


def is_split(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its step can be divided so; another optimizer's is one piece of work to a plan."""
    step = type(optimizer).step
    return isinstance(optimizer, _INDEPENDENT) and hasattr(step, "hooked") and hasattr(step, "__wrapped__")


class SplitUpdates:
    """Context in which the optimizer's step is divided. The user's own step hooks run around all of it, once."""

    def __init__(self, optimizer: torch.optim.Optimizer):
        self._optimizer = optimizer
        self._params = None  # of each group, while the step runs
        self._hooks = []
        self.updated = False  # in this context

    def __enter__(self):
        self.updated = False
        behind = self._optimizer.register_step_post_hook(self._restore)
        # Ahead of the user's, which shall see all parameters.
        self._optimizer._optimizer_step_post_hooks.move_to_end(behind.id, last=False)
        self._hooks = [self._optimizer.register_step_pre_hook(self._update), behind]
        return self

    def __exit__(self, *_):
        for hook in self._hooks:
            hook.remove()
        self._restore()

    # All updates; the step behind it finds no parameters.
    def _update(self, optimizer, args, kwargs):
        if args[1:] or kwargs.get("closure") is not None:
            return  # a closure computes the loss again
        self.updated = True
        groups = optimizer.param_groups
        step = type(optimizer).step.__wrapped__
        self._params = [group["params"] for group in groups]
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

    def _restore(self, *_):
        if self._params is None:
            return
        for group, params in zip(self._optimizer.param_groups, self._params, strict=True):
            group["params"] = params
        self._params = None
