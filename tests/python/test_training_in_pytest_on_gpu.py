"""The pytest plugin on a GPU: what the card gives away, and baselines of its own."""

import json
import re

import pytest
import torch
from pytest_case import run_tests

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

ON_GPU = """
torch.use_deterministic_algorithms(True)

def step_on_gpu(model, optimizer, size=2048):
    def step(k):
        x, y = batch(k, size, 256)
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step

def on_gpu(size=2048):
    torch.manual_seed(0)
    model = Net(width=256, blocks=6).cuda()
    optimizer = adamw(model.parameters())
    return model, optimizer, step_on_gpu(model, optimizer, size)
"""


def test_a_budget_is_of_the_card_and_holds(tmp_path):
    results = run_tests(tmp_path, ON_GPU + """
held = torch.zeros(3_000_000, device="cuda")  # the process's own

@pytest.mark.stowage(budget="60%", steps=3)
def test_within(stowage_step):
    checked = stowage_step(*on_gpu())
    outcome = checked.outcome
    assert outcome.budget_on == "reserved"
    assert len(checked.reports) == 3 and all(report.on_plan for report in checked.reports)
    assert max(report.peak_reserved_bytes for report in checked.reports) <= checked.budget_bytes
    assert checked.budget_bytes < outcome.resident["peak_reserved_bytes"]
    assert {report.peak_requested_bytes for report in checked.reports} == {outcome.predicted["peak_requested_bytes"]}

@pytest.mark.stowage(budget="1%")
def test_infeasible(stowage_step):
    stowage_step(*on_gpu())

@pytest.mark.stowage(budget="60%")
def test_other_results(stowage_step):
    model, optimizer, step = on_gpu()
    seen = set()
    def other(k):
        loss = step(k)
        again = k in seen
        seen.add(k)
        return loss * 2 if again and k == 13 else loss
    stowage_step(model, optimizer, other)
""")
    assert results["test_within"] == ("PASSED", "")
    assert results["test_infeasible"][0] == "FAILED"
    assert re.search(r"stowage: no plan keeps the budget of [\d,]+ bytes", results["test_infeasible"][1])
    assert results["test_other_results"][0] == "FAILED"
    assert re.search(r"stowage: under the plan step 13 gives \d\.\d+, the plain one \d\.\d+$",
                     results["test_other_results"][1])


def test_a_baseline_is_of_its_gpu(tmp_path):
    step = """
@pytest.mark.stowage(baseline="net.json")
def test_memory(stowage_step):
    stowage_step(*on_gpu())
"""
    assert run_tests(tmp_path, ON_GPU + step, "--stowage-update-baseline")["test_memory"] == ("PASSED", "")
    written = (tmp_path / "net.json").read_bytes()
    content = json.loads(written)
    assert content["made_with"]["device"] == "cuda"
    assert content["made_with"]["device_name"] == torch.cuda.get_device_name()
    requested, active = (content["measured"][f"peak_{which}_bytes"] for which in ("requested", "active"))
    assert requested < active < requested * 1.01
    assert "workspace" in {row["class"] for row in content["at_peak"]["storages"]}
    assert run_tests(tmp_path, ON_GPU + step)["test_memory"] == ("PASSED", "")
    # What the process has besides is no part of it.
    held = "\nheld = torch.zeros(3_000_000, device='cuda')\n"
    assert run_tests(tmp_path, ON_GPU + held + step, "--stowage-update-baseline")["test_memory"] == ("PASSED", "")
    assert (tmp_path / "net.json").read_bytes() == written
    outcome, line = run_tests(tmp_path, ON_GPU + step.replace("on_gpu()", "on_gpu(2560)"))["test_memory"]
    assert outcome == "FAILED" and "more than the baseline's" in line
