"""A pytest plugin: the memory of a training step is a test.

    @pytest.mark.stowage(budget="60%", baseline="memory.json")
    def test_memory(stowage_step):
        model, optimizer = ..
        def step(k): ..                      # forward, backward, update; returns the loss
        stowage_step(model, optimizer, step)

docs/python.md says what it looks at.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable

import pytest

if TYPE_CHECKING:
    import torch

    from ._step_check import CheckedStep

_ARGUMENTS = ("budget", "baseline", "steps", "seed")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that writes baselines."""
    parser.getgroup("stowage").addoption(
        "--stowage-update-baseline", action="store_true",
        help="write the baselines that tests marked stowage(baseline=..) name, as their steps are now")


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers", "stowage(budget=None, baseline=None, steps=4, seed=1, **planning): what the test's step may take, "
        "a size, a share of what it takes without a plan, or bytes; the file that says what the plain step took; "
        "planned steps; the seed of torch's generator; what stowage.plan() takes besides")


class StowageStep:
    """What the fixture gives: call it with a step."""

    def __init__(self, marked: dict[str, Any], folder: Path, update: bool) -> None:
        """Not for users: see the fixture stowage_step."""
        self._marked = marked
        self._folder = folder
        self._update = update

    def __call__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None,
                 step: Callable[[int], Any]) -> CheckedStep:
        """Records, plans and runs the step, and fails the test where it is not as its marker says.

        Args:
            model: It is trained twice from where it is; the second time's parameters stay.
            optimizer: Its own.
            step: One whole step, of its number alone, from 0 on; what it returns (the loss) is compared.
        """
        from ._errors import Error
        from ._step_check import check_step

        planning = {key: value for key, value in self._marked.items() if key not in _ARGUMENTS}
        try:
            checked = check_step(model, optimizer, step, self._marked.get("budget"), self._marked.get("steps", 4),
                                 self._marked.get("seed", 1), planning)
        except Error as error:
            pytest.fail(f"stowage: {error}", pytrace=False)
        if checked.difference is not None:
            pytest.fail(f"stowage: under the plan {checked.difference}", pytrace=False)
        if checked.over_budget is not None:
            pytest.fail(f"stowage: {checked.over_budget}", pytrace=False)
        if "baseline" in self._marked:
            self._compare(checked)
        return checked

    def _compare(self, checked: CheckedStep) -> None:
        from ._baseline import Baseline
        from ._errors import BadInput

        name = self._marked["baseline"]
        file = self._folder / name
        now = Baseline.of(checked.plain_trace, self._marked.get("seed", 1))
        if not file.exists():
            if not self._update:
                pytest.fail(f"stowage: there is no baseline {name}; --stowage-update-baseline writes it",
                            pytrace=False)
            now.save(file)
            return
        try:
            baseline = Baseline.load(file)
        except BadInput as error:
            pytest.fail(f"stowage: {error}", pytrace=False)
        another = baseline.another_step(now)
        if another is not None:
            pytest.fail(f"stowage: {name}: {another}", pytrace=False)
        if self._update:
            now.save(file)
            return
        found = baseline.incomparable(now) or baseline.more_in(now)
        if found is not None:
            pytest.fail(f"stowage: {name}: {found}", pytrace=False)


@pytest.fixture
def stowage_step(request: pytest.FixtureRequest) -> StowageStep:
    """Checks a training step against its test's marker: see StowageStep.__call__()."""
    marker = request.node.get_closest_marker("stowage")
    marked = dict(marker.kwargs) if marker is not None else {}
    if marker is not None and marker.args:
        pytest.fail("stowage: the marker takes named arguments alone, such as budget=\"60%\"", pytrace=False)
    if not {"budget", "baseline"} & marked.keys():
        pytest.fail("stowage: nothing says what the step may take: @pytest.mark.stowage(budget=.., baseline=..)",
                    pytrace=False)
    return StowageStep(marked, request.node.path.parent, request.config.getoption("--stowage-update-baseline"))
