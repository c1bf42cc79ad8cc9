"""Modules as layers: what reports name and plans act on.

Only while a step runs has a module's ``forward`` another function in its place (in the instance's ``__dict__``), so
that pickling, copying and hooks of a model between steps are as ever.
"""

from collections.abc import Callable

import torch
from torch.utils import _pytree as pytree

from . import _torch

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict)
_LISTS = (torch.nn.ModuleList, torch.nn.Sequential)
_PLAIN = (type(None), bool, int, float, str)


def choose_layers(model: torch.nn.Module,
                  select: Callable[[str, torch.nn.Module], bool] | None = None) -> dict[str, torch.nn.Module]:
    """The modules of ``model`` that are layers, by their full path.

    ``select(path, module)`` says which; without it every module but the model itself, containers that are never
    called, and what has no parts and lies inside of an element of a list (a block's own linear layers).
    """
    chosen = {}
    in_element = set()  # paths that are elements of a list, or inside of one
    for path, module in model.named_modules():
        if not path:
            continue
        parent_path, _, _ = path.rpartition(".")
        parent = model.get_submodule(parent_path)
        is_inside = parent_path in in_element
        if is_inside or isinstance(parent, _LISTS):
            in_element.add(path)
        if isinstance(module, _CONTAINERS):
            continue
        if select is not None:
            is_layer = select(path, module)
        else:
            is_layer = not is_inside or any(True for _ in module.children())
        if is_layer:
            chosen[path] = module
    return chosen


class LayerCalls:
    """Context in which these modules run as layers."""

    def __init__(self, layers: dict[str, torch.nn.Module]):
        self._layers = layers
        self._before = []
        self.autocast = ""  #: "bf16", "fp16": what the first layer was called under

    def __enter__(self):
        self._first = True
        for path, module in self._layers.items():
            own = module.__dict__.get("forward")
            self._before.append((module, own))
            module.__dict__["forward"] = self._as_layer(path, module.forward)
        return self

    def __exit__(self, *_):
        for module, own in self._before:
            if own is None:
                module.__dict__.pop("forward", None)
            else:
                module.__dict__["forward"] = own
        self._before.clear()

    def _as_layer(self, path, forward):
        def forward_as_layer(*args, **kwargs):
            if self._first:
                self._first = False
                self.autocast = _autocast()
            leaves, spec = _flatten((args, kwargs))
            where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
            inputs = [leaves[i] for i in where]
            for i in where:
                leaves[i] = None
            shape = []  # of the result, once it is there

            # May be called again in backward: then with tensors of its own, and no others.
            def run(tensors):
                filled = leaves.copy()
                for i, tensor in zip(where, tensors, strict=True):
                    filled[i] = tensor
                given, named = _unflatten(filled, spec)
                result = forward(*given, **named)
                result_leaves, result_spec = _flatten(result)
                at = [i for i, leaf in enumerate(result_leaves) if isinstance(leaf, torch.Tensor)]
                tensors = [result_leaves[i] for i in at]
                if not shape:
                    for i in at:
                        result_leaves[i] = None
                    shape.extend((result_leaves, result_spec, at))
                return tensors

            outputs = _torch.layer(path, run, inputs)
            result_leaves, result_spec, at = shape
            result_leaves = result_leaves.copy()
            for i, tensor in zip(at, outputs, strict=True):
                result_leaves[i] = tensor
            return _unflatten(result_leaves, result_spec)

        return forward_as_layer


def _autocast():
    if not torch.is_autocast_enabled("cpu"):
        return ""
    return {torch.float16: "fp16", torch.bfloat16: "bf16"}.get(torch.get_autocast_dtype("cpu"), "")


# Most calls have tensors and plain values alone, for which PyTorch's own flattening takes 20 us.


def _flatten(value):
    if isinstance(value, torch.Tensor):
        return [value], None
    if type(value) is tuple and len(value) == 2 and type(value[1]) is dict and type(value[0]) is tuple:
        args, kwargs = value
        if all(isinstance(leaf, torch.Tensor) or type(leaf) in _PLAIN for leaf in (*args, *kwargs.values())):
            return [*args, *kwargs.values()], (len(args), tuple(kwargs))
    return pytree.tree_flatten(value)


def _unflatten(leaves, spec):
    if spec is None:
        return leaves[0]
    if type(spec) is tuple:
        count, names = spec
        return tuple(leaves[:count]), dict(zip(names, leaves[count:], strict=True))
    return pytree.tree_unflatten(leaves, spec)
