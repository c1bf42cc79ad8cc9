"""Plans drawn at random over all decisions, on models that others wrote: the plain loop's bits at the predicted byte."""

import gc
import os
import random
import sys

import pytest
import stowage
import torch
from models_case import loop
from random_plan_case import allocated, drawn
from training_case import RECORDED

FULL = os.environ.get("STOWAGE_FULL") == "1"
MODELS = ("gpt2", "llama", "bert", "vit", "t5", "resnet50", "unet")
PLANS = 30 if FULL else 2  # of each model
SEED = int(os.environ.get("STOWAGE_SEED", "1"))
STEPS = 4

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("name", MODELS)
def test_random_plans_are_bitwise_and_exact(name):
    pytest.importorskip("transformers" if name not in ("resnet50", "unet") else "torchvision")
    before = allocated()
    recorder = loop(name, budget="100%").steps(RECORDED)
    trace = recorder.run.trace()
    recorder.run.detach()
    del recorder
    gc.collect()
    reference = loop(name).steps(STEPS)
    results, state = reference.results, {n: p.detach().clone() for n, p in reference.model.named_parameters()}
    del reference
    refused = []
    random_ = random.Random(f"{SEED} {name}")
    for number in range(PLANS):
        print(f"{name}, plan {number} of seed {SEED}", file=sys.stderr)
        plan = drawn(trace, random_)
        planned = None  # the one before
        outside = allocated() - before
        planned = loop(name, trace=trace, plan=plan)
        try:
            planned.steps(STEPS)
        except stowage.BadInput as error:  # a draw that asks for what the model cannot do
            refused.append(str(error))
            planned.run.detach()
            continue
        for report in planned.reports[1:]:
            assert report.on_plan, report.first_difference
            assert report.peak_requested_bytes - outside == planned.run.predicted()["peak_requested_bytes"], plan
        planned.run.detach()
        assert planned.results == results, plan
        for parameter_name, parameter in planned.model.named_parameters():
            assert torch.equal(parameter, state[parameter_name]), (parameter_name, plan)
    assert len(refused) <= PLANS // 2, refused
