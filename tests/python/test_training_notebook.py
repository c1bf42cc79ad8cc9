"""The notebook of examples/python, its cells run in order in one namespace."""

import ast
import json
import pathlib

import pytest
import stowage
import torch

NOTEBOOK = pathlib.Path(__file__).parents[2] / "examples/python/plan_a_step.ipynb"
# What a notebook shows a value with, best first.
PICTURES = ("_repr_html_", "_repr_svg_")


def cells():
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


def run_cell(source, namespace):
    """Runs a cell; returns the value of the expression that it ends with, or None."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), namespace)
    return None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), namespace)


@pytest.fixture(scope="module")
def executed():
    """The namespace behind the last cell, and what the cells ended with."""
    before = torch.get_num_threads()
    namespace = {"__name__": "__main__"}
    shown = [run_cell("".join(cell["source"]), namespace) for cell in cells() if cell["cell_type"] == "code"]
    yield namespace, shown
    torch.set_num_threads(before)


def test_it_is_stored_without_outputs():
    for cell in cells():
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, cell["id"]
    ahead = [a["cell_type"] for a, b in zip(cells(), cells()[1:]) if b["cell_type"] == "code"]
    assert set(ahead[1:]) == {"markdown"}  # a sentence for each


def test_training_under_the_plan_is_the_plain_training(executed):
    found, shown = executed
    assert found["same"] is True and shown[-1] is True
    assert len(found["plain_losses"]) == found["STEPS"]
    assert len(found["peaks"]) >= found["STEPS"] - 1
    assert found["peaks"][1:] == [found["predicted"]] * (len(found["peaks"]) - 1)
    assert found["predicted"] < found["trace"].peaks["requested_bytes"]
    assert found["planned"].last_report().on_plan


def test_the_budgets_are_kept_or_said_to_be_too_small(executed):
    found, _ = executed
    for budget in ("90%", "70%", "50%"):
        outcome = found["outcomes"][budget]
        assert outcome.peak_bytes <= outcome.budget_bytes, budget
    assert found["outcomes"]["5%"].status == "infeasible"
    assert found["frontier"].column("status")[0] == "planned"
    assert [row["budget"] for row in found["frontier"]] == list(found["outcomes"])
    assert max(found["curve"]["requested_bytes"]) == found["trace"].peaks["requested_bytes"]


def test_what_cells_end_with_shows_itself(executed):
    _, shown = executed
    pictured = [value for value in shown if any(hasattr(value, name) for name in PICTURES)]
    assert [type(value) for value in pictured] == [stowage.Trace, stowage.PlanOutcome, stowage.Table, stowage.Table,
                                                   stowage.Diff]
    for value in pictured:
        text = value._repr_html_()
        assert text.startswith("<") and text.endswith(">"), type(value)
        assert ("<svg" in text) == isinstance(value, (stowage.Trace, stowage.PlanOutcome)), type(value)
        if hasattr(value, "_repr_svg_"):
            assert value._repr_svg_().rstrip().endswith("</svg>"), type(value)
    assert sum(hasattr(value, "_repr_svg_") for value in pictured) == 1  # the trace
