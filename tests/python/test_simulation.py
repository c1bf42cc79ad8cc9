"""stowage.simulate(): figures, curve, exports."""

import csv
import gzip
import io
import json
import pickle
import xml.etree.ElementTree as xml

import pytest
import stowage


@pytest.fixture(scope="module")
def simulation(on_gpu):
    return stowage.simulate(on_gpu, "save_on_cpu")


def test_without_a_plan_nothing_moves(gpt2):
    step = stowage.simulate(gpt2)
    assert step.peak_requested_bytes == gpt2.peaks["requested_bytes"]
    assert step.peak_reserved_bytes is None
    assert (step.host_bytes, step.stall_ns) == (0, 0)
    assert step.feasible


def test_figures_belong_together(simulation, on_gpu):
    assert simulation.peak_reserved_bytes >= simulation.peak_active_bytes >= simulation.peak_requested_bytes
    assert simulation.host_bytes > 0
    assert sum(simulation.stalls.column("duration_ns")) == simulation.stall_ns > 0
    assert simulation.step_ns > simulation.resident["step_ns"]
    assert simulation.resident["peak_requested_bytes"] == stowage.simulate(on_gpu).peak_requested_bytes
    assert simulation.trace is on_gpu
    assert simulation.timeline()["step_ns"] == simulation.step_ns


def test_the_curve_has_the_peak(simulation):
    curve = simulation.curve()
    assert max(curve["requested_bytes"]) == simulation.peak_requested_bytes
    assert curve["time_ns"] == sorted(curve["time_ns"])
    assert {len(column) for column in curve.values()} == {len(curve["time_ns"])}


def test_takes_plans_in_every_form(gpt2, tmp_path):
    outcome = stowage.plan(gpt2, "60%")
    outcome.plan.save(tmp_path / "p.json")
    for plan in (outcome, outcome.plan, outcome.plan.to_dict(), tmp_path / "p.json"):
        step = stowage.simulate(gpt2, plan)
        assert step.step_ns == outcome.step_ns
        assert step.peak_active_bytes == outcome.peak_bytes
        assert step.feasible
    assert not stowage.simulate(gpt2, {**outcome.plan.to_dict(), "saved": []}).feasible
    with pytest.raises(stowage.UsageError, match="torchtune"):
        stowage.simulate(gpt2, "torchtun")
    with pytest.raises(stowage.BadInput) as bad:
        stowage.simulate(gpt2, {"schema": "stowage-plan/1", "saved": [{"site": "layrs.0.mlp#1", "do": "offload"}]})
    assert bad.value.pointer == "/saved/0/site"


def test_another_link(on_gpu, simulation):
    slow = stowage.simulate(on_gpu, "save_on_cpu", settings={"link.d2h_gbps": 1, "link.h2d_gbps": 1})
    assert slow.peak_requested_bytes == simulation.peak_requested_bytes
    assert slow.step_ns > simulation.step_ns


def test_placement(on_gpu):
    planned = stowage.simulate(on_gpu, "thunder")
    caching = stowage.simulate(on_gpu, "thunder", placement="caching")
    assert planned.plan.placement == "planned"
    assert caching.plan.placement == "caching"
    assert planned.peak_requested_bytes == caching.peak_requested_bytes


@pytest.mark.parametrize("of", ["recorded", "planned"])
def test_exports(of, on_gpu, simulation, tmp_path):
    step = on_gpu if of == "recorded" else simulation
    names = {event["args"]["name"] for event in json.loads(step.chrome_trace())["traceEvents"]
             if event["name"] == "process_name"}
    assert len(names) == (1 if of == "recorded" else 2)
    assert xml.fromstring(step.svg()).tag.endswith("svg")
    for table in ("memory", "storages", "stalls", "timeline"):
        rows = list(csv.reader(io.StringIO(step.csv(table), newline="")))
        assert len({len(row) for row in rows}) == 1
    assert set(pickle.loads(step.memory_viz())) == {"segments", "device_traces"}
    step.export(tmp_path / "s.json.gz")
    assert gzip.decompress((tmp_path / "s.json.gz").read_bytes()).decode() == step.chrome_trace()
    step.export(tmp_path / "s.csv", table="storages")
    assert (tmp_path / "s.csv").read_bytes().decode() == step.csv("storages")
    with pytest.raises(ValueError, match="no format"):
        step.export(tmp_path / "s.png")
    with pytest.raises(stowage.UsageError, match="table"):
        step.csv("memries")


def test_shows_itself(simulation):
    assert "peak" in repr(simulation)
    assert simulation.text() == str(simulation)
    assert "Stalls" in simulation.text()
    assert xml.fromstring(simulation._repr_svg_()).tag.endswith("svg")
    page = simulation._repr_html_()
    assert "<?xml" not in page
    assert "<svg" in page


def test_foreign_names_are_harmless(sample):
    """A name in a trace moves no cursor in a text, and is no element of a page."""
    text = sample("mlp-l6-fp32-cpu").to_json()
    evil = text.replace(b'"mlp:', b'"\\u001b[2J<script>mlp:', 1)
    assert evil != text
    step = stowage.simulate(stowage.Trace.from_json(evil), "save_on_cpu")
    assert "\x1b" not in step.text()
    assert "<script>" in step.text()
    assert "<script>" not in step._repr_html_()
    assert "\x1b" not in stowage.inspect(step.trace).text()
