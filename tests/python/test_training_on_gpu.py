"""Training under a plan on a GPU: the plain loop's bits at the predicted byte, in memory of the plan's own."""

import gc
import json
import warnings

import pytest
import stowage
import torch
from training_case import Loop, Net, adamw, assert_as_predicted_on_gpu, assert_equal

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
PLANNED = 4  # steps


WIDTH = 256


def body(model, optimizer, k):
    generator = torch.Generator().manual_seed(k)
    x = torch.randn(512, WIDTH, generator=generator).cuda()
    y = torch.randint(0, 10, (512,), generator=generator).cuda()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def net():
    return Net(WIDTH, blocks=6).cuda()


@pytest.fixture(autouse=True)
def same_bits():
    """Kernels that do the same each time; nothing of the test before is left on the GPU."""
    torch.use_deterministic_algorithms(True)
    gc.collect()
    torch.cuda.empty_cache()
    yield
    torch.use_deterministic_algorithms(False)


def train(step=body, **attach):
    """Until some planned steps have been made; how many a recording takes hangs on the time of a step."""
    loop = Loop(net, adamw, step, **attach)
    while len(loop.reports) < PLANNED:
        loop.step(len(loop.results))
    return loop


def assert_as_plain(loop):
    loop.run.detach()
    assert_equal(Loop(net, adamw, loop.body).steps(len(loop.results)), loop)


@pytest.mark.parametrize("attach", [{"budget": "60%"}, {"policy": "save_on_cpu"}, {"policy": "checkpoint"},
                                    {"policy": "layerwise"}], ids=lambda given: next(iter(given.values())))
def test_is_bitwise_and_exact(attach):
    loop = train(**attach)
    assert_as_predicted_on_gpu(loop)
    trace = loop.run.trace()
    assert trace.device == "cuda"
    assert json.loads(trace.to_json())["gpu"]["n"] > 50  # kernels and copies, with their times
    assert_as_plain(loop)


def test_what_was_there_before_is_counted():
    older = torch.ones(3_000_000, device="cuda")  # by nobody but the allocator
    loop = train(budget="60%")
    assert_as_predicted_on_gpu(loop)
    assert loop.run.predicted()["peak_requested_bytes"] > older.nbytes
    assert_as_plain(loop)


def test_what_the_next_step_still_holds_has_two_places():
    held = {}

    def holding(model, optimizer, k):
        generator = torch.Generator().manual_seed(k)
        x = torch.randn(512, WIDTH, generator=generator).cuda()
        out = model(x)
        loss = out.square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        held.update(loss=loss.detach(), out=out.detach())  # those of the step before go here
        return loss.item()

    loop = Loop(net, adamw, holding, budget="60%")
    while len(loop.reports) < PLANNED:
        loop.step(len(loop.results))
        assert held["loss"].item() == loop.results[-1]
    assert_as_predicted_on_gpu(loop)
    loop.run.detach()
    assert_equal(Loop(net, adamw, holding).steps(len(loop.results)), loop)


def wide_body(model, optimizer, k):
    """Most of its peak is what the step itself makes, so a plan of it can lend much."""
    generator = torch.Generator().manual_seed(k)
    x = torch.randn(8192, WIDTH, generator=generator).cuda()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def assert_as_predicted_beside(loop, planned, filler_bytes):
    """The first ``planned`` steps as predicted, the others beside a tensor that nobody knew of."""
    predicted = loop.run.predicted()["peak_requested_bytes"]
    peaks = [report.peak_requested_bytes for report in loop.reports]
    assert all(report.on_plan for report in loop.reports)
    assert peaks == [predicted] * planned + [predicted + filler_bytes] * (len(peaks) - planned)
    memory = loop.run.planned_memory()
    assert (memory["conflicts"], memory["unforeseen"]) == (0, 0), memory["surprises"]


def leave_free(mebibytes):
    gc.collect()
    torch.cuda.empty_cache()
    return torch.empty(torch.cuda.mem_get_info()[0] - (mebibytes << 20), dtype=torch.uint8, device="cuda")


def evaluate(model):
    model.eval()
    with torch.no_grad():
        x = torch.randn(1024, WIDTH, generator=torch.Generator().manual_seed(99)).cuda()
        result = model(x).cpu()
    model.train()
    return result, {name: each.cpu() for name, each in model.state_dict().items()}


@pytest.mark.parametrize("attach", [{"budget": "60%"}, {"policy": "layerwise"}], ids=["auto", "layerwise"])
def test_an_evaluation_has_room_on_a_card_that_the_plan_fills(attach):
    loop = train(wide_body, **attach)
    whole = loop.run.planned_memory()["bytes"]
    evaluated = []
    planned = len(loop.reports)
    filler = leave_free(4)
    filler_bytes = filler.nbytes
    try:
        for repeat in range(1, 3):
            loop.run.materialise()
            evaluated.append(evaluate(loop.model))
            memory = loop.run.planned_memory()
            assert (memory["lent"], memory["bytes"] < whole) == (repeat, True), (memory, whole)
            loop.step(len(loop.results))
            assert loop.run.planned_memory()["bytes"] == whole
    finally:
        del filler
    assert_as_predicted_beside(loop, planned, filler_bytes)
    assert "were lent between steps 2 times" in loop.run.report()
    loop.run.detach()
    plain = Loop(net, adamw, wide_body).steps(len(loop.results) - 2)
    for result, state in evaluated:
        expected, plain_state = evaluate(plain.model)
        assert torch.equal(result, expected)
        for name, each in plain_state.items():
            assert torch.equal(state[name], each), name
        plain.step(len(plain.results))
    assert_equal(plain, loop)


def test_what_an_evaluation_left_keeps_the_next_step_out_until_it_is_gone():
    loop = train(wide_body, budget="60%")
    planned = len(loop.reports)
    filler = leave_free(4)
    filler_bytes = filler.nbytes
    try:
        kept = torch.empty(loop.run.planned_memory()["bytes"] // 2, dtype=torch.uint8, device="cuda")
        for _ in range(2):
            with pytest.raises(torch.OutOfMemoryError, match="free what was made between steps"):
                with loop.run.step():
                    raise AssertionError("it does not begin")
        del kept
        loop.step(len(loop.results))
    finally:
        del filler
    assert_as_predicted_beside(loop, planned, filler_bytes)
    assert_as_plain(loop)


def test_updates_are_divided_where_the_budget_needs_it_alone():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*recorded again", category=stowage.StowageWarning)
        train(budget="100%").run.detach()
    gc.collect()
    torch.cuda.empty_cache()
    with pytest.warns(stowage.StowageWarning, match="recorded again"):
        train(budget="60%").run.detach()


def test_a_model_on_another_gpu_is_refused():
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    model = Net().to("cuda:1")
    with pytest.raises(stowage.Error, match="GPU 1"):
        stowage.attach(model, None, "60%")
