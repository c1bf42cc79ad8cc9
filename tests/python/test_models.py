"""Models that others wrote, trained under a plan: the plain loop's bits at the predicted byte."""

import os
import warnings

import pytest
import stowage
from models_case import STEPS_PLANNED, loop
from training_case import RECORDED, assert_as_predicted, assert_equal

# All of it with STOWAGE_FULL=1.
FULL = os.environ.get("STOWAGE_FULL") == "1"
CASES = [(name, attention, autocast, accumulate)
         for name in ("gpt2", "llama", "bert", "vit", "t5", "resnet50", "unet")
         for attention in ("eager", "sdpa")
         for autocast in (False, True)
         for accumulate in (1, 2)
         if attention == "eager" or name not in ("t5", "resnet50", "unet")]
QUICK = {("gpt2", "sdpa", False, 2), ("llama", "eager", True, 1), ("bert", "sdpa", True, 2), ("vit", "eager", False, 1),
         ("t5", "eager", False, 1), ("resnet50", "eager", False, 1), ("unet", "eager", True, 1)}


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("case", CASES if FULL else sorted(QUICK), ids=lambda case: "-".join(map(str, case)))
def test_is_bitwise_and_exact(case):
    pytest.importorskip("transformers" if case[0] not in ("resnet50", "unet") else "torchvision")
    steps = RECORDED + (20 if FULL else STEPS_PLANNED)
    planned = loop(*case, budget="80%").steps(steps)
    assert len(planned.reports) == steps - RECORDED
    assert_as_predicted(planned)
    outcome = planned.run.outcome()
    assert outcome.predicted["peak_active_bytes"] <= 0.8 * outcome.resident["peak_active_bytes"]
    planned.run.detach()
    assert_equal(loop(*case).steps(steps), planned)


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_blocks_run_again_unless_they_append_to_a_cache(name, use_cache):
    pytest.importorskip("transformers")
    steps = RECORDED + 2

    def without_cache(model):
        model.config.use_cache = use_cache
        return model

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", stowage.StowageWarning)
        planned = loop(name, prepare=without_cache, policy="checkpoint").steps(steps)
    assert_as_predicted(planned)
    again = [rule["segment"] for rule in planned.run.plan().to_dict()["recompute"]]
    block = "transformer.h" if name == "gpt2" else "model.layers"
    assert again == [f"{block}.[0-2].mlp" if use_cache else f"{block}.[0-2]"]
    warned = [str(each.message) for each in said if "DynamicCache" in str(each.message)]
    assert len(warned) == (1 if use_cache else 0)
    planned.run.detach()
    assert_equal(loop(name, prepare=without_cache).steps(steps), planned)
