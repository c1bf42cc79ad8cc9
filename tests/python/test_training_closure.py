"""An optimizer's step that is given a closure: forward and backward inside of it, then the updates one by one."""

import pytest
import torch
from training_case import Loop, Net, assert_as_predicted, assert_equal, loss_of, plain_body, updates_in

pytestmark = pytest.mark.usefixtures("one_thread")

OPTIMIZERS = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop",
              "Adafactor"]


def closure_body(model, optimizer, k):
    def closure():
        optimizer.zero_grad()
        loss = loss_of(model, k)
        loss.backward()
        return loss.detach()

    with torch.no_grad():  # which the step lifts for the closure
        return optimizer.step(closure).item()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_closure_is_called_once_and_the_updates_are_divided(name):
    def optimizer(parameters):
        return getattr(torch.optim, name)(parameters, lr=1e-3)

    without = Loop(Net, optimizer, plain_body).steps(15)
    plain = Loop(Net, optimizer, closure_body).steps(15)
    assert_equal(without, plain)
    planned = Loop(Net, optimizer, closure_body, budget="60%").steps(15)
    planned.run.materialise()
    assert_equal(plain, planned)
    assert_as_predicted(planned, skip=1)
    assert updates_in(planned.run.trace()) == len(list(planned.model.parameters()))


class Own(torch.optim.SGD):
    """May look at all parameters at once: its step is one piece of work."""


def test_an_optimizer_that_is_not_divided_takes_a_closure():
    def optimizer(parameters):
        return Own(parameters, lr=1e-2, momentum=0.9)

    plain = Loop(Net, optimizer, closure_body).steps(15)
    planned = Loop(Net, optimizer, closure_body, budget="70%", allow="offload,recompute").steps(15)
    assert_equal(plain, planned)
    assert_as_predicted(planned)
    assert updates_in(planned.run.trace()) == 0


def test_a_closure_that_raises_leaves_the_optimizer_as_it_was():
    def body(model, optimizer, k):
        def closure():
            loss = loss_of(model, k)
            optimizer.zero_grad()
            loss.backward()
            if k == 13:
                raise KeyError("thirteen")
            return loss.detach()

        try:
            return optimizer.step(closure).item()
        except KeyError:
            if k != 13:
                raise
            assert [len(group["params"]) for group in optimizer.param_groups] == [len(list(model.parameters()))]
            raise

    def run(**attach):
        loop = Loop(Net, lambda parameters: torch.optim.Adam(parameters, lr=1e-3), body, **attach)
        for k in range(16):
            if k == 13:
                with pytest.raises(KeyError):
                    loop.step(k)
            else:
                loop.step(k)
        return loop

    plain = run()
    planned = run(budget="60%")
    planned.run.materialise()
    assert_equal(plain, planned)
    assert planned.reports[-1].on_plan


def test_hooks_of_the_user_see_the_closure_called_between_them():
    def run(**attach):
        loop = Loop(Net, lambda parameters: torch.optim.AdamW(parameters, lr=1e-3), closure_body, **attach)
        seen = []
        first = next(loop.model.parameters())
        loop.optimizer.register_step_pre_hook(lambda *_: seen.append(("ahead", first.grad is None)))
        loop.optimizer.register_step_post_hook(lambda *_: seen.append(("behind", first.grad is None)))
        loop.model.register_forward_hook(lambda *_: seen.append("forward"))
        loop.steps(14)
        return seen

    plain = run()
    assert plain[:3] == [("ahead", True), "forward", ("behind", False)]
    assert run(budget="60%", allow="offload") == plain
