"""Modules as layers: what reports name and plans act on.

Only while a step runs has a module's ``forward`` another function in its place (in the instance's ``__dict__``), so
that pickling, copying and hooks of a model between steps are as ever.
"""

import enum
import itertools
import types
import weakref
from collections.abc import Callable

import torch
from torch.utils import _pytree as pytree

from . import _torch
from ._data_parallel import is_data_parallel
from ._errors import InternalError

_CONTAINERS = (torch.nn.ModuleList, torch.nn.ModuleDict)
# Why a layer runs once.
FOREIGN = "tensor in the place of a parameter"
EXCHANGED = "buffer"
_LISTS = (torch.nn.ModuleList, torch.nn.Sequential)
_PLAIN = (type(None), bool, int, float, str)
# Likewise what a call cannot change.
_FIXED = (complex, bytes, slice, range, type, enum.Enum, types.BuiltinFunctionType, torch.dtype, torch.device, torch.Size,
          torch.memory_format, torch.layout)


def choose_layers(model: torch.nn.Module,
                  select: Callable[[str, torch.nn.Module], bool] | None = None) -> dict[str, torch.nn.Module]:
    """The modules of ``model`` that are layers, by their full path.

    ``select(path, module)`` says which; without it every module but the model itself, what holds its blocks (the
    module around the outermost lists, containers that are never called), and what has no parts and lies inside of an
    element of a list (a block's own linear layers).
    """
    chosen = {}
    around = _around_blocks(model)
    if is_data_parallel(model):
        around.add("module")  # the user's model
    in_element = set()  # paths that are elements of a list, or inside of one
    compiled = {""} if _is_compiled(model) else set()  # a graph of their own, which no layer divides
    for path, module in model.named_modules():
        if not path:
            continue
        parent_path, _, _ = path.rpartition(".")
        parent = model.get_submodule(parent_path)
        is_inside = parent_path in in_element
        if parent_path in compiled or _is_compiled(module):
            compiled.add(path)
        if is_inside or isinstance(parent, _LISTS):
            in_element.add(path)
        if isinstance(module, _CONTAINERS) or path in compiled or parent_path in compiled:
            continue
        if select is not None:
            is_layer = select(path, module)
        else:
            is_layer = path not in around if not is_inside else any(True for _ in module.children())
        if is_layer:
            chosen[path] = module
    return chosen


# Paths of what an outermost list of blocks (modules with parts) lies in, up to the model.
def _around_blocks(model):
    around = set()
    lists = set()
    for path, module in model.named_modules():
        if not isinstance(module, _LISTS) or not any(any(True for _ in each.children()) for each in module.children()):
            continue
        outside = [""] if path else []
        outside.extend(path[:at] for at, character in enumerate(path) if character == ".")
        if lists.isdisjoint(outside):
            around.update(outside)
        lists.add(path)
    return around


def _is_compiled(module):
    return hasattr(module, "_orig_mod") or getattr(module, "_compiled_call_impl", None) is not None


class LayerCalls:
    """Context in which these modules run as layers."""

    def __init__(self, layers: dict[str, torch.nn.Module], device: str):
        self._layers = layers
        # Of each layer the dictionaries of its and its parts' parameters and buffers, which stay the same objects.
        self._state = {path: ([each._parameters for each in module.modules() if each._parameters],
                              [each._buffers for each in module.modules() if each._buffers])
                       for path, module in layers.items()}
        self._device = device  # "cpu" or "cuda"
        self.run_once = {}  #: paths of layers that must not run again, to the name of the type that says so
        self.autocast = None  #: "bf16", "fp16" or "": what the first layer was called under

    def __enter__(self):
        self.restore()
        self.autocast = None
        for path, module in self._layers.items():
            module.__dict__["forward"] = _Layer(self, path, module, *self._state[path])
        return self

    def __exit__(self, *_):
        self.restore()

    def note_autocast(self) -> None:
        """A layer is called."""
        self.autocast = ""
        if torch.is_autocast_enabled(self._device):
            names = {torch.float16: "fp16", torch.bfloat16: "bf16"}
            self.autocast = names.get(torch.get_autocast_dtype(self._device), "")

    def restore(self) -> None:
        """Whatever an exception (Ctrl-C comes at any line) has left is put right."""
        for module in self._layers.values():
            layer = module.__dict__.get("forward")
            if not isinstance(layer, _Layer):
                continue
            if layer.own is None:
                del module.__dict__["forward"]
            else:
                module.__dict__["forward"] = layer.own


class _Layer:
    """Stands in the place of a module's forward."""

    def __init__(self, calls, path, module, parameters, buffers):
        self._calls = calls
        self._path = path
        self._module = module
        self._parameters = parameters
        self._buffers = buffers
        self.own = module.__dict__.get("forward")  # the instance's; None: the class's
        self._forward = module.forward

    def __call__(self, *args, **kwargs):
        if self._calls.autocast is None:
            self._calls.note_autocast()
        leaves, spec, is_shared = _flatten((args, kwargs))
        if is_shared:
            self._calls.run_once[self._path] = "list or dict twice"
        inputs = []  # each tensor once, so that it is one object again where the layer runs again
        where = []  # of leaves that are tensors: which of the inputs
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                number = next((n for n, known in enumerate(inputs) if known is leaf), len(inputs))
                if number == len(inputs):
                    inputs.append(leaf)
                where.append((i, number))
                leaves[i] = None
            elif type(leaf) not in _PLAIN and not _is_fixed(leaf):
                self._calls.run_once[self._path] = f"{type(leaf).__name__} object"
        if self._path not in self._calls.run_once and self._has_foreign_parameters():
            self._calls.run_once[self._path] = FOREIGN
        computed_with = _references(self._parameters), _references(self._buffers)
        forward = self._forward
        given = [(args, kwargs)]  # the caller's own objects, for the first run
        first = []  # what the first run returned, and its tensors, until the caller has it
        has_run = []

        # May be called again in backward: then with tensors of its own, and no others.
        def run(tensors):
            if given:
                first_args, first_kwargs = given.pop()
            else:
                self._check_state(computed_with)
                filled = leaves.copy()
                for i, number in where:
                    filled[i] = tensors[number]
                first_args, first_kwargs = _unflatten(filled, spec)
            result = forward(*first_args, **first_kwargs)
            del first_args, first_kwargs
            tensors = [leaf for leaf in _flatten(result)[0] if isinstance(leaf, torch.Tensor)]
            if not has_run:
                has_run.append(True)
                first.append((result, tensors))
            return tensors

        outputs = _torch.layer(self._path, run, inputs, self._path not in self._calls.run_once)
        if not _are_there(computed_with[1], self._buffers):
            self._calls.run_once[self._path] = EXCHANGED
        # The caller gets the layer's own object (it may be a list that others have, too), and what may run again
        # keeps none of it.
        result, tensors = first.pop()
        if any(output is not made for output, made in zip(outputs, tensors, strict=True)):
            raise InternalError(f"the results of layer {self._path} are not those that it returned")
        return result

    # torch.func.functional_call puts some there for the call.
    def _has_foreign_parameters(self):
        return any(type(each) is not torch.nn.Parameter and each is not None and not isinstance(each, torch.nn.Parameter)
                   for members in self._parameters for each in members.values())

    # With others than in its call it would compute something else without a word.
    def _check_state(self, computed_with):
        parameters, buffers = computed_with
        if not (_are_there(parameters, self._parameters) and _are_there(buffers, self._buffers)):
            raise RuntimeError(f"stowage: {self._path} is to run again with other parameters or buffers than those of its "
                               "call (of torch.func.functional_call, or put in their place since): deny recompute")

    # A copy of the module has its own class's forward.
    def __deepcopy__(self, memo):
        copied = memo.get(id(self._module))
        return self.own if copied is None else _own_forward(copied)

    def __reduce__(self):
        return _own_forward, (self._module,)


# To hold the tensors themselves would keep those of a functional call; an id may be another one's by then.
def _references(members):
    return [None if tensor is None else weakref.ref(tensor) for each in members for tensor in each.values()]


def _are_there(references, members):
    tensors = [tensor for each in members for tensor in each.values()]
    return len(tensors) == len(references) and all(
        tensor is (None if reference is None else reference())
        for reference, tensor in zip(references, tensors, strict=True))


def _own_forward(module):
    return types.MethodType(type(module).forward, module)


# A kind of value that no call can change.
def _is_fixed(leaf):
    if isinstance(leaf, _FIXED) or isinstance(leaf, types.FunctionType) and leaf.__closure__ is None:
        return True
    return type(leaf).__module__ == "numpy" and not hasattr(leaf, "__setitem__")  # a number


# PyTorch's own flattening takes 20 us and more, several times that with tuples in it.

_LEAF = object()


# Leaves, how to put them together again, and whether a list or dict is in it twice (then it would be two).
def _flatten(value):
    leaves = []
    mutable = []
    spec = _take_apart(value, leaves, mutable)
    return leaves, spec, len(mutable) > 1 and len(set(mutable)) < len(mutable)


# Appends what is no container, and the identity of what can be appended to.
def _take_apart(value, leaves, mutable):
    kind = type(value)
    if kind is tuple:
        return kind, [_take_apart(each, leaves, mutable) for each in value]
    if kind is list:
        mutable.append(id(value))
        return kind, [_take_apart(each, leaves, mutable) for each in value]
    if kind is dict:
        mutable.append(id(value))
        return tuple(value), [_take_apart(each, leaves, mutable) for each in value.values()]
    if kind is not torch.Size and (kind in pytree.SUPPORTED_NODES or issubclass(kind, tuple) and hasattr(kind, "_fields")):
        mutable.append(id(value))
        parts, spec = pytree.tree_flatten(value)
        leaves.extend(parts)
        return spec, len(parts)
    leaves.append(value)
    return _LEAF


def _unflatten(leaves, spec):
    return _put_together(iter(leaves), spec)


def _put_together(leaves, spec):
    if spec is _LEAF:
        return next(leaves)
    how, parts = spec
    if how is tuple or how is list:
        return how(_put_together(leaves, part) for part in parts)
    if type(how) is tuple:
        return {key: _put_together(leaves, part) for key, part in zip(how, parts, strict=True)}
    return pytree.tree_unflatten(list(itertools.islice(leaves, parts)), how)
