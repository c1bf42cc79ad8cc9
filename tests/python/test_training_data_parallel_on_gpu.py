"""Data-parallel training under a plan on two GPUs, over NCCL: the plain run's bits at the predicted bytes."""

import os
import re
import signal
import warnings
from datetime import timedelta

import pytest
import stowage
import torch
import torch.distributed as dist
from data_parallel_case import (
    Ranks,
    all_say,
    assert_same,
    assert_script_is_the_same,
    body,
    ddp_loop,
    place,
    rank_loss,
    until_planned,
)
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from training_case import assert_as_predicted, assert_as_predicted_on_gpu

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no two CUDA devices")

NET = {"width": 256, "blocks": 6}
ROWS = 1024
ENDS_WITHIN = 30  # s, of a rank whose peer was killed
WATCHDOG = 5  # s of them that NCCL's watchdog waits


@pytest.fixture(scope="module")
def two():
    with Ranks(2, "nccl") as two:
        yield two


def _way(options={}, net={}, **rest):
    return {"net": NET | net, "options": {"size": ROWS} | options, **rest}


def _train(way, attach):
    planned = until_planned(**way, **attach)
    plain = ddp_loop(**way).steps(len(planned.results))
    assert_same(plain, planned)
    assert_as_predicted_on_gpu(planned)
    planned.run.detach()
    return planned.run.plan().to_dict(), planned.collectives, planned.run.outcome() is not None


WAYS = {
    "as it is": _way(),
    "parts that are reduced once": _way({"parts": 3}),
    "gradients in buckets": _way(ddp={"gradient_as_bucket_view": True}),
    "parts in buckets": _way({"parts": 2}, ddp={"gradient_as_bucket_view": True}),
    "an unused part": _way(net={"unused": True}, ddp={"find_unused_parameters": True}),
    "a static graph": _way(net={"unused": True}, ddp={"static_graph": True}),
    "autocast": _way({"autocast": True, "size": 4 * ROWS}),
    "buffers": _way(net={"norm": True}),
}


@pytest.mark.parametrize("way", WAYS)
def test_losses_gradients_and_parameters_are_those_of_the_plain_run(two, way):
    (plan, _, made), (other, _, made_too) = two.run(_train, WAYS[way], {"budget": "60%"})
    assert plan == other
    assert (made, made_too) == (True, False)  # the first rank planned for both
    assert plan["placement"] == "planned"


@pytest.mark.parametrize(("policy", "moves"), [("save_on_cpu", "saved"), ("layerwise", "parameters"),
                                               ("checkpoint", "recompute"), ("zero_offload", "optimizer")])
def test_each_kind_of_decision(two, policy, moves):
    for plan, _, _ in two.run(_train, _way(), {"policy": policy}):
        assert plan[moves]


def test_parts_without_synchronisation_are_reduced_once_a_step(two):
    counts = {}
    for name, options in {"once": {"parts": 3}, "one part": {}, "each": {"parts": 3, "sync": "each"}}.items():
        of_ranks = two.run(_train, _way(options), {"policy": "save_on_cpu"})
        last = {collectives[-1] for _, collectives, _ in of_ranks}
        assert len(last) == 1
        counts[name] = last.pop()
    assert counts["once"] == counts["one part"] > 1
    assert counts["each"] == 3 * counts["once"]


def _way_with(hook):
    return _way(prepare=lambda model: model.register_comm_hook(None, getattr(default_hooks, hook)))


def _train_with_a_hook():
    way = _way_with("allreduce_hook")
    planned = until_planned(**way, budget="60%")
    plain = ddp_loop(**way).steps(len(planned.results))
    assert_same(plain, planned)
    assert_as_predicted(planned)
    planned.run.detach()


def test_a_communication_hook(two):
    two.run(_train_with_a_hook)


def _train_with_buffers_of_a_hook():
    way = _way_with("fp16_compress_hook")
    loop = ddp_loop(**way, budget="60%")
    while True:
        for _ in range(8):
            loop.step(len(loop.results))
        if all_say("not alike" in loop.run.report() or len(loop.reports) >= 4):
            break
        assert len(loop.results) < 500, loop.run.report()
    plain = ddp_loop(**way).steps(len(loop.results))
    assert_same(plain, loop)
    if loop.reports:
        assert_as_predicted(loop)
    else:
        assert "not alike" in loop.run.report()
    loop.run.detach()


# This one has buffers of its own, which NCCL's watchdog frees when it finds that they are reduced: where in a step that
# is differs, so such a run may have no plan.
def test_a_communication_hook_with_buffers_of_its_own(two):
    two.run(_train_with_buffers_of_a_hook)


def _train_with_more_in_memory():
    more = torch.zeros(2 << 20, device=place()) if dist.get_rank() == 1 else None
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", stowage.StowageWarning)
        planned = until_planned(**_way(), budget="60%")
    plain = ddp_loop(**_way()).steps(len(planned.results))
    assert_same(plain, planned)
    assert_as_predicted_on_gpu(planned)
    assert planned.run.predicted()["peak_reserved_bytes"] <= planned.run.outcome().budget_bytes
    planned.run.detach()
    return more is not None, [str(line.message) for line in said]


def test_a_rank_with_more_in_memory_plans_for_itself(two):
    (_, first), (_, second) = two.run(_train_with_more_in_memory)
    assert not any("has a plan of its own" in line for line in first)
    assert any("rank 1 has a plan of its own" in line for line in second), second


def _train_until_a_rank_is_killed(said):
    if dist.get_rank() == 0:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)  # the watchdog's words

    def step(model, optimizer, k):
        if k < 0:  # the last one
            optimizer.zero_grad()
            loss = rank_loss(model, k, ROWS)
            if dist.get_rank() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            loss.backward()
            optimizer.step()
            return loss.item()
        return body(model, optimizer, k, size=ROWS)

    planned = until_planned(net=NET, step=step, budget="60%")
    assert all_say(planned.run.is_planned)
    dist.distributed_c10d._set_pg_timeout(timedelta(seconds=WATCHDOG))
    planned.step(-1)


def test_where_a_rank_is_killed_in_a_planned_step_the_other_ends(tmp_path, monkeypatch):
    # Else the watchdog waits a minute for a dump of what other ranks do, in a plain step as well.
    monkeypatch.setenv("TORCH_NCCL_DUMP_ON_TIMEOUT", "0")
    monkeypatch.setenv("TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC", "1000")
    said = tmp_path / "said"
    with Ranks(2, "nccl") as ranks:
        ranks.begin(_train_until_a_rank_is_killed, str(said))
        assert ranks.answer(1) == ("ended", -signal.SIGKILL)
        kind, what = ranks.answer(0, patience=ENDS_WITHIN)
    assert kind in ("ended", "error"), (kind, said.read_text())  # aborted by the watchdog, or raised
    assert what != 0
    words = said.read_text() + (what if kind == "error" else "")
    assert re.search(r"Watchdog caught collective operation timeout|NCCL (remote )?error|remote process", words), words


def test_a_script_that_is_not_changed(tmp_path):
    assert_script_is_the_same(tmp_path, "nccl", 300)
