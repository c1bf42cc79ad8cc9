"""Plans drawn at random over all decisions, on models that others wrote: the plain loop's bits at the predicted byte."""

import gc
import os
import random
import sys

import pytest
import stowage
import torch
from stowage import _torch
from models_case import loop
from training_case import RECORDED

FULL = os.environ.get("STOWAGE_FULL") == "1"
MODELS = ("gpt2", "llama", "bert", "vit", "t5", "resnet50", "unet")
PLANS = 30 if FULL else 2  # of each model
SEED = int(os.environ.get("STOWAGE_SEED", "1"))
STEPS = 4


def drawn(trace, random_):
    """A plan by a policy that decides at random, with parameters, state and gradients of random layers away."""
    share = random_.choice([0.1, 0.5, 0.9])
    again = random_.choice([0.0, 0.3, 0.8])

    decided = {}  # by storage: what shares bytes goes together

    def decide(saved):
        if saved.storage not in decided:
            away = "recompute" if random_.random() < again else "offload"
            decided[saved.storage] = away if random_.random() < share else "keep"
        choice = decided[saved.storage]
        return choice if choice != "recompute" or all_can[saved.storage] else "offload"

    all_can = {}
    for row in trace.saved_tensors():
        all_can[row["storage"]] = all_can.get(row["storage"], True) and row["can_recompute"]

    content = stowage.plan(trace, policy=decide).plan.to_dict()
    content.pop("predicted", None)
    layers = [layer["name"] for layer in trace.layers if layer["parameter_bytes"] > 0 and layer["kind"] == "layer"]
    blocks = [[layer] for layer in layers if layer.count(".") <= 3 and random_.random() < 0.4]
    if random_.random() < 0.5 and blocks:
        content["parameters"] = {"shards": blocks, "stream": True, "prefetch": random_.randrange(3)}
    if random_.random() < 0.5:
        content["optimizer"] = [{"layer": "*", "state": "stream"}]
    if random_.random() < 0.3:
        content["placement"] = "planned"
    return stowage.Plan.from_dict(content)


def allocated():
    """Bytes of CPU tensors that live now."""
    gc.collect()
    return _torch.device("cpu").memory()["requested_bytes"]


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
