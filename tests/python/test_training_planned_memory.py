"""Planned memory on the CPU device, beside what has none of it: a forked process, another plan's step."""

import pytest
import stowage
import torch

from training_case import RECORDED, Loop, Net, adamw, assert_equal, plain_body

pytestmark = pytest.mark.usefixtures("one_thread")


class Ones(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.zeros(512, 64).clone().add_(1), torch.arange(512) % 10


def test_a_data_loader_may_start_its_workers_within_a_step():
    fixed = Ones()[0]

    def body(model, optimizer, k):
        loader = torch.utils.data.DataLoader(Ones(), batch_size=None, num_workers=1, timeout=60)
        x, y = next(iter(loader)) if k >= RECORDED else fixed
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.item()

    plain = Loop(Net, adamw, body).steps(RECORDED + 2)
    planned = Loop(Net, adamw, body, budget="90%", placement="planned").steps(RECORDED + 2)
    assert planned.run.is_planned and planned.run.planned_memory()["served"] > 0
    planned.run.detach()
    assert_equal(plain, planned)


def test_a_plan_without_memory_of_its_own_takes_none_of_the_plan_around_it():
    loop = Loop(Net, adamw, plain_body, budget="100%").steps(RECORDED)
    loop.run.detach()
    recorded = loop.run.trace()
    least = stowage.plan(recorded, "1%", allow="params").kept_from_bytes
    plan = stowage.plan(recorded, least, allow="params").plan_or_raise().to_dict()
    assert plan["parameters"]["shards"]

    def run_of(placement):
        torch.manual_seed(0)
        model = Net()
        optimizer = adamw(model.parameters())
        of = stowage.Plan.from_dict({**plan, "placement": placement})
        return model, optimizer, stowage.attach(model, optimizer, trace=recorded, plan=of)

    outer, inner = run_of("planned"), run_of("caching")
    losses = []
    for k in range(3):
        with outer[2].step():
            with inner[2].step():
                torch.manual_seed(k)
                losses.append(plain_body(inner[0], inner[1], k))
            torch.manual_seed(k)
            assert plain_body(outer[0], outer[1], k) == losses[-1]
    memory = outer[2].planned_memory()
    assert memory["served"] > 0 and memory["conflicts"] == 0, memory["surprises"]
