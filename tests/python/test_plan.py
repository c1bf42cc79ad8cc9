"""stowage.Plan: a plan file as a value."""

import copy
import json
import pickle

import pytest
import stowage


@pytest.fixture(scope="module")
def plan(gpt2):
    return stowage.plan(gpt2, "60%").plan


def test_is_the_same_as_text_and_as_a_dictionary(plan):
    assert stowage.Plan.from_json(plan.to_json()) == plan
    assert stowage.Plan.from_dict(plan.to_dict()) == plan
    assert stowage.Plan.from_dict(plan.to_dict()).to_json() == plan.to_json()
    assert str(plan) == plan.to_json().decode()
    assert pickle.loads(pickle.dumps(plan)) == plan == copy.deepcopy(plan)
    assert len({plan, stowage.Plan.from_json(plan.to_json())}) == 1
    assert plan != stowage.Plan.from_dict({**plan.to_dict(), "saved": []})


def test_says_who_made_it_and_what_was_predicted(plan):
    assert plan.policy == "auto"
    assert plan.placement == "caching"
    assert plan.predicted["peak_active_bytes"] <= plan.to_dict()["budget"]["device_bytes"]
    assert "auto" in repr(plan)


def test_saves_and_names_the_traces_file(gpt2, tmp_path):
    trace = stowage.Trace.from_json(gpt2.to_json())
    (tmp_path / "traces").mkdir()
    (tmp_path / "plans").mkdir()
    trace.save(tmp_path / "traces" / "t.json.gz")
    stowage.plan(trace, "60%").plan.save(tmp_path / "plans" / "p.json")
    written = json.loads((tmp_path / "plans" / "p.json").read_text())
    assert written["for"]["trace_file"] == "../traces/t.json.gz"
    again = stowage.Plan.load(tmp_path / "plans" / "p.json")
    assert again.to_dict() == written
    again.save(tmp_path / "q.json")  # in another folder
    assert json.loads((tmp_path / "q.json").read_text())["for"]["trace_file"] == "traces/t.json.gz"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plans", "q.json", "traces"]


def test_a_failed_save_leaves_nothing(plan, tmp_path):
    with pytest.raises(FileNotFoundError):
        plan.save(tmp_path / "none" / "p.json")
    (tmp_path / "p.json").mkdir()
    with pytest.raises(OSError):
        plan.save(tmp_path / "p.json")
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_typos_are_not_silent(plan, tmp_path):
    with pytest.raises(stowage.BadInput) as bad:
        stowage.Plan.from_dict({**plan.to_dict(), "savd": []})
    assert "saved" in bad.value.hint
    (tmp_path / "p.json").write_text("[")
    with pytest.raises(stowage.BadInput, match="p.json"):
        stowage.Plan.load(tmp_path / "p.json")


def test_another_traces_plan_is_refused(plan, sample):
    with pytest.raises(stowage.BadInput, match="model"):
        stowage.simulate(sample("mlp-l6-fp32-cpu"), plan)
