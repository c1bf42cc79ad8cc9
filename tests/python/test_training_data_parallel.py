"""Training of a model in DistributedDataParallel under a plan: on every rank the bits of the run without one."""

import os
import re
import signal
import warnings
from pathlib import Path

import pytest
import stowage
import torch
import torch.distributed as dist
from data_parallel_case import (
    WAYS,
    Net,
    Ranks,
    all_say,
    assert_same,
    assert_script_is_the_same,
    body,
    ddp_loop,
    rank_loss,
    torchrun,
)
from stowage import _data_parallel
from stowage._data_parallel import communicates_in_forward
from stowage._layers import choose_layers
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.nn.parallel import DistributedDataParallel as DDP
from training_case import FAST, RECORDED, assert_as_predicted

FULL = os.environ.get("STOWAGE_FULL") == "1"
STEPS = RECORDED + 5


@pytest.fixture(scope="module")
def two():
    with Ranks(2) as two:
        yield two


@pytest.fixture(scope="module", params=[2, 4] if FULL else [2])
def ranks(request, two):
    if request.param == 2:
        yield two
        return
    with Ranks(request.param) as ranks:
        yield ranks


def _train(way, attach, steps=STEPS):
    plain = ddp_loop(**way).steps(steps)
    planned = ddp_loop(**way, **attach).steps(steps)
    assert_as_predicted(planned)
    assert_same(plain, planned)
    planned.run.detach()
    return planned.run.plan().to_dict(), planned.collectives


@pytest.mark.parametrize("way", WAYS)
def test_losses_gradients_and_parameters_are_those_of_the_plain_run(ranks, way):
    results = ranks.run(_train, WAYS[way], {"budget": "70%" if way == "autocast" else "55%"})
    assert all(plan["saved"] for plan, _ in results)


@pytest.mark.parametrize(("attach", "moves"), [
    ({"policy": "save_on_cpu"}, "saved"),
    ({"policy": "layerwise"}, "parameters"),
    ({"policy": "checkpoint"}, "recompute"),
    ({"policy": "zero_offload"}, "optimizer"),
    ({"budget": "99.7%", "allow": "gradients"}, "gradients"),
    ({"budget": "60%", "placement": "planned"}, "placement"),
], ids=lambda value: value if isinstance(value, str) else None)
def test_each_kind_of_decision(ranks, attach, moves):
    for plan, _ in ranks.run(_train, {}, attach):
        assert plan[moves]


def test_parts_without_synchronisation_are_reduced_once_a_step(ranks):
    once, one_part, each = (
        [collectives for _, collectives in ranks.run(_train, {"options": options}, {"budget": "60%"})]
        for options in ({"parts": 3}, {}, {"parts": 3, "sync": "each"}))
    assert once == one_part == [once[0]] * ranks.count
    assert set(once[0][2:]) == {once[0][-1]}
    assert each[0][-1] == 3 * once[0][-1] > 3


# Gloo frees what it has sent on a thread of its own, at times late: the step is recorded again then.
def _train_with_buffers(attach, options):
    way, steps = {"net": {"norm": True}, "options": options}, 3 * RECORDED
    plain = ddp_loop(**way).steps(steps)
    planned = ddp_loop(**way, **attach).steps(steps)
    assert_same(plain, planned)
    spread = sum(buffer.nbytes for buffer in planned.model.buffers())
    assert planned.reports
    for report in planned.reports:
        assert report.on_plan, report.first_difference
        assert abs(report.peak_requested_bytes - planned.run.predicted()["peak_requested_bytes"]) <= spread
    planned.run.detach()


@pytest.mark.parametrize(("attach", "options"), [({"budget": "60%"}, {}),
                                                 ({"policy": "checkpoint"}, {"parts": 2, "sync": "each"})],
                         ids=["auto", "checkpoint"])
def test_buffers_that_the_first_rank_spreads(ranks, attach, options):
    ranks.run(_train_with_buffers, attach, options)


def _counting(bucket_counts):
    def hook(state, bucket):
        bucket_counts.append(bucket.index())
        work = dist.all_reduce(bucket.buffer().div_(dist.get_world_size()), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    return hook


def _train_with_a_communication_hook():
    counts = {}

    def loop(name, **attach):
        counts[name] = []
        return ddp_loop(prepare=lambda model: model.register_comm_hook(None, _counting(counts[name])), **attach)

    plain = loop("plain").steps(STEPS)
    planned = loop("planned", budget="60%").steps(STEPS)
    assert_as_predicted(planned)
    assert_same(plain, planned)
    planned.run.detach()
    assert counts["plain"] == counts["planned"]
    assert counts["plain"]


def test_a_communication_hook_is_called_as_often(ranks):
    ranks.run(_train_with_a_communication_hook)


def _train_and_tell_of_the_plan(attach, recordings, steps, sizes=None):
    rank = dist.get_rank()
    options = {"size": sizes[rank]} if sizes else {}
    plain = ddp_loop(options=options).steps(steps)
    planned = ddp_loop(options=options, **attach)
    planned.run._recording = recordings[rank]
    planned.steps(steps)
    assert_as_predicted(planned)
    assert_same(plain, planned)
    planned.run.detach()
    run = planned.run
    return run.plan().to_json(), run.outcome() is not None, len(planned.reports)


LONGER = stowage.Recording(warmup=2, steps=7, observed=2)


@pytest.mark.parametrize("recordings", [(FAST, FAST), (FAST, LONGER), (LONGER, FAST)],
                         ids=["alike", "the first is sooner", "the first is later"])
def test_the_first_rank_plans_for_all(two, recordings):
    first, second = two.run(_train_and_tell_of_the_plan, {"budget": "60%"}, recordings, RECORDED + 8)
    assert first[0] == second[0]
    assert first[1:] == (True, 8 if recordings[0] is FAST else 5)
    assert second[1] is False
    assert second[2] in ((8, 7) if recordings == (FAST, FAST) else (5, 4))


def test_ranks_whose_steps_are_others_plan_for_themselves(two):
    first, second = two.run(_train_and_tell_of_the_plan, {"budget": "60%"}, (FAST, FAST), RECORDED + 26, (512, 384))
    assert first[0] != second[0]
    assert first[1] and second[1]
    assert first[2] == 26 > second[2] > 0


def _plan_what_does_not_fit():
    planned = ddp_loop(budget="5%")
    with pytest.raises(stowage.Infeasible) as caught:
        planned.steps(STEPS)
    planned.run.detach()
    return len(planned.results), str(caught.value)


def test_where_no_plan_keeps_the_budget_every_rank_says_so(ranks):
    answers = ranks.run(_plan_what_does_not_fit)
    assert answers == [answers[0]] * ranks.count
    assert answers[0][0] == RECORDED
    assert "infeasible" in answers[0][1]


def _train_with_more_in_memory():
    plain = ddp_loop().steps(STEPS)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", stowage.StowageWarning)
        planned = ddp_loop(budget="60%")
        more = torch.zeros(1 << 20) if dist.get_rank() == 1 else None
        planned.steps(STEPS)
    assert_as_predicted(planned)
    assert_same(plain, planned)
    assert planned.run.predicted()["peak_requested_bytes"] <= planned.run.outcome().budget_bytes
    planned.run.detach()
    return more is not None, [str(line.message) for line in said]


def test_a_rank_with_more_in_memory_plans_for_itself(two):
    (_, first), (_, second) = two.run(_train_with_more_in_memory)
    assert first == []
    assert [re.search(r"rank 0's plan takes [\d,]+ bytes on rank 1.*rank 1 has a plan of its own", line) is not None
            for line in second] == [True]


def _train_with_another_step(at):
    def step(model, optimizer, k):
        other = torch.zeros(1 << 22) if dist.get_rank() == 1 and k == at else None
        result = body(model, optimizer, k, size=384 if other is not None and at > RECORDED else 512)
        del other
        return result

    plain = ddp_loop(step=step).steps(2 * RECORDED)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", stowage.StowageWarning)
        planned = ddp_loop(step=step, budget="60%").steps(2 * RECORDED)
    assert_same(plain, planned)
    planned.run.detach()
    return [report.on_plan for report in planned.reports], [str(line.message) for line in said], \
        planned.run.plan().to_json()


def test_a_rank_with_an_odd_recorded_step_records_again(two):
    first, second = two.run(_train_with_another_step, 6)
    assert first[0] == [True] * RECORDED
    assert first[1] == []
    assert second[0] and all(second[0])
    assert len(second[0]) < RECORDED
    assert len(second[1]) == 1
    assert "the step is recorded again" in second[1][0]
    assert first[2] == second[2]


def test_one_rank_off_its_plan(two):
    first, second = two.run(_train_with_another_step, RECORDED + 3)
    assert first[0] == [True] * RECORDED
    assert second[0].count(False) == 1
    assert second[0][-1]


class Exchange(torch.nn.Module):
    """Its forward sums over the ranks, in place."""

    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(64, 64)
        self.down = torch.nn.Linear(64, 64)

    def forward(self, x):
        y = self.up(x)
        z = y.detach().sin()
        dist.all_reduce(z)
        return x + self.down(torch.nn.functional.gelu(torch.sin(y * z) + torch.cos(z) * y))


class ExchangeNet(torch.nn.Module):
    def __init__(self, ahead=False):
        super().__init__()
        self.ahead = ahead
        self.blocks = torch.nn.ModuleList(Exchange() for _ in range(3))
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        if self.ahead:
            x = x.sin()
            dist.all_reduce(x)
            x = (2 * x).cos()
            for block in self.blocks:
                x = torch.nn.functional.gelu(block.up(x))
            return self.head(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def recompute_all(saved):
    return "recompute" if saved.can_recompute else "keep"


def _train_what_communicates(attach):
    steps = 3 * RECORDED  # Gloo frees late, too: see above
    plain = ddp_loop(make=ExchangeNet).steps(steps)
    planned = ddp_loop(make=ExchangeNet, **attach).steps(steps)
    assert planned.reports
    assert_same(plain, planned)
    planned.run.detach()
    return planned.run.plan().to_dict()


def _is_refused_what_communicates(attach):
    planned = ddp_loop(make=ExchangeNet, **attach)
    said = None
    for k in range(6 * RECORDED):
        # Ahead of the step, in which other ranks wait: one's recording may take longer than another's.
        if said is None:
            try:
                planned.step(k)
            except stowage.UsageError as error:
                said = str(error)
                planned.run.detach()
        if said is not None:
            planned.body(planned.model, planned.optimizer, k)
        if all_say(said is not None):
            break
    assert said is not None and "run again, which calls c10d::allreduce_ in" in said
    return said


def test_what_communicates_in_forward_does_not_run_again(two):
    for plan in two.run(_train_what_communicates, {"budget": "70%", "deny": "params"}):
        assert "recompute" not in plan
        assert {rule["do"] for rule in plan["saved"]} == {"offload", "keep"}
    for attach in ({"policy": recompute_all}, {"policy": "checkpoint"}):
        for said in two.run(_is_refused_what_communicates, attach):
            assert "c10d::allreduce_ in module.blocks.0:" in said


def _find_what_communicates_ahead():
    loop = ddp_loop(make=ExchangeNet, net={"ahead": True}, ddp={"find_unused_parameters": True}, budget="100%")
    loop.steps(3 * RECORDED)
    loop.run.detach()
    trace = loop.run.trace()
    return None if trace is None else communicates_in_forward(trace)


def test_what_communicates_ahead_of_the_layers_is_found(two):
    assert set(two.run(_find_what_communicates_ahead)) - {None} == {("c10d::allreduce_", "")}


def _train_with_uneven_inputs():
    steps = 8 * RECORDED + 3 * dist.get_rank()  # Gloo frees late, too, and most of the time: see above
    plain = ddp_loop()
    with plain.model.join():
        plain.steps(steps)
    planned = ddp_loop(budget="60%")
    with planned.model.join():
        planned.steps(steps)
        planned.run.materialise()
    planned.run.detach()
    assert planned.reports or "without a plan" in planned.run.report()
    assert all(report.on_plan for report in planned.reports)
    assert planned.results == plain.results
    for a, b in zip(plain.model.parameters(), planned.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_ranks_with_more_steps_than_others(two):
    two.run(_train_with_uneven_inputs)


def _layers_of_both():
    model = Net()
    flat = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    return [list(choose_layers(each)) for each in (model, DDP(model), flat, DDP(flat))]


def test_layers_are_those_of_the_model_in_it(ranks):
    for blocks, blocks_in_ddp, flat, flat_in_ddp in ranks.run(_layers_of_both):
        assert blocks_in_ddp == [f"module.{path}" for path in blocks]
        assert flat_in_ddp == [f"module.{path}" for path in flat]


def _train_the_model_inside():
    def attached(**attach):
        loop = ddp_loop()
        loop.run = stowage.attach(loop.model.module, loop.optimizer, recording=FAST, **attach)
        return loop.steps(STEPS)

    plain = ddp_loop().steps(STEPS)
    with pytest.warns(stowage.StowageWarning, match="each rank plans for itself"):
        planned = attached(budget="60%")
    assert_as_predicted(planned)
    assert_same(plain, planned)
    planned.run.detach()


def test_the_model_inside_may_be_attached_too(ranks):
    ranks.run(_train_the_model_inside)


def _attach_shards():
    second = Net()
    fully_shard(second, mesh=dist.init_device_mesh("cpu", (2,)))
    for model in (second, FullyShardedDataParallel(Net(), device_id=torch.device("cpu"))):
        with pytest.raises(NotImplementedError, match="that FSDP shards"):
            stowage.attach(model, None, "60%")


def test_a_model_in_shards_is_refused(two):
    two.run(_attach_shards)


def _train_until_a_rank_is_killed():
    def step(model, optimizer, k):
        optimizer.zero_grad()
        loss = rank_loss(model, k)
        if k == RECORDED + 2 and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        loss.backward()
        optimizer.step()
        return loss.item()

    planned = ddp_loop(step=step, budget="60%")
    try:
        planned.steps(STEPS)
    finally:
        assert len(planned.reports) == 2
        assert len(planned.results) == RECORDED + 2


def _assert_the_other_raises(case, killed, error):
    with Ranks(2) as ranks:
        ranks.begin(case)
        assert ranks.answer(killed) == ("ended", -signal.SIGKILL)
        kind, what = ranks.answer(1 - killed, patience=30)
    assert kind == "error"
    assert re.search(error, what), what


def test_where_a_rank_is_killed_in_a_planned_step_the_others_raise():
    _assert_the_other_raises(_train_until_a_rank_is_killed, 1, r"RuntimeError: .*Connection (closed|reset) by peer")


def test_the_example():
    said, _ = torchrun(Path(__file__).parents[2] / "examples/python/train_ddp.py")
    # Their lines may lie within each other's.
    assert len(re.findall(r"bitwise the plain run's: True; peak as predicted: True", said)) == 2, said


def killed_while_it_plans(saved):
    os.kill(os.getpid(), signal.SIGKILL)


def _plan_and_be_killed():
    _data_parallel._SILENCE = 3.0  # s
    ddp_loop(policy=killed_while_it_plans).steps(STEPS)


def test_where_the_rank_that_plans_is_killed_the_others_raise():
    _assert_the_other_raises(
        _plan_and_be_killed, 0, r"Unavailable: the rank that makes the plan is gone|Connection (closed|reset) by peer")


def test_a_script_that_is_not_changed(tmp_path):
    assert_script_is_the_same(tmp_path, "gloo", 30)
