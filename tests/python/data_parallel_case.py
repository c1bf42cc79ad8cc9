"""What tests of data parallelism share: ranks, each a process with Gloo or with NCCL on a GPU of its own, and loops of
a model in DDP."""

import contextlib
import datetime
import gc
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import traceback

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from training_case import Block, Loop, adamw, assert_equal, batch

PATIENCE = 300  # s until a rank counts as hung


class Ranks:
    """Processes of one group that run functions that they find by their names. As a context it leaves none behind."""

    def __init__(self, count, backend="gloo"):
        self.count = count
        self.backend = backend
        self._folder = None
        self._ranks = []  # a process and its pipe each

    def __enter__(self):
        # Copies of a process that has torch, and no thread of autograd's or OpenMP's yet.
        context = multiprocessing.get_context("spawn" if self.backend == "nccl" else "forkserver")
        context.set_forkserver_preload(["torch.distributed.fsdp", "stowage"])
        self._folder = tempfile.TemporaryDirectory()
        for rank in range(self.count):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve,
                                      args=(rank, self.count, self.backend, f"{self._folder.name}/store", theirs))
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


def _serve(rank, count, backend, store, pipe):
    torch.set_num_threads(1)
    if backend == "nccl":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        os.environ.setdefault("NCCL_NVLS_ENABLE", "0")  # multicast between GPUs, which these sums do without
        torch.cuda.set_device(rank)
        torch.use_deterministic_algorithms(True)
    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=count,
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
        if backend == "nccl":
            torch.cuda.empty_cache()
        pipe.send(answer)
    dist.destroy_process_group()


def place():
    """Where this rank trains."""
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


class Net(torch.nn.Module):
    """Blocks with dropout; with a part that no step calls, or buffers, where asked for."""

    def __init__(self, unused=False, norm=False, width=64, blocks=4):
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
    """Of this rank's own batch."""
    width = next(model.parameters()).shape[-1]
    x, y = (each.to(place()) for each in batch(1000 * dist.get_rank() + k, size, width))
    return torch.nn.functional.cross_entropy(model(x), y)


def body(model, optimizer, k, parts=1, autocast=False, sync="last", size=512):
    """A step of so many micro-batches, whose gradients are reduced behind the last one, or behind each."""
    optimizer.zero_grad()
    losses = []
    for part in range(parts):
        with model.no_sync() if sync == "last" and part < parts - 1 else contextlib.nullcontext():
            with torch.autocast(place().type, dtype=torch.bfloat16, enabled=autocast):
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
        model = DDP(make(**net).to(place()), bucket_cap_mb=0.1, **ddp)
        prepare(model)
        return model

    loop = Loop(in_ddp, adamw, counted, **attach)
    loop.collectives = counts
    return loop


_hosts = []  # the group of all ranks over Gloo


def all_say(yes):
    """Whether every rank says so. Of this the GPUs learn nothing, nor does the count of collectives."""
    if not _hosts:
        _hosts.append(dist.new_group(backend="gloo"))
    said = torch.tensor(int(yes))
    dist.all_reduce(said, dist.ReduceOp.MIN, group=_hosts[0])
    return bool(said)


def until_planned(planned=4, most=500, **way):
    """A loop whose ranks have all made so many planned steps. How many a recording takes hangs on a GPU's times."""
    loop = ddp_loop(**way)
    while not all_say(len(loop.reports) >= planned):
        for _ in range(8):
            loop.step(len(loop.results))
        assert len(loop.results) < most, loop.run.report()
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


def torchrun(*arguments):
    """What two ranks print, to stdout and to stderr."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False,
                           env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert ended.returncode == 0, ended.stderr
    return ended.stdout, ended.stderr


SCRIPT = """
import hashlib
import os
import sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

backend, steps = sys.argv[1], int(sys.argv[2])
device, rows = "cpu", 512
if backend == "nccl":
    rows = 1 << 15  # beside the libraries' workspaces a plan has something to move
    device = f"cuda:{os.environ['LOCAL_RANK']}"
    torch.cuda.set_device(device)
    torch.use_deterministic_algorithms(True)
dist.init_process_group(backend)
torch.manual_seed(0)
blocks = [torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(4)]
model = DistributedDataParallel(torch.nn.Sequential(*blocks).to(device), bucket_cap_mb=0.1)
optimizer = torch.optim.AdamW(model.parameters())
for k in range(steps):
    x = torch.randn(rows, 64, generator=torch.Generator().manual_seed(2 * k + dist.get_rank())).to(device)
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
weights = [tensor.cpu().numpy().tobytes() for tensor in model.state_dict().values()]
print(f"rank {dist.get_rank()}: {loss.item()} {hashlib.sha256(b''.join(weights)).hexdigest()}\\n", end="", flush=True)
dist.destroy_process_group()
"""


def assert_script_is_the_same(folder, backend, steps):
    """Without a change to it, under a plan, as it ends without one."""
    script = folder / "train.py"
    script.write_text(SCRIPT)
    plain, _ = torchrun(script, backend, str(steps))
    planned, said = torchrun("-m", "stowage", "run", "--budget", "60%", script, backend, str(steps))
    assert len(plain.splitlines()) == 2
    assert sorted(planned.splitlines()) == sorted(plain.splitlines())
    assert len(re.findall(r"\d planned steps, 0 of them off the plan", said)) == 2, said
