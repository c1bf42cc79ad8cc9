"""The peers: each makes a model run with less memory in the way its users do; and Stowage from Python.

A peer is a function of (model, device) that returns (what to call for the forward, a function that makes the
context of one step). It raises NotAvailable where this machine lacks what it needs.
"""

import contextlib
import os
import shutil
import sysconfig

import torch

TRL_STASH = 5  # tensors; TRL's default
BUDGETS = ("1.0", "0.5", "0.2")


class NotAvailable(Exception):
    pass


def none(model, device):
    return model, contextlib.nullcontext


def save_on_cpu(model, device):
    pinned = device == "cuda"
    return model, lambda: torch.autograd.graph.save_on_cpu(pin_memory=pinned)


def trl(model, device):
    """TRL's activation offloading, as its trainers use it: around forward and backward, the head left out."""
    try:
        from accelerate import PartialState
        from trl.models.activation_offloading import get_act_offloading_ctx_manager
    except ImportError as error:
        raise NotAvailable(f"trl cannot be imported: {error}") from error
    PartialState(cpu=device == "cpu")  # its logger demands one, and warns when host memory runs low
    context = get_act_offloading_ctx_manager(
        model, use_pin_memory=device == "cuda", use_streams=device == "cuda", max_fwd_stash_size=TRL_STASH
    )
    return model, lambda: context


def checkpoint(model, device):
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model, contextlib.nullcontext


def why_no_compiler():
    """What Triton lacks to build its launchers, or None."""
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return f"no triton: {error}"
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        return "no C compiler (CC, gcc, clang)"
    header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
    if not os.path.exists(header):
        return "Python.h is not installed"
    return None


def compiled(budget):
    def peer(model, device):
        if device == "cuda" and (reason := why_no_compiler()):
            raise NotAvailable(reason)
        import torch._functorch.config

        torch._functorch.config.activation_memory_budget = budget
        # On a CPU, where only the script is tried out: the same partitioner without a compiler behind it.
        backend = "inductor" if device == "cuda" else "aot_eager_decomp_partition"
        return torch.compile(model, backend=backend, dynamic=False), contextlib.nullcontext

    return peer


class Stowage:
    """stowage.attach(), whose first steps are a recording."""

    def __init__(self, model, device, budget):
        if device == "cpu":
            torch.set_num_threads(1)  # which a recording there needs
        try:
            import stowage
        except ImportError as error:
            raise NotAvailable(f"stowage cannot be imported: {error}") from error
        fewest = stowage.Recording(warmup=1, steps=4, observed=2)
        self.run = stowage.attach(model, budget=budget, recording=fewest)

    def __call__(self):
        return self.run.step()

    def is_ready(self):
        return self.run.is_planned

    def peaks(self):
        """Of the last step: planned memory is not among what PyTorch's allocator counts."""
        last = self.run.last_report()
        kinds = ("requested", "active", "reserved")
        return {f"peak_{kind}_bytes": getattr(last, f"peak_{kind}_bytes") for kind in kinds}

    def finish(self):
        """What the plan says, and everything back."""
        last, predicted, outcome = self.run.last_report(), self.run.predicted(), self.run.outcome()
        self.run.materialise()
        return {"on_plan": last.on_plan, "predicted": predicted, "recorded_step_ns": outcome.resident["step_ns"],
                "bound_ns": outcome.bound_ns, "memory": self.run.planned_memory()}  # fmt: skip


def stowage_at(budget):
    def peer(model, device):
        return model, Stowage(model, device, budget)

    return peer


STOWAGE = "stowage-"  # and a budget: stowage-34.9GB


def peer_of(row):
    """Its function; KeyError if there is no such row."""
    return stowage_at(row.removeprefix(STOWAGE)) if row.startswith(STOWAGE) else PEERS[row]


PEERS = {
    "none": none,
    "save_on_cpu": save_on_cpu,
    "trl": trl,
    "checkpoint": checkpoint,
    **{f"compile-{budget}": compiled(float(budget)) for budget in BUDGETS},
}
