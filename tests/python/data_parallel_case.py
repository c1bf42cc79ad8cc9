"""What tests of data parallelism share: ranks, each a process with Gloo, and loops of a model in DDP."""

import contextlib
import datetime
import multiprocessing
import tempfile
import traceback

import stowage
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from training_case import Block, Loop, batch

PATIENCE = 300  # s until a case counts as hung


class Ranks:
    """Processes of one group that run what they are told; leaves none behind."""

    def __init__(self, count, timeout=60):
        context = multiprocessing.get_context("spawn")
        self._folder = tempfile.TemporaryDirectory()
        self._pipes = []
        self.processes = []
        for rank in range(count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(rank, count, f"{self._folder.name}/store", timeout, theirs))
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self.processes.append(process)

    def begin(self, case, *args):
        """``case(*args)`` on all of them; it is found by its name."""
        for pipe in self._pipes:
            pipe.send((case, args))

    def answer(self, rank, patience=PATIENCE):
        """("result", what it returned), ("error", a traceback) or ("ended", its exit code)."""
        assert self._pipes[rank].poll(patience), f"rank {rank} hangs"
        try:
            return self._pipes[rank].recv()
        except EOFError:
            self.processes[rank].join()
            return "ended", self.processes[rank].exitcode

    def run(self, case, *args):
        """What it returned on each."""
        self.begin(case, *args)
        answers = [self.answer(rank) for rank in range(len(self._pipes))]
        for rank, (kind, what) in enumerate(answers):
            assert kind == "result", f"rank {rank}: {what}"
        return [what for _, what in answers]

    def close(self):
        for pipe in self._pipes:
            pipe.close()
        for process in self.processes:
            process.join(10)
            if process.is_alive():
                process.kill()
                process.join()
        self._folder.cleanup()


def _serve(rank, count, store, timeout, pipe):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=count,
                            timeout=datetime.timedelta(seconds=timeout))
    while True:
        try:
            case, args = pipe.recv()
        except EOFError:
            break
        try:
            answer = "result", case(*args)
        except BaseException:
            answer = "error", traceback.format_exc()
        pipe.send(answer)
    dist.destroy_process_group()


class Net(torch.nn.Module):
    """Blocks with dropout, a BatchNorm with buffers, a part that no step calls."""

    def __init__(self, width=64, blocks=4, unused=False, norm=False):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block(width) for _ in range(blocks))
        self.norm = torch.nn.BatchNorm1d(width) if norm else torch.nn.Identity()
        self.unused = torch.nn.Linear(width, width) if unused else None
        self.head = torch.nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def rank_loss(model, k, size=512):
    """Of the rank's own batch."""
    x, y = batch(1000 * dist.get_rank() + k, size)
    return torch.nn.functional.cross_entropy(model(x), y)


def adamw(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3)


def body_of(parts=1, autocast=False):
    """Of a step of ``parts`` micro-batches, reduced once."""

    def body(model, optimizer, k):
        optimizer.zero_grad()
        losses = []
        for part in range(parts):
            with contextlib.nullcontext() if part == parts - 1 else model.no_sync():
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                    loss = rank_loss(model, parts * k + part) / parts
                loss.backward()
            losses.append(loss.item())
        optimizer.step()
        return losses

    return body


def ddp_loop(body, ddp=None, net=None, optimizer=adamw, **attach):
    """With buckets of a few layers each."""
    return Loop(lambda: DDP(Net(**(net or {})), bucket_cap_mb=0.1, **(ddp or {})), optimizer, body, **attach)
