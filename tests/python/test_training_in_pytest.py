"""The pytest plugin: what passes, what fails with which line, and baselines as `stowage check` has them."""

import functools
import json
import pathlib
import re
import subprocess

import pytest
import stowage
from pytest_case import run_tests
from stowage._baseline import Baseline
from stowage._errors import BadInput

PROJECT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def run(tmp_path):
    """run_tests() in this test's folder."""
    return functools.partial(run_tests, tmp_path)


def test_a_step_within_its_budget_passes_and_others_fail_with_one_line(run):
    results = run("""
@pytest.mark.stowage(budget="60%", steps=2)
def test_within(stowage_step):
    model, optimizer = parts()
    checked = stowage_step(model, optimizer, step_of(model, optimizer))
    assert checked.trace.peaks["requested_bytes"] > checked.budget_bytes
    assert [report.on_plan for report in checked.reports] == [True, True]
    assert max(report.peak_requested_bytes for report in checked.reports) <= checked.budget_bytes
    assert checked.outcome.predicted["peak_requested_bytes"] == checked.reports[0].peak_requested_bytes

@pytest.mark.stowage(budget="1%")
def test_infeasible(stowage_step):
    model, optimizer = parts()
    stowage_step(model, optimizer, step_of(model, optimizer))

@pytest.mark.stowage(budget="60%")
def test_other_results(stowage_step):
    model, optimizer = parts()
    step, calls = step_of(model, optimizer), []
    def other(k):
        calls.append(k)
        loss = step(k)
        return loss * 2 if len(calls) == 14 else loss
    stowage_step(model, optimizer, other)

@pytest.mark.stowage(budget="60%")
def test_other_parameters(stowage_step):
    model, optimizer = parts()
    step, calls = step_of(model, optimizer), []
    def other(k):
        calls.append(k)
        loss = step(k)
        if len(calls) == 16:
            with torch.no_grad():
                model.head.bias[0] = 7.0
        return loss
    stowage_step(model, optimizer, other)

@pytest.mark.stowage(budget="60%")
def test_unlike_steps(stowage_step):
    model, optimizer = parts()
    stowage_step(model, optimizer, lambda k: step_of(model, optimizer, 512 + k)(k))

def test_unmarked(stowage_step):
    pass

@pytest.mark.stowage(budget="60%")
def test_raises(stowage_step):
    stowage_step(*parts(), lambda k: 1 // 0)
""")
    assert results.pop("test_within")[0] == "PASSED"
    lines = {name: line for name, (outcome, line) in results.items() if outcome in ("FAILED", "ERROR")}
    assert re.search(r"stowage: no plan keeps the budget of [\d,]+ bytes: .*floor", lines["test_infeasible"])
    assert re.search(r"stowage: under the plan step 13 gives \d\.\d+, the plain one \d", lines["test_other_results"])
    assert "stowage: under the plan head.bias is another one behind 16 steps" in lines["test_other_parameters"]
    assert "stowage: " in lines["test_unlike_steps"] and "peaked at" in lines["test_unlike_steps"]
    assert "nothing says what the step may take" in lines["test_unmarked"]
    assert "ZeroDivisionError" in lines["test_raises"]


STEP = """
@pytest.mark.stowage(baseline="memory/net.json")
def test_memory(stowage_step):
    model, optimizer = parts()
    stowage_step(model, optimizer, step_of(model, optimizer))
"""
UPDATE = "--stowage-update-baseline"


def test_a_baseline_is_written_kept_and_outgrown(run, tmp_path):
    file = tmp_path / "memory/net.json"
    outcome, line = run(STEP)["test_memory"]
    assert outcome == "FAILED" and "there is no baseline memory/net.json" in line
    assert run(STEP, UPDATE)["test_memory"][0] == "PASSED"
    written = file.read_bytes()
    assert run(STEP)["test_memory"][0] == "PASSED"
    # Tensors of the process's own are no part of the step.
    held = STEP.replace("    stowage_step", "    held = stowage_step and __import__('stowage._torch')._torch.device('cpu') "
                        "or torch.zeros(100_000)\n    stowage_step")
    assert run(held, UPDATE)["test_memory"][0] == "PASSED"
    assert file.read_bytes() == written

    larger = STEP.replace("step_of(model, optimizer)", "step_of(model, optimizer, 640)")
    outcome, line = run(larger)["test_memory"]
    before = json.loads(written)["measured"]["peak_requested_bytes"]
    assert outcome == "FAILED"
    assert re.search(rf"memory/net.json: [\d,]+ bytes at the peak are [\d,]+ more than the baseline's {before:,} "
                     r"\(blocks\.\d: [\d,]+ bytes more, activation made by aten::\w+;", line), line
    assert file.read_bytes() == written
    assert run(larger, UPDATE)["test_memory"][0] == "PASSED"
    assert json.loads(file.read_bytes())["measured"]["peak_requested_bytes"] > before
    assert run(STEP)["test_memory"][0] == "PASSED"  # less than the baseline

    sgd = STEP.replace("= parts()", "= parts(); optimizer = torch.optim.SGD(model.parameters(), lr=0.1)")
    for options in ((), (UPDATE,)):
        outcome, line = run(sgd, *options)["test_memory"]
        assert outcome == "FAILED" and "another step: its optimizer is python:adamw, this one's is python:sgd" in line
    content = json.loads(file.read_bytes())
    content["made_with"]["libtorch"] = "1.0"
    file.write_text(json.dumps(content))
    outcome, line = run(STEP)["test_memory"]
    assert outcome == "FAILED" and "not comparable: its libtorch is 1.0, this one's is" in line


def test_the_documents_example_passes(run):
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "docs/python.md").read_text(), re.DOTALL)
    (example,) = [block for block in blocks if "stowage_step" in block]
    for options in ((UPDATE,), ()):
        assert run(example, *options)["test_memory"] == ("PASSED", "")


def test_the_files_format_is_the_commands():
    golden = PROJECT / "tests/golden/baseline.json"
    assert Baseline.load(golden).to_json() == golden.read_text()


def test_of_a_recorded_step_it_is_the_commands_own_baseline(program, tmp_path):
    step = ["gpt2:layers=2,width=64,heads=2,vocab=256", "--batch", "4", "--seq", "32", "--device", "cpu", "--optimizer",
            "adamw", "--threads", "1"]
    trace, baseline = tmp_path / "t.json.gz", tmp_path / "b.json"
    subprocess.run([program, "profile", *step, "-q", "-o", str(trace)], check=True)
    subprocess.run([program, "check", "--model", *step, "--baseline", str(baseline), "--update-baseline"], check=True)
    assert Baseline.of(stowage.Trace.load(trace), seed=1).to_json() == baseline.read_text()


def test_a_recordings_baseline_is_what_the_step_takes(sample):
    trace = sample("gpt2-l6-fp32-cpu")
    baseline = Baseline.of(trace, 1)
    at_peak = baseline.content["at_peak"]
    assert baseline.peak == at_peak["requested_bytes"] == trace.peaks["requested_bytes"]
    assert at_peak["op"] == stowage.inspect(trace).moment["op_name"]
    classes = [row["class"] for row in at_peak["storages"]]
    assert classes.index("parameter") < classes.index("activation")
    assert baseline.more_in(baseline) is None and baseline.incomparable(baseline) is None


def test_of_a_gpu_it_is_what_the_allocator_rounds(on_gpu):
    measured = Baseline.of(on_gpu, 1).content["measured"]
    assert measured["peak_requested_bytes"] == on_gpu.peaks["requested_bytes"]
    assert measured["peak_requested_bytes"] < measured["peak_active_bytes"] <= on_gpu.peaks["active_bytes"]
    assert measured["peak_active_bytes"] % 512 == 0
    assert Baseline.of(on_gpu, 1).content["made_with"]["device"] == "cuda"


@pytest.mark.parametrize("text, said", [("{", "no JSON"), ('{"schema": "stowage-plan/1"}', "no baseline"),
                                        ('{"schema": "stowage-baseline/1", "step": {}}', "missing")])
def test_what_is_no_baseline_is_said(tmp_path, text, said):
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(BadInput, match=said):
        Baseline.load(tmp_path / "b.json")
