"""stowage.inspect(), stowage.diff() and their tables."""

import json
import subprocess

import pandas
import pytest
import stowage


def test_inspects_the_peak(gpt2):
    found = stowage.inspect(gpt2)
    assert found.moment["requested_bytes"] == gpt2.peaks["requested_bytes"]
    assert sum(found.storages.column("bytes")) == gpt2.peaks["requested_bytes"]
    assert found.storages.column("bytes") == sorted(found.storages.column("bytes"), reverse=True)
    assert max(found.phases.column("peak_requested_bytes")) == gpt2.peaks["requested_bytes"]
    assert found.run["step_ns"] == gpt2.step_ns
    assert found.run["ops"] == gpt2.ops
    assert found.saved["alive_bytes"] <= found.saved["bytes"]
    assert len(found.layers) > 6


def test_is_what_the_command_prints(gpt2, program):
    arguments = [program, "inspect", "--json", "--top", "1000000", "--by", "op", gpt2.path]
    answer = json.loads(subprocess.run(arguments, capture_output=True, check=True, text=True).stdout)
    assert stowage.inspect(gpt2, by="op").to_dict() == answer


def test_inspection_says_what_bytes_are_there_for(gpt2):
    found = stowage.inspect(gpt2)
    by_use = {f"{use}_bytes": 0 for use in ("dead", "saved", "idle", "needed")}
    for row in found.storages:
        by_use[f"{row['use']}_bytes"] += row["bytes"]
    assert found.moment["by_use"] == by_use
    assert by_use["saved_bytes"] > by_use["needed_bytes"] > 0


def test_inspects_another_moment(gpt2):
    op = stowage.inspect(gpt2, at="aten::_softmax_backward_data", by="class")
    assert op.moment["op_name"] == "aten::_softmax_backward_data"
    assert op.moment["requested_bytes"] < gpt2.peaks["requested_bytes"]
    assert stowage.inspect(gpt2, at=op.moment["op"]).moment["op_name"] == "aten::_softmax_backward_data"
    with pytest.raises(stowage.UsageError, match="softmax"):
        stowage.inspect(gpt2, at="aten::_softmax_backward_dat")
    with pytest.raises(stowage.UsageError, match="grouping"):
        stowage.inspect(gpt2, by="lyer")


def test_text_has_as_many_rows_as_asked(gpt2):
    found = stowage.inspect(gpt2)
    assert len(found.text(top=3).splitlines()) < len(found.text(top=8).splitlines())
    with pytest.raises(stowage.UsageError):
        found.text(top=0)


def test_diff_of_the_same(gpt2):
    same = stowage.diff(gpt2, gpt2)
    assert same.kind == "trace"
    assert same.equal
    assert same.changes == []


def test_diff_of_plans_in_every_form(gpt2, tmp_path):
    a, b = stowage.plan(gpt2, "60%").plan, stowage.plan(gpt2, "70%").plan
    a.save(tmp_path / "a.json")
    forms = (a, a.to_dict(), tmp_path / "a.json", str(tmp_path / "a.json"))
    changes = [stowage.diff(first, b).changes for first in forms]
    budget = next(row for row in changes[0] if row["name"] == "budget.device_bytes")
    assert budget["difference"] == gpt2.peaks["active_bytes"] * 70 // 100 - gpt2.peaks["active_bytes"] * 60 // 100
    for other in changes[1:]:
        assert [row for row in other if row["name"] != "for.trace_file"] == changes[0]


def test_diff_of_answers(gpt2):
    before, after = stowage.simulate(gpt2), stowage.simulate(gpt2, "save_on_cpu")
    compared = stowage.diff(before, after)
    assert compared.kind == "simulate"
    step = next(row for row in compared.changes if row["name"] == "step_ns")
    assert (step["before"], step["after"]) == (before.step_ns, after.step_ns)
    assert "step_ns" in compared.text()
    assert "before -&gt; after" in compared._repr_html_()


def test_diff_of_two_kinds(gpt2):
    with pytest.raises(stowage.UsageError):
        stowage.diff(gpt2, stowage.plan(gpt2, "60%").plan)


def test_tables(gpt2):
    table = stowage.inspect(gpt2).layers
    assert table.column("name") == [row["name"] for row in table]
    page = table._repr_html_()
    assert page.count("<tr>") == 1 + min(len(table), 20)
    assert stowage.Table()._repr_html_() == "<p>no rows</p>"
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["name"]) == table.column("name")
