"""A recording of steps between which something comes: a validation, a metric, gradients that are dropped."""

import warnings

import pytest
import stowage
import torch
from stowage import _torch
from stowage._alike import AlikeSteps
from training_case import RECORDED, Loop, Net, adamw, assert_as_predicted, assert_equal, loss_of, plain_body

pytestmark = pytest.mark.usefixtures("one_thread")


def decided(begins, warmup=1):
    """What becomes of steps that begin with these bytes; "r" recorded, "-" left out, "R" recorded anew."""
    alike = AlikeSteps(warmup)
    letters, recorded = "", 0
    for begins_with in begins:
        decision = alike.of(begins_with, recorded)
        letters += {"record": "r", "leave out": "-", "record from here": "R"}[decision]
        recorded = {"record": recorded + 1, "leave out": recorded, "record from here": 1}[decision]
    return letters


@pytest.mark.parametrize("begins, letters", [
    ([8, 8, 8, 8], "rrrr"),
    ([9, 8, 8, 8], "r-rr"),  # the warm-up's last step was another one
    ([8, 8, 5, 8, 8], "rr-rr"),
    ([8, 8, 5, 7, 8, 5, 8], "rr--r-r"),
    ([8, 8, 9, 9, 9], "rr-Rr"),  # a byte is kept from then on
    ([8, 8, 5, 9, 5, 9, 9, 9], "rr----rr"),  # four in a row: as they are
    ([8, 8] + [9, 9, 9] + [8, 8, 8] + [9, 9, 8, 7], "rr" + "-Rr" + "-Rr" + "-Rrr"),  # three times: as they are
])
def test_steps_that_begin_alike_are_recorded(begins, letters):
    assert decided(begins) == letters


def test_the_steps_of_a_warm_up_need_not_be_alike():
    assert decided([1, 2, 3, 3, 3], warmup=3) == "rrrrr"


def trained(between, extra, body=plain_body, **attach):
    loop = Loop(Net, adamw, body, **attach)
    for k in range(RECORDED + extra):
        loop.step(k)
        between(loop, k)
    return loop


def validated(loop, k):
    loop.model.zero_grad()
    with torch.no_grad():
        loop.results.append(loss_of(loop.model, 1000 + k).item())


def metric_and_gradients():
    kept = []

    def between(loop, k):
        if k == 4:
            kept.append(torch.zeros(1))  # a metric's state, which is made in its first update
        if k == 7:
            validated(loop, k)

    return between


def test_what_comes_between_recorded_steps_does_not_end_the_recording():
    loop = trained(metric_and_gradients(), 12, budget="70%")
    assert len(loop.reports) >= 4
    assert_as_predicted(loop)
    loop.run.detach()
    assert_equal(trained(metric_and_gradients(), 12), loop)


def test_memory_that_grows_from_step_to_step_is_said():
    losses = []

    def body(model, optimizer, k):
        optimizer.zero_grad()
        loss = loss_of(model, k)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    loop = Loop(Net, adamw, body, budget="70%")
    with pytest.raises(stowage.BadInput, match="two steps peaked at") as raised:
        loop.steps(RECORDED + 4)
    assert raised.value.hint.startswith("steps begin with 4 bytes more from one to the next")
    loop.run.detach()


def test_keys_that_are_all_different_are_said():
    run = stowage.attach(Net(), None, "60%")
    for key in range(7):
        with run.step(key):
            pass
    with pytest.warns(stowage.StowageWarning, match="8 keys have begun, and none has a plan"):
        with run.step(7):
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with run.step(8):
            pass
    run.detach()


class WithBuffer:
    """A recording with a buffer beside some of its steps, as a calibration on a GPU has one beside steps that copy."""

    made = []

    def __init__(self, *arguments):
        self._recording = _RECORDING(*arguments)
        self._buffer = None
        WithBuffer.made.append(self)

    def __getattr__(self, name):
        return getattr(self._recording, name)

    def end(self):
        last = self._recording.end()
        self._buffer = torch.empty(1 << 16) if self._recording.steps in (6, 7) else None  # its second warm-up
        return last


_RECORDING = _torch.Recording


def test_memory_of_the_recording_itself_is_none_of_the_loops(monkeypatch):
    monkeypatch.setattr(_torch, "Recording", WithBuffer)
    monkeypatch.setattr(WithBuffer, "made", [])
    loop = Loop(Net, adamw, plain_body, budget="70%").steps(RECORDED + 3)
    assert len(WithBuffer.made) == 1 and len(loop.reports) == 3
    assert_as_predicted(loop)
    loop.run.detach()
