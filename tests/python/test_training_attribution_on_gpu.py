"""Gradient x activation on a GPU: Captum's numbers, and at half of the peak the same bits; parts of two GPUs gathered."""

import gc

import pytest
import stowage
import torch
from data_parallel_case import Ranks, all_say
from test_training_attribution import BLOCKS, assert_close, captum
from training_case import Net, batch

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")

TWELVE = [f"encoder.layers.encoder_layer_{k}" for k in range(12)]
IMAGES = 16
LEAST = stowage.Recording(warmup=1, steps=4, observed=2)
ROWS = 8192  # beside the libraries' workspaces a plan has something to move
CALLS = 5000  # until there must be a plan: steps of a millisecond are recorded some hundred times


@pytest.fixture(autouse=True)
def same_bits():
    torch.use_deterministic_algorithms(True)
    gc.collect()
    torch.cuda.empty_cache()
    yield
    torch.use_deterministic_algorithms(False)


def vit():
    """ViT-B/16, all 12 layers."""
    models = pytest.importorskip("torchvision.models")
    torch.manual_seed(0)
    return models.vit_b_16(weights=None).eval().cuda()


def images(k, count=IMAGES):
    return torch.randn(count, 3, 224, 224, generator=torch.Generator().manual_seed(k)).cuda()


def attribute_until_planned(attribution, x):
    """Its last result, under a plan for two calls."""
    for _ in range(CALLS):
        result = attribution(x, target=3)
        if attribution.run.last_report() is not None:
            return attribution(x, target=3)
    raise AssertionError(f"no plan after {CALLS} calls")


def assert_as_predicted(run):
    report, predicted = run.last_report(), run.predicted()
    assert report.on_plan, report.first_difference
    assert report.peak_requested_bytes == predicted["peak_requested_bytes"]
    memory = run.planned_memory()
    assert (memory["conflicts"], memory["unforeseen"]) == (0, 0), memory["surprises"]


def test_is_captums():
    model, x = vit(), images(0)
    ours = stowage.Attribution(model, TWELVE)(x, target=3)
    for mine, (its,) in zip(ours.values(), captum(model, TWELVE, x, 3), strict=True):
        assert_close(mine, its.detach().cpu())


def test_at_half_of_captums_peak_it_is_the_same_bit_by_bit():
    model, x = vit(), images(0)
    plain = stowage.Attribution(model, TWELVE)(x, target=3)
    with stowage.Attribution(model, TWELVE, policy="captum", recording=LEAST) as as_captum:
        assert_same(plain, attribute_until_planned(as_captum, x))
        assert_as_predicted(as_captum.run)
        peak = as_captum.run.predicted()["peak_reserved_bytes"]
        trace = as_captum.run.trace()
    with stowage.Attribution(model, TWELVE, peak // 2, trace=trace) as halved:
        assert_same(plain, attribute_until_planned(halved, x))
        assert_as_predicted(halved.run)
        assert halved.run.predicted()["peak_reserved_bytes"] <= peak // 2


def assert_same(theirs, ours):
    for name in theirs:
        assert torch.equal(ours[name], theirs[name]), name


def _of_a_rank():
    torch.manual_seed(0)
    model = Net(256, blocks=4).eval().cuda()
    attribution = stowage.Attribution(model, BLOCKS, "60%", gather=True, recording=LEAST)
    x = batch(0, ROWS, 256)[0].chunk(2)[torch.distributed.get_rank()].cuda()
    for _ in range(CALLS):
        result = attribution(x, target=3)
        if all_say(attribution.run.last_report() is not None):
            break
    assert attribution.run.is_planned, attribution.run.report()
    assert_as_predicted(attribution.run)
    attribution.detach()
    return {name: tensor.numpy() for name, tensor in result.items()}


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="no two CUDA devices")
def test_parts_of_two_gpus_are_gathered_in_order():
    with Ranks(2, "nccl") as ranks:
        results = ranks.run(_of_a_rank)
    torch.manual_seed(0)
    plain = stowage.Attribution(Net(256, blocks=4).eval().cuda(), BLOCKS)
    parts = [plain(part.cuda(), target=3) for part in batch(0, ROWS, 256)[0].chunk(2)]
    for result in results:
        for name in BLOCKS:
            assert torch.equal(torch.from_numpy(result[name]), torch.cat([part[name] for part in parts])), name
