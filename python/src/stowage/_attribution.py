"""Gradient x activation of modules, as steps that are recorded, planned and run under their plan."""

from __future__ import annotations

import math
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, Hashable, Iterable, Iterator

import torch
import torch.distributed as dist
from torch.utils import _pytree as pytree

from . import _torch
from ._errors import UsageError
from ._shapes import shapes_of
from ._training import Run, _place_of, attach

Catch = Callable[[str, torch.Tensor], torch.Tensor]
Target = int | Iterable[int] | torch.Tensor | None


def hold(tensor: torch.Tensor) -> _torch.Held:
    """A tensor that your code keeps, as one that autograd saves: get() gives it back, without a graph.

    In a step of an attached run the plan decides where its bytes are meanwhile; elsewhere they stay. Let go of the
    tensor itself and of its views, else nothing is gained. Nobody writes it in place.
    """
    return _torch.hold(tensor)


class Attribution:
    """Gradient x activation of modules of a model: Captum's LayerGradientXActivation, within a budget.

        attribute = stowage.Attribution(model, ["layers.0", "layers.1"], budget="50%")
        result = attribute(x, target=3)           # {"layers.0": tensor on the host, ..}

    The first calls of a shape are recorded, which gives results as ever; then a plan for the budget is made, and all
    others run under it, with the same results bit by bit. Without a budget or anything else of attach() there is no plan.
    """

    def __init__(self, model: torch.nn.Module, modules: Iterable[str | torch.nn.Module], budget: str | int | None = None,
                 *, attribute_to_layer_input: bool = False, gather: bool = False, **planned: Any) -> None:
        """
        Args:
            model: On the CPU, or on the current GPU.
            modules: Of it, or their paths.
            budget: What a call may take, as in attach().
            attribute_to_layer_input: To the tensors that the modules are given, instead of those that they return.
            gather: Ranks of torch.distributed attribute a part of a batch each, on a device of their own: all of them get
                the attributions of the whole, gathered on the host in the order of ranks. To be called on all ranks.
            planned: What attach() takes besides: plan, trace, layers, recording, deny, ..

        Raises:
            UsageError: No such module, or none; a budget that is no size.
        """
        self.model = model
        self.attribute_to_layer_input = attribute_to_layer_input
        self._modules = _by_path(model, modules)
        kind, index = _place_of(model)
        self._run: Run | None = None
        if budget is not None or planned:
            self._run = attach(model, None, budget, **planned)
        self._group = dist.new_group(backend="gloo") if gather else None  # what gathers on the host
        self._gradients = _torch.LayerGradients(_torch.device(kind, index))
        self._device = kind
        self._calls: dict[str, int] = {}
        self._dtypes: dict[str, torch.dtype] = {}  # of results
        self._watching: list[str] = []  # paths of modules whose tensors are attributed
        self._reached: set[str] = set()  # of these in the step that runs

    @property
    def run(self) -> Run | None:
        """For its trace(), plan(), report(); None without a plan."""
        return self._run

    def __call__(self, *args: Any, target: Target = None, score: Callable[[Any], torch.Tensor] | None = None,
                 **kwargs: Any) -> dict[str, torch.Tensor]:
        """One call of the model, its backward, and the attributions.

        Args:
            args: Of the model, as kwargs.
            target: Of each sample's outputs the one whose gradient it is: a number, or one for each sample.
            score: In its place a function of the model's output; its sum is what backward begins with.

        Returns:
            By the module's path; of a module that is called again also "path@1", of a module with several tensors also
            "path#1". Tensors are on the host, and are the caller's.

        Raises:
            RuntimeError: The score does not depend on some module.
            Infeasible, ..: See Run.step().
        """
        kind = _kind_of(target, score)
        score = self._score(target, score)
        with self._without_parameters(), self._watched(self._modules, self._gradients.attribute):
            self._step((kind, shapes_of((args, kwargs))), args, kwargs, score)
        return self._gathered({name: _owned(tensor) for name, tensor in self._results()})

    def integrate(self, *args: Any, baselines: tuple[Any, ...] | None = None, n_steps: int = 50, target: Target = None,
                  score: Callable[[Any], torch.Tensor] | None = None, **kwargs: Any) -> dict[str, torch.Tensor]:
        """Integrated gradients: Captum's LayerIntegratedGradients, each module by itself, with Gauss-Legendre's points.

        For each module its tensors at n_steps points between what they are for the baselines and what they are for the
        arguments; each point is a step, with a recording and a plan of the module's own. The sum is made on the host.

        Args:
            args: As those of a call; so are target, score and kwargs.
            baselines: In the place of args; None: zeros for the tensors among them.
            n_steps: Points.
        """
        kind = _kind_of(target, score)
        score = self._score(target, score)
        if baselines is None:
            baselines = pytree.tree_map_only(torch.Tensor, torch.zeros_like, args)
        sums: dict[str, torch.Tensor] = {}
        for path, module in self._modules.items():
            start: dict[str, torch.Tensor] = {}
            if self._run is not None:
                self._run.materialise()
            with torch.no_grad(), self._watched({path: module}, lambda name, tensor: start.setdefault(name, tensor)):
                self._calls = {}
                self._gradients.begin()  # names are those of a forward
                try:
                    self.model(*baselines, **kwargs)
                finally:
                    self._gradients.abort()
            if not start:
                raise RuntimeError(_not_reached(path))
            place = next(iter(start.values())).device
            alpha, weight = (torch.zeros((), device=place, dtype=torch.float64) for _ in range(2))

            def between(name: str, tensor: torch.Tensor) -> torch.Tensor:
                if name not in start:
                    raise RuntimeError(f"{name} is not there for the baselines: the module is called otherwise for them")
                with torch.no_grad():
                    difference = tensor - start[name]
                    point = start[name] + alpha * difference
                    factor = weight * difference
                return self._gradients.attribute(name, point, factor)

            with self._without_parameters(), self._watched({path: module}, between):
                for at, share in _gauss_legendre(n_steps):
                    alpha.fill_(at)
                    weight.fill_(share)
                    self._step(("integrate", path, kind, shapes_of((args, kwargs))), args, kwargs, score)
                    for name, tensor in self._results():
                        if name not in sums:
                            sums[name] = _zeros(tensor.shape, torch.float64)
                        sums[name].add_(tensor)
        return self._gathered({name: _owned(total.to(self._dtypes[name])) for name, total in sums.items()})

    def _gathered(self, part: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        if self._group is None:
            return part
        parts: list[Any] = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(parts, part, group=self._group)
        whole = {}
        for name, tensor in part.items():
            rows = [torch.atleast_1d(each[name]) for each in parts]  # a scalar is a row
            whole[name] = _zeros(torch.Size([sum(map(len, rows)), *tensor.shape[1:]]), tensor.dtype)
            torch.cat(rows, out=whole[name])
        return whole

    def _score(self, target: Target, score: Callable[[Any], torch.Tensor] | None) -> Callable[[Any], torch.Tensor]:
        if target is not None and score is not None:
            raise UsageError("target and score say two things")
        if score is not None:
            return score
        if not isinstance(target, (int, torch.Tensor, type(None))):
            target = torch.tensor(list(target))
        if isinstance(target, torch.Tensor) and target.dim():
            target = target.to(_place_of_outputs(self.model))  # ahead of the step, which does not make it
        return lambda output: _selected(output, target)

    def _results(self) -> list[tuple[str, torch.Tensor]]:
        if self._device == "cuda":
            torch.cuda.current_stream().synchronize()
        results = self._gradients.results()
        self._dtypes.update((name, tensor.dtype) for name, tensor in results)
        return results

    def _step(self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any],
              score: Callable[[Any], torch.Tensor]) -> None:
        with self._run.step(key=key) if self._run is not None else nullcontext():
            self._calls = {}
            self._reached = set()
            self._gradients.begin()
            try:
                args, kwargs = pytree.tree_map_only(torch.Tensor, self._gradients.start, (args, kwargs))
                root = score(self.model(*args, **kwargs)).sum()
                del args, kwargs
                missing = [path for path in self._watching if path not in self._reached]
                if missing:
                    raise RuntimeError(_not_reached(missing[0]))
                self._gradients.end_forward()
                if not root.requires_grad:
                    raise RuntimeError("the model's output depends on none of the attributed modules")
                root.backward()
                del root
                self._gradients.end_backward()
            except BaseException:
                self._gradients.abort()
                raise

    # Their gradients are not asked for, and the graph is that much smaller.
    @contextmanager
    def _without_parameters(self) -> Iterator[None]:
        trained = [parameter for parameter in self.model.parameters() if parameter.requires_grad]
        for parameter in trained:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in trained:
                parameter.requires_grad_(True)

    # `catch(name, tensor)` gives what takes the tensor's place.
    @contextmanager
    def _watched(self, modules: dict[str, torch.nn.Module], catch: Catch) -> Iterator[None]:
        hooks = []
        self._watching = list(modules)
        for path, module in modules.items():
            if self.attribute_to_layer_input:
                hooks.append(module.register_forward_pre_hook(
                    lambda _, args, kwargs, path=path: self._caught(path, (args, kwargs), catch), with_kwargs=True))
            else:
                hooks.append(module.register_forward_hook(
                    lambda _, __, output, path=path: self._caught(path, output, catch)))
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _caught(self, path: str, tensors: Any, catch: Catch) -> Any:
        module = path
        if self._gradients.is_in_forward:
            call = self._calls.get(path, 0)
            self._calls[path] = call + 1
            path = f"{path}@{call}" if call else path
        leaves, spec = pytree.tree_flatten(tensors)
        number = 0
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
                leaves[i] = catch(f"{path}#{number}" if number else path, leaf)
                number += 1
                if torch.is_grad_enabled():
                    self._reached.add(module)
        return pytree.tree_unflatten(leaves, spec)

    def detach(self) -> None:
        """Leaves the plan: the model is as it was."""
        if self._run is not None:
            self._run.detach()

    def __enter__(self) -> Attribution:
        return self

    def __exit__(self, *_: object) -> None:
        self.detach()


def _not_reached(path: str) -> str:
    return (f"the score does not depend on {path or 'the model itself'}: this call did not reach it with gradients, or it "
            "has no tensor of floating-point numbers there")


# What backward begins with is another graph for each.
def _kind_of(target: Target, score: Callable[[Any], torch.Tensor] | None) -> str:
    if score is not None:
        return "score"
    if isinstance(target, (int, type(None))):
        return "all" if target is None else "one"
    return "each"


def _by_path(model: torch.nn.Module, modules: Iterable[str | torch.nn.Module]) -> dict[str, torch.nn.Module]:
    known = dict(model.named_modules())
    paths = {id(module): path for path, module in known.items()}
    chosen = {}
    for each in modules:
        path = each if isinstance(each, str) else paths.get(id(each))
        if path not in known:
            raise UsageError(f"the model has no module {path or type(each).__name__!r}", hint="see model.named_modules()")
        chosen[path] = known[path]
    if not chosen:
        raise UsageError("no module is to be attributed")
    return chosen


def _place_of_outputs(model: torch.nn.Module) -> torch.device:
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


# As Captum takes them.
def _selected(output: torch.Tensor, target: Target) -> torch.Tensor:
    if target is None:
        return output
    if isinstance(target, int) or target.dim() == 0 or target.numel() == 1:
        return output[:, int(target)]
    return output.gather(1, target.reshape(-1, 1))


# Points and weights of Gauss-Legendre's rule on [0, 1], by Golub and Welsch: eigenvalues and eigenvectors of a matrix.
def _gauss_legendre(count: int) -> list[tuple[float, float]]:
    if count < 1:
        raise UsageError(f"n_steps={count} is no number of points")
    matrix = torch.zeros(count, count, dtype=torch.float64)
    for k in range(1, count):
        matrix[k, k - 1] = matrix[k - 1, k] = k / math.sqrt(4 * k * k - 1)
    points, vectors = torch.linalg.eigh(matrix)
    return [((1 + point) / 2, first * first) for point, first in zip(points.tolist(), vectors[0].tolist(), strict=True)]


# Not of PyTorch's memory, which is what a step is counted by on a CPU.
def _zeros(shape: torch.Size, dtype: torch.dtype) -> torch.Tensor:
    count = shape.numel()
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(count * dtype.itemsize), dtype=dtype).view(shape)


def _owned(tensor: torch.Tensor) -> torch.Tensor:
    return _zeros(tensor.shape, tensor.dtype).copy_(tensor)
