"""What tests of data parallelism share: ranks, each a process with Gloo, and loops of a model in DDP."""

import contextlib
import datetime
import gc
import multiprocessing
import tempfile
import traceback

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from training_case import Block, Loop, adamw, assert_equal, batch

PATIENCE = 300  # s until a rank counts as hung


class Ranks:
    """Processes of one group that run functions that they find by their names. As a context it leaves none behind."""

    def __init__(self, count):
        self.count = count
        self._folder = None
        self._ranks = []  # a process and its pipe each

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory()
        for rank in range(self.count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, self.count, f"{self._folder.name}/store", theirs))
            process.start()
            theirs.close()
            self._ranks.append((process, ours))
        return self

    def __exit__(self, *_):
        for _, pipe in self._ranks:
            pipe.close()
        for process, _ in self._ranks:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        self._ranks.clear()
        self._folder.cleanup()

    def begin(self, case, *args):
        """``case(*args)`` on all of them."""
        for _, pipe in self._ranks:
            pipe.send((case, args))

    def answer(self, rank, patience=PATIENCE):
        """("result", what it returned), ("error", its traceback) or ("ended", the exit code)."""
        process, pipe = self._ranks[rank]
        if not pipe.poll(patience):
            return "hangs", patience
        try:
            return pipe.recv()
        except EOFError:
            process.join()
            return "ended", process.exitcode

    def run(self, case, *args):
        """What it returned on each. Where it raised on one of them, they are not together any more: begins anew."""
        self.begin(case, *args)
        answers = [self.answer(rank) for rank in range(self.count)]
        wrong = [f"rank {rank} {kind}: {what}" for rank, (kind, what) in enumerate(answers) if kind != "result"]
        if wrong:
            self.__exit__()
            self.__enter__()
        assert not wrong, "\n".join(wrong)
        return [what for _, what in answers]


def _serve(rank, count, store, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=count,
                            timeout=datetime.timedelta(seconds=120))
    while True:
        try:
            case, args = pipe.recv()
        except EOFError:
            break
        try:
            answer = "result", case(*args)
        except Exception:
            answer = "error", traceback.format_exc()
        gc.collect()
        pipe.send(answer)
    dist.destroy_process_group()


class Net(torch.nn.Module):
    """Blocks with dropout; with a part that no step calls, or buffers, where asked for."""

    def __init__(self, unused=False, norm=False):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(64) for _ in range(4))
        self.norm = torch.nn.BatchNorm1d(64) if norm else torch.nn.Identity()
        self.unused = torch.nn.Linear(64, 64) if unused else None
        self.head = torch.nn.Linear(64, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def rank_loss(model, k, size=512):
    """Of this rank's own batch."""
    x, y = batch(1000 * dist.get_rank() + k, size)
    return torch.nn.functional.cross_entropy(model(x), y)


def body(model, optimizer, k, parts=1, autocast=False, sync="last", size=512):
    """A step of so many micro-batches, whose gradients are reduced behind the last one, or behind each."""
    optimizer.zero_grad()
    losses = []
    for part in range(parts):
        with model.no_sync() if sync == "last" and part < parts - 1 else contextlib.nullcontext():
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = rank_loss(model, parts * k + part, size) / parts
            loss.backward()
        losses.append(loss.item())
    optimizer.step()
    return losses


def ddp_loop(*, ddp={}, net={}, make=Net, step=body, prepare=lambda model: None, options={}, **attach):
    """With several buckets. Options are the step's."""
    counts = []  # of collectives, by step

    def counted(model, optimizer, k):
        before = dist.group.WORLD._get_sequence_number_for_group()
        result = step(model, optimizer, k, **options)
        counts.append(dist.group.WORLD._get_sequence_number_for_group() - before)
        return result

    def in_ddp():
        model = DDP(make(**net), bucket_cap_mb=0.1, **ddp)
        prepare(model)
        return model

    loop = Loop(in_ddp, adamw, counted, **attach)
    loop.collectives = counts
    return loop


def assert_same(plain, planned):
    """Losses, parameters, state, buffers, gradients and the number of collectives."""
    planned.run.materialise()
    assert_equal(plain, planned)
    assert planned.collectives == plain.collectives
    for (name, a), (_, b) in zip(plain.model.named_buffers(), planned.model.named_buffers(), strict=True):
        assert torch.equal(a, b), name
    for (name, a), (_, b) in zip(plain.model.named_parameters(), planned.model.named_parameters(), strict=True):
        assert (a.grad is None) == (b.grad is None), name
        assert a.grad is None or torch.equal(a.grad, b.grad), name


# To train with DDP, as arguments of ddp_loop().
WAYS = {
    "as it is": {},
    "parts that are reduced once": {"options": {"parts": 3}},
    "parts that are reduced each": {"options": {"parts": 2, "sync": "each"}},
    "gradients in buckets": {"ddp": {"gradient_as_bucket_view": True}},
    "parts in buckets": {"ddp": {"gradient_as_bucket_view": True}, "options": {"parts": 2}},
    "an unused part": {"ddp": {"find_unused_parameters": True}, "net": {"unused": True}},
    "a static graph": {"ddp": {"static_graph": True}, "net": {"unused": True}},
    "autocast": {"options": {"autocast": True}},
}
