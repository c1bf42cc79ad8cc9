"""What the programs of this folder share: a loop that is timed, and what is said of it."""

import contextlib
import statistics
import time

import torch

import stowage


class Timed:
    """A loop's results and times: ``step(k)`` runs ``work(k)`` as one step of ``run``, which may be None."""

    def __init__(self, work, run=None):
        self.work = work
        self.run = run
        self.results = []
        self.times = []

    def steps(self, count):
        for _ in range(count):
            began = time.perf_counter()
            with self.run.step() if self.run else contextlib.nullcontext():
                self.results.append(self.work(len(self.results)))
            self.times.append(time.perf_counter() - began)
        return self


def record(model, optimizer, work):
    """The trace of a step, made of steps that the loop makes anyway: here of a model that is thrown away."""
    with stowage.attach(model, optimizer, "100%") as run:
        loop = Timed(work, run).steps(1)
        while run.trace() is None:
            loop.steps(1)
        return run.trace()


def tell(trace, plain, planned, models):
    """Prints peak, time and comparison; whether all is as it should be. models: the plain one and the planned one."""
    run = planned.run
    measured, predicted = run.last_report().peak_requested_bytes, run.predicted()["peak_requested_bytes"]
    resident = stowage.simulate(trace).peak_requested_bytes
    run.materialise()
    same = plain.results == planned.results and all(map(torch.equal, models[0].parameters(), models[1].parameters()))
    print(f"peak {resident / 1e6:.2f} MB without the plan, {measured / 1e6:.2f} MB under it; as predicted: "
          f"{measured == predicted}")
    times = [1e3 * statistics.median(loop.times[-8:]) for loop in (plain, planned)]
    print(f"step {times[0]:.1f} ms, under the plan {times[1]:.1f} ms")
    print(f"losses and parameters bitwise the plain loop's: {same}")
    return same and measured == predicted and measured < resident and run.last_report().on_plan
