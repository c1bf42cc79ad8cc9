"""stowage.plan(): budgets, policies, progress, how a search ends."""

import functools
import json
import re
import signal
import subprocess
import threading

import pytest
import stowage
from stowage._training import _told


def test_plans_within_a_budget(gpt2):
    outcome = stowage.plan(gpt2, "60%")
    assert outcome.status == "planned"
    assert outcome.feasible
    assert outcome.budget_bytes == gpt2.peaks["active_bytes"] * 60 // 100
    assert outcome.budget_on == "active"
    assert outcome.peak_bytes == outcome.predicted["peak_active_bytes"] <= outcome.budget_bytes
    assert outcome.resident["peak_active_bytes"] == gpt2.peaks["active_bytes"]
    assert outcome.bound_ns <= outcome.step_ns
    assert outcome.gap == pytest.approx((outcome.step_ns - outcome.bound_ns) / outcome.bound_ns, abs=1e-5)
    assert outcome.floor["bytes"] <= outcome.peak_bytes
    assert outcome.kept_from_bytes <= outcome.budget_bytes
    assert outcome.plan_or_raise() == outcome.plan
    assert outcome.error is None
    assert "Within the budget" in outcome.text()
    assert "Search:" in outcome.text(explain=True)
    assert "<svg" in outcome._repr_html_()
    assert outcome.simulation.step_ns == outcome.step_ns


def test_is_what_the_command_answers(gpt2, program, tmp_path):
    gpt2_file = tmp_path / "t.json.gz"
    stowage.Trace.from_json(gpt2.to_json()).save(gpt2_file)
    arguments = [program, "plan", "--json", str(gpt2_file), "--budget", "70%", "--deny", "recompute"]
    answer = json.loads(subprocess.run(arguments, capture_output=True, check=True, text=True).stdout)
    outcome = stowage.plan(stowage.Trace.load(gpt2_file), "70%", deny="recompute").to_dict()
    assert "created" not in answer["plan"]["made_by"]  # the same input, the same plan
    assert answer.pop("given_at") and outcome.pop("given_at") is None
    for each in (answer, outcome):
        each["plan"]["for"].pop("trace_file", None)
    assert outcome == answer


@pytest.mark.parametrize("budget", ["96580000", 96_580_000, "96.58MB", "96580 kB"])
def test_reads_sizes(gpt2, budget):
    assert stowage.plan(gpt2, budget).budget_bytes == 96_580_000


def test_a_gpus_budget_is_on_what_is_reserved(on_gpu):
    outcome = stowage.plan(on_gpu, "80%")
    assert outcome.budget_on == "reserved"
    assert outcome.plan.placement == "planned"
    assert outcome.peak_bytes <= outcome.budget_bytes
    caching = stowage.plan(on_gpu, "80%", placement="caching")
    assert caching.budget_on == "active"
    assert caching.plan.placement == "caching"
    fit = stowage.plan(on_gpu, fit="24GiB")
    assert fit.budget_on == "reserved"
    assert fit.budget_bytes < 24 * 2**30
    assert fit.status == "fits_already"


def test_that_there_is_no_plan_is_a_value(gpt2):
    outcome = stowage.plan(gpt2, "5%")
    assert outcome.status == "infeasible"
    assert not outcome.feasible
    assert outcome.floor["bytes"] > outcome.budget_bytes
    assert outcome.plan.predicted["peak_active_bytes"] == outcome.kept_from_bytes  # the tightest one known
    with pytest.raises(stowage.Infeasible, match="the floor is") as raised:
        outcome.plan_or_raise()
    assert isinstance(raised.value, RuntimeError)
    assert str(outcome.kept_from_bytes) in raised.value.hint
    assert "Infeasible" in outcome.text()


def test_fits_already(gpt2):
    outcome = stowage.plan(gpt2, "100%")
    assert outcome.status == "fits_already"
    assert outcome.step_ns == outcome.resident["step_ns"]


def test_pins_stay_while_the_rest_is_searched(gpt2):
    free = stowage.plan(gpt2, "60%")
    assert free.pinned == 0
    leaving = [rule["site"] for rule in free.plan.to_dict()["saved"] if rule["do"] == "offload"]
    assert leaving
    stays = stowage.plan(gpt2, "60%", pins=f"{leaving[0]}=keep")
    assert stays.feasible and stays.pinned > 0
    assert leaving[0] not in [rule["site"] for rule in stays.plan.to_dict()["saved"] if rule["do"] == "offload"]
    assert stays.step_ns >= stays.bound_ns
    both = stowage.plan(gpt2, "60%", pins=[f"{leaving[0]}=keep", f"{leaving[-1]}=offload"])
    assert both.pinned > stays.pinned
    same = stowage.plan(gpt2, "60%", pins=free.plan)
    assert same.plan.to_dict()["saved"] == free.plan.to_dict()["saved"]
    with pytest.raises(stowage.UsageError, match="nothing#0"):
        stowage.plan(gpt2, "60%", pins="nothing#0=keep")
    with pytest.raises(stowage.UsageError, match="pins: .*fly"):
        stowage.plan(gpt2, "60%", pins=[f"{leaving[0]}=fly"])
    with pytest.raises(stowage.UsageError, match="pins say"):
        stowage.plan(gpt2, policy="thunder", pins=free.plan)
    with pytest.raises(stowage.UsageError, match="pins say"):
        stowage.plan(gpt2, "60%", allow=lambda saved: True, pins=free.plan)


def test_allow_and_deny(gpt2):
    only = stowage.plan(gpt2, "60%", allow=["offload"])
    assert only.to_dict() == stowage.plan(gpt2, "60%", allow="offload").to_dict() | {"plan": only.to_dict()["plan"]}
    assert "recompute" not in only.plan.to_dict()
    assert all(rule["do"] != "recompute" for rule in only.plan.to_dict()["saved"])
    nothing = stowage.plan(gpt2, "60%", allow=[])
    assert not nothing.feasible
    with pytest.raises(stowage.UsageError, match="allow: 'ofload'"):
        stowage.plan(gpt2, "60%", allow="ofload")
    with pytest.raises(stowage.UsageError):
        stowage.plan(gpt2, "60%", allow="offload", deny="recompute")
    with pytest.raises(stowage.UsageError):
        stowage.plan(gpt2, policy="thunder", allow="offload")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "needs a budget"),
        ({"budget": "lots"}, "budget: "),
        ({"budget": 0}, "budget: "),
        ({"budget": "60%", "budget_on": "actve"}, "did you mean active"),
        ({"budget": "60%", "budget_on": "reserved"}, "no such counter"),
        ({"budget": "60%", "placement": "nowhere"}, "unknown memory"),
        ({"budget": "60%", "policy": "torchtun"}, "torchtune"),
        ({"budget": "60%", "host_budget": "60%"}, "host_budget: "),
        ({"fit": "24GiB"}, "fit: "),
        ({"fit": "24GiB", "budget": "60%"}, "fit bounds"),
        ({"budget": "60%", "time_limit": 0}, "no time"),
        ({"budget": "60%", "time_limit": float("nan")}, "no time"),
    ],
)
def test_wrong_arguments_are_said(gpt2, arguments, message):
    with pytest.raises(stowage.UsageError, match=message) as wrong:
        stowage.plan(gpt2, **arguments)
    assert isinstance(wrong.value, ValueError)


def test_hints_name_arguments(gpt2):
    outcome = stowage.plan(gpt2, "60%", policy="resident")
    assert outcome.status == "policy_over_budget"
    assert "--" not in outcome.error.hint
    assert "policy auto" in outcome.error.hint


def test_a_policy_by_name(gpt2):
    spec = stowage.policy("torchtune", stash=2)
    assert spec == "torchtune:stash=2"
    outcome = stowage.plan(gpt2, policy=spec)
    assert outcome.feasible
    assert outcome.budget_bytes is None
    assert outcome.plan.policy == spec
    with pytest.raises(stowage.UsageError, match="stsh"):
        stowage.policy("torchtune", stsh=2)
    with pytest.raises(stowage.UsageError, match="torchtun"):
        stowage.policy("torchtun")
    assert {"auto", "checkpoint", "torchtune"} <= set(stowage.policies().column("name"))


def test_a_policy_of_ones_own_decides_each_saved_tensor(gpt2):
    asked = []

    def large_ones_leave(saved):
        asked.append(saved)
        return "offload" if saved.bytes >= 4 << 20 else "keep"

    outcome = stowage.plan(gpt2, policy=large_ones_leave)
    assert outcome.plan.policy == "python:large_ones_leave"
    assert outcome.peak_bytes < gpt2.peaks["active_bytes"]
    rows = [row for row in gpt2.saved_tensors() if row["made_in_step"] and row["bytes"] > 0]
    assert [saved.site for saved in asked] == [row["site"] for row in rows]
    # What leaves is what was decided: each storage once.
    leaving = {saved.storage: saved.storage_bytes for saved in asked if saved.bytes >= 4 << 20}
    assert outcome.predicted["transfer_bytes"]["d2h"] == sum(leaving.values())
    assert stowage.simulate(gpt2, outcome.plan).to_dict()["step_ns"] == outcome.step_ns
    assert stowage.simulate(gpt2, large_ones_leave).peak_active_bytes == outcome.peak_bytes


def test_a_policy_of_ones_own_recomputes(sample):
    trace = sample("gpt2-l2-adamw-bf16-h100")
    assert {"aten::gelu", "aten::_softmax"} <= {
        row["made_by"] for row in trace.saved_tensors() if row["can_recompute"]}
    outcome = stowage.plan(trace, policy=lambda saved: "recompute" if saved.can_recompute else "keep")
    assert any(rule["do"] == "recompute" for rule in outcome.plan.to_dict()["saved"])
    assert outcome.peak_bytes < outcome.resident["peak_active_bytes"]
    assert outcome.step_ns > outcome.resident["step_ns"]
    with pytest.raises(stowage.BadInput, match="python:<lambda>: .* cannot be made again") as wrong:
        stowage.plan(trace, policy=lambda saved: "recompute")
    assert "offload" in wrong.value.hint


def test_a_policy_of_ones_own_that_keeps_all_is_resident(gpt2):
    outcome = stowage.plan(gpt2, policy=lambda saved: "keep")
    assert outcome.predicted == stowage.plan(gpt2, policy="resident").predicted


def test_a_policy_of_ones_own_against_a_budget(gpt2):
    over = stowage.plan(gpt2, "50%", policy=lambda saved: "keep")
    assert over.status == "policy_over_budget"
    within = stowage.plan(gpt2, "90%", policy=lambda saved: "offload")
    assert within.status == "planned"


def test_what_a_policy_of_ones_own_does_wrong_is_said(gpt2):
    with pytest.raises(stowage.UsageError, match="decides 'away' about"):
        stowage.plan(gpt2, policy=lambda saved: "away")
    with pytest.raises(stowage.UsageError, match="decides None"):
        stowage.plan(gpt2, policy=lambda saved: None)
    with pytest.raises(ZeroDivisionError):
        stowage.plan(gpt2, policy=lambda saved: 1 // 0)


def test_progress_is_told(sample):
    calls = []
    trace = sample("resnet50-fp32-h200")
    outcome = stowage.plan(trace, "70%", max_evaluations=300, progress=lambda *call: calls.append(call))
    assert calls
    assert all(0 <= done <= most for done, most, _ in calls)
    assert [done for done, _, _ in calls] == sorted(done for done, _, _ in calls)
    assert outcome.search["evaluations"] >= calls[-1][0]


def test_progress_that_raises_ends_the_search(sample):
    def progress(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        stowage.plan(sample("resnet50-fp32-h200"), "70%", progress=progress)


def test_ctrl_c_ends_the_search(sample):
    calls = []

    def progress(*_):
        calls.append(0)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        stowage.plan(sample("resnet50-fp32-h200"), "70%", progress=progress)
    assert len(calls) == 1


def test_signals_are_handled_while_the_search_runs(sample):
    """A handler of Python's runs once at most between two lines of Python; the third time is inside of plan()."""
    trace = sample("llama3-8b-l9-bf16-h200")
    calls = []

    def handler(*_):
        calls.append(0)
        if len(calls) == 3:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
            stowage.plan(trace, "60%")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_stopped_search_answers(sample):
    outcome = stowage.plan(sample("resnet50-fp32-h200"), "70%", time_limit=1e-6)
    assert outcome.search["stopped"]
    assert not stowage.plan(sample("mlp-l6-fp32-cpu"), "70%", time_limit=float("inf")).search["stopped"]


def test_other_threads_run_meanwhile(sample):
    """With the lock of the interpreter held, no other thread's Python would run between two lines of this one."""
    trace = sample("llama3-8b-l9-bf16-h200")
    counted = 0
    end = threading.Event()

    def count():
        nonlocal counted
        while not end.is_set():
            counted += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = counted
        stowage.plan(trace, "60%", max_evaluations=200)
        assert counted > before + 1000
    finally:
        end.set()
        thread.join()


def test_a_bar_where_tqdm_is(gpt2, monkeypatch):
    import sys
    import types

    bars = []

    class Bar:
        def __init__(self, **options):
            self.n, self.total, self.closed = 0, None, False
            bars.append(self)

        def set_postfix_str(self, text, refresh):
            assert text.startswith("best step ")

        def update(self, more):
            self.n += more

        def close(self):
            self.closed = True

    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    stowage.plan(gpt2, "60%", progress=True)
    assert bars[0].closed
    assert bars[0].n <= bars[0].total
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)  # not installed
    assert stowage.plan(gpt2, "60%", progress=True).feasible


def pattern(site):
    """The regular expression of a rule's site: "layers.[0-1].attn#[1,7-8]", "*"."""

    def numbers(found):
        ranges = [each.partition("-") for each in found[1].split(",")]
        all_of = [str(n) for low, _, high in ranges for n in range(int(low), int(high or low) + 1)]
        return "(?:" + "|".join(all_of) + ")"

    parts = re.split(r"(\[[^]]*\]|\*)", site)
    return "".join(".*" if part == "*" else re.sub(r"\[([^]]*)\]", numbers, part) if part.startswith("[") else re.escape(part)
                   for part in parts)


def moves(trace, plan):
    """What a plan does with each saved tensor, by site."""
    rules = [(re.compile(pattern(rule["site"])), rule["do"]) for rule in plan.to_dict()["saved"]]
    return {row["site"]: next(do for site, do in rules if site.fullmatch(row["site"])) for row in trace.saved_tensors()}


def large(saved):
    return saved.storage_bytes >= 1 << 20


def of_mlps(saved):
    return ".mlp" in saved.layer


@pytest.mark.parametrize("budget", ["90%", "80%"])
@pytest.mark.parametrize("of", [large, of_mlps], ids=lambda of: of.__name__)
def test_a_filter_says_which_saved_tensors_a_plan_may_decide_about(gpt2, of, budget):
    outcome = stowage.plan(gpt2, budget, allow=of)
    assert outcome.status == "planned" and outcome.peak_bytes <= outcome.budget_bytes
    rows = {row["site"]: stowage.SavedTensor(**row) for row in gpt2.saved_tensors()}
    # A rule may name parameters, too, of which it moves nothing.
    moved = [rows[site] for site, does in moves(gpt2, outcome.plan).items() if does != "keep" and rows[site].made_in_step]
    assert moved and all(map(of, moved))
    assert not {"parameters", "optimizer", "gradients"} & outcome.plan.to_dict().keys()
    assert outcome.pinned > 0 and outcome.bound_ns <= outcome.step_ns
    opposite = stowage.plan(gpt2, budget, deny=lambda saved: not of(saved))
    assert opposite.plan.to_dict()["saved"] == outcome.plan.to_dict()["saved"]


def test_a_filtered_plan_is_searched_for(sample):
    """On a GPU with a slow link: what is made again, and which of the large ones leave, is worth a search."""
    trace = sample("gpt2-fp32-h200")
    filtered = stowage.plan(trace, "70%", allow=lambda saved: saved.made_by != "aten::gelu")
    every = stowage.plan(trace, "70%", policy=lambda saved: "keep" if saved.made_by == "aten::gelu" else "offload")
    assert filtered.feasible and every.feasible
    assert filtered.step_ns < every.step_ns
    assert filtered.gap < 0.05
    segments = [re.compile(pattern(row["segment"]) + r"[.#].*") for row in filtered.plan.to_dict()["recompute"]]
    makers = [row["made_by"] for row in trace.saved_tensors() if any(each.fullmatch(row["site"]) for each in segments)]
    assert makers and "aten::gelu" not in makers
    assert stowage.plan(trace, "70%", allow=["offload", "recompute"]).step_ns <= filtered.step_ns


def test_a_filter_takes_no_more_than_the_budget_needs(gpt2):
    nothing = stowage.plan(gpt2, "100%", allow=large)
    assert nothing.feasible and nothing.plan.to_dict()["saved"] == [{"site": "*", "do": "keep"}]
    count = [sum(does != "keep" for does in moves(gpt2, stowage.plan(gpt2, budget, allow=large).plan).values())
             for budget in ("95%", "70%")]
    assert 0 < count[0] < count[1]
    everything = stowage.plan(gpt2, "70%", policy=lambda saved: "offload" if large(saved) else "keep")
    assert stowage.plan(gpt2, "70%", allow=large).step_ns < everything.step_ns


def test_a_filter_that_cannot_help_is_an_outcome(gpt2):
    nothing = stowage.plan(gpt2, "60%", allow=lambda saved: False)
    assert not nothing.feasible and nothing.peak_bytes == nothing.resident["peak_active_bytes"]
    little = stowage.plan(gpt2, "60%", allow=lambda saved: saved.layer == "layers.0.mlp")
    assert little.status == "not_found" and little.peak_bytes < little.resident["peak_active_bytes"]
    with pytest.raises(stowage.Infeasible):
        little.plan_or_raise()
    with pytest.raises(stowage.UsageError, match="needs a budget"):
        stowage.plan(gpt2, allow=large)
    with pytest.raises(stowage.UsageError, match="what auto decides"):
        stowage.plan(gpt2, "60%", policy="thunder", deny=large)
    with pytest.raises(ZeroDivisionError):
        stowage.plan(gpt2, "60%", allow=lambda saved: 1 // 0)


@pytest.mark.parametrize("name", ["a[0]", "conv[1x1]", "[", "layers.0.*", "a?c"])
def test_a_filter_takes_names_as_they_are(gpt2, name):
    content = gpt2.to_json().decode().replace('"layers.0.mlp', f'"{name}')
    trace = stowage.Trace.from_json(content.encode())
    count = sum(row["site"].startswith(f"{name}#") and row["made_in_step"] for row in trace.saved_tensors())
    outcome = stowage.plan(trace, "90%", allow=lambda saved: not saved.site.startswith(f"{name}#"))
    of_mlp = stowage.plan(gpt2, "90%", allow=lambda saved: not saved.site.startswith("layers.0.mlp#"))
    assert count > 1 and outcome.pinned == of_mlp.pinned > 0
    assert (outcome.step_ns, outcome.peak_bytes) == (of_mlp.step_ns, of_mlp.peak_bytes)


def test_ranks_ask_alike():
    assert _told(["offload", "params"]) == _told(["params", "offload"])
    assert _told(functools.partial(sorted)) == _told(sorted)
