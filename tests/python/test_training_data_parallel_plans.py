"""Plans drawn at random, on every rank the bits of the data-parallel run without one, at the predicted byte."""

import os
import random

import pytest
import stowage
import torch
import torch.distributed as dist
from data_parallel_case import WAYS, Ranks, assert_same, ddp_loop
from random_plan_case import allocated, drawn
from training_case import RECORDED

FULL = os.environ.get("STOWAGE_FULL") == "1"
SEED = int(os.environ.get("STOWAGE_SEED", "1"))
PLANS = {2: 40, 4: 10} if FULL else {2: 1}  # of each way to train, by the number of ranks


@pytest.fixture(scope="module", params=PLANS)
def ranks(request):
    with Ranks(request.param) as ranks:
        yield ranks


def _train_under_random_plans(name, way, plans, seed):
    before = allocated()
    recorder = ddp_loop(**way, budget="100%").steps(RECORDED)
    trace = recorder.run.trace()
    recorder.run.detach()
    del recorder
    reference = ddp_loop(**way).steps(5)
    refused = 0
    for number in range(plans):
        # The same plan on all ranks, or one on each.
        random_ = random.Random(f"{seed} {name} {number} {dist.get_rank() if number % 3 == 2 else ''}")
        content = drawn(trace, random_).to_dict()
        if random_.random() < 0.5 and "gradient_as_bucket_view" not in way.get("ddp", {}):
            content["gradients"] = [{"layer": "*", "place": "host"}]
        plan = stowage.Plan.from_dict(content)
        planned = None  # the one before
        outside = allocated() - before
        planned = ddp_loop(**way, trace=trace, plan=plan)
        # Plans begin ahead of the first step or, where they move the optimizer's state, behind it.
        is_refused = _is_refused(planned) or planned.step(0) or _is_refused(planned)
        refused += is_refused
        if not is_refused:
            for k in range(1, 5):
                planned.step(k)
            for report in planned.reports[-2:]:  # DDP puts its buckets in order in the second step
                assert report.on_plan, (report.first_difference, plan)
                assert report.peak_requested_bytes - outside == planned.run.predicted()["peak_requested_bytes"], plan
            assert_same(reference, planned)
        planned.run.detach()
    return refused


# What one rank cannot do no rank begins.
def _is_refused(planned):
    refused = torch.zeros(1)
    try:
        with planned.run.step():
            raise KeyError
    except KeyError:
        pass
    except stowage.BadInput:
        refused += 1
    dist.all_reduce(refused)
    return bool(refused)


@pytest.mark.parametrize("way", ["as it is", "parts that are reduced once", "gradients in buckets", "autocast"])
def test_random_plans_are_bitwise_and_exact(ranks, way):
    refused = ranks.run(_train_under_random_plans, way, WAYS[way], PLANS[ranks.count], SEED)
    assert max(refused) <= PLANS[ranks.count] // 2, refused
