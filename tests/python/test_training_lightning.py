"""Lightning's Trainer under a plan."""

import gc
import logging
import subprocess
import sys
import warnings

import pytest
import stowage
import torch
from training_case import FAST, RECORDED, Net, updates_in

pl = pytest.importorskip("lightning.pytorch")
from stowage.lightning import StowageCallback  # noqa: E402  needs Lightning

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.filterwarnings("ignore::UserWarning:lightning")]
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

ENOUGH = RECORDED + 6


class Lit(pl.LightningModule):
    def __init__(self, fails_at=None):
        super().__init__()
        self.net = Net()
        self.fails_at = fails_at
        self.losses = []
        self.validated = []

    def _loss(self, batch):
        x, y = batch
        return torch.nn.functional.cross_entropy(self.net(x), y)

    def training_step(self, batch, batch_idx):
        loss = self._loss(batch)
        if len(self.losses) == self.fails_at:
            raise KeyError("a training step")
        self.losses.append(loss.item())
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self._loss(batch)
        self.validated.append(loss.item())
        self.log("validated", loss)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3)


class Reports(pl.Callback):
    """Those of all planned steps, of what stands ahead of it in the list of callbacks."""

    def __init__(self, callback):
        self._callback = callback
        self.seen = []

    def on_train_batch_end(self, trainer, *_):
        run = self._callback.run
        report = run.last_report() if run.keys else None
        if report is not None and (not self.seen or self.seen[-1] is not report):
            self.seen.append(report)


def loader(batches, seed, last=32):
    generator = torch.Generator().manual_seed(seed)
    rows = 32 * (batches - 1) + last
    samples = torch.utils.data.TensorDataset(torch.randn(rows, 64, generator=generator),
                                             torch.randint(0, 10, (rows,), generator=generator))
    return torch.utils.data.DataLoader(samples, batch_size=32)


def made(kind, **arguments):
    torch.manual_seed(0)
    return kind(**arguments)


def fit(callbacks, model=None, batches=200, last=32, resume=None, **options):
    model = model or made(Lit)
    torch.manual_seed(1)
    settings = dict(max_steps=ENOUGH, max_epochs=-1, logger=False, enable_progress_bar=False, limit_val_batches=0,
                    enable_model_summary=False, enable_checkpointing=False, accelerator="cpu", devices=1)
    trainer = pl.Trainer(callbacks=callbacks, **{**settings, **options})
    trainer.fit(model, loader(batches, 1, last), loader(2, 2), ckpt_path=resume)
    return model


def fit_under_a_plan(budget="60%", callbacks=(), model=None, attach={}, **options):
    gc.collect()
    callback = StowageCallback(budget, recording=FAST, **attach)
    reports = Reports(callback)
    model = fit([callback, reports, *callbacks], model, **options)
    for report in reports.seen:
        assert report.on_plan, report.first_difference
    return model, callback, reports.seen


def assert_same(plain, planned):
    assert planned.losses == plain.losses
    assert planned.validated == plain.validated
    for (name, a), b in zip(plain.named_parameters(), planned.parameters(), strict=True):
        assert torch.equal(a, b), name


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_fit_is_the_same_at_the_predicted_byte(accumulation):
    planned, callback, reports = fit_under_a_plan(accumulate_grad_batches=accumulation)
    predicted = callback.run.outcome().predicted["peak_requested_bytes"]
    assert [report.peak_requested_bytes for report in reports] == [predicted] * (ENOUGH - RECORDED)
    assert callback.run.outcome().resident["peak_requested_bytes"] > predicted
    # Divided, although Lightning gives it a closure.
    assert updates_in(callback.run.trace()) == len(list(planned.parameters()))
    plain = fit([], accumulate_grad_batches=accumulation)
    assert len(plain.losses) == ENOUGH * accumulation
    assert_same(plain, planned)
    with pytest.raises(stowage.UsageError, match="detached"):
        with callback.run.step():
            pass


# Parameters and states are away between steps: who looks at them without asking gets an error.
STREAMING = dict(attach={"allow": "params,gradients,optimizer"}, budget="80%")


def checkpoints(folder):
    found = [torch.load(path, weights_only=True) for path in sorted(folder.glob("*.ckpt"))]
    return [(file["state_dict"], [state["state"] for state in file["optimizer_states"]]) for file in found]


def test_validations_and_checkpoints_see_everything(tmp_path):
    def saving(folder):
        return pl.callbacks.ModelCheckpoint(folder, filename="{step}", save_top_k=-1, every_n_train_steps=8)

    options = dict(max_steps=36, val_check_interval=7, limit_val_batches=2, enable_checkpointing=True)
    planned, callback, reports = fit_under_a_plan(callbacks=[saving(tmp_path / "planned")], **STREAMING, **options)
    assert len(reports) >= 8
    moved = callback.run.plan().to_dict()
    assert "parameters" in moved or "optimizer" in moved
    plain = fit([saving(tmp_path / "plain")], **options)
    assert len(plain.validated) >= 2 * (36 // 7)
    assert_same(plain, planned)
    saved, expected = checkpoints(tmp_path / "planned"), checkpoints(tmp_path / "plain")
    assert len(expected) == 4
    torch.testing.assert_close(saved, expected, rtol=0, atol=0)


def test_a_checkpoint_is_gone_on_from(tmp_path):
    def saving(folder):
        return pl.callbacks.ModelCheckpoint(folder, filename="{step}", save_top_k=-1, every_n_train_steps=ENOUGH - 2)

    fit_under_a_plan(callbacks=[saving(tmp_path)], **STREAMING, enable_checkpointing=True)
    options = dict(resume=tmp_path / f"step={ENOUGH - 2}.ckpt", max_steps=2 * ENOUGH)
    planned, _, reports = fit_under_a_plan(**options)
    assert len(reports) == ENOUGH + 2 - RECORDED
    plain = fit([], **options)
    assert len(plain.losses) == ENOUGH + 2
    assert_same(plain, planned)


def test_an_epochs_last_batches_are_steps_of_their_own():
    options = dict(batches=10, last=6, accumulate_grad_batches=3, max_steps=32, limit_val_batches=2)
    planned, callback, reports = fit_under_a_plan(**options)
    whole, rest = (((32, 64), (32,)), 3), (((6, 64), (6,)), 1)
    assert callback.run.keys == [whole, rest]
    assert len(reports) >= 4
    assert callback.run.plan(rest) is None
    assert_same(fit([], **options), planned)


def test_a_validation_within_an_accumulation_ends_the_plan_of_this_step():
    # The 31st batch is the first of step 16, the 33rd the first of step 17.
    options = dict(accumulate_grad_batches=2, val_check_interval=31, limit_val_batches=2)
    with pytest.warns(stowage.StowageWarning, match="within an accumulation"):
        planned, _, reports = fit_under_a_plan(**STREAMING, **options)
    assert len(reports) == ENOUGH - RECORDED - 1
    plain = fit([], **options)
    assert len(plain.validated) >= 2
    assert_same(plain, planned)


def test_a_step_that_raises_leaves_the_plan():
    plain, planned = made(Lit, fails_at=RECORDED + 3), made(Lit, fails_at=RECORDED + 3)
    with pytest.raises(KeyError):
        fit([], plain)
    with pytest.raises(KeyError):
        fit_under_a_plan(model=planned, **STREAMING)
    assert len(plain.losses) == RECORDED + 3
    assert_same(plain, planned)
    assert not any("forward" in module.__dict__ for module in planned.modules())
    planned.fails_at = plain.fails_at = None
    planned, _, reports = fit_under_a_plan("90%", model=planned)  # of the process, which has three models
    assert len(reports) == ENOUGH - RECORDED
    assert_same(fit([], plain), planned)


def test_a_batch_that_is_left_out_ends_its_step():
    class Skips(Lit):
        def on_train_batch_start(self, batch, batch_idx):
            return -1 if batch_idx == 15 else None

    with warnings.catch_warnings():
        warnings.simplefilter("error", stowage.StowageWarning)
        planned, callback, reports = fit_under_a_plan(model=made(Skips), batches=40)
    assert len(reports) >= 4
    assert_same(fit([], made(Skips), batches=40), planned)


def test_two_optimizers_are_refused():
    class Two(Lit):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def configure_optimizers(self):
            return [torch.optim.SGD(self.net.blocks.parameters()), torch.optim.SGD(self.net.head.parameters())]

    with pytest.raises(stowage.UsageError, match="2 optimizers"):
        fit([StowageCallback("60%")], Two())


def test_an_update_of_the_users_own_is_a_step():
    class Manual(Lit):
        def __init__(self):
            super().__init__()
            self.automatic_optimization = False

        def training_step(self, batch, batch_idx):
            loss = self._loss(batch)
            self.manual_backward(loss)
            self.losses.append(loss.item())
            if batch_idx % 2:
                self.optimizers().step()
                self.optimizers().zero_grad()

    planned, _, reports = fit_under_a_plan(model=made(Manual))
    assert len(reports) == ENOUGH - RECORDED
    plain = fit([], made(Manual))
    assert len(plain.losses) == 2 * ENOUGH
    assert_same(plain, planned)


FALLBACK = """
import sys
{ahead}
from stowage.lightning import StowageCallback
import pytorch_lightning
print(issubclass(StowageCallback, pytorch_lightning.Callback))
"""


@pytest.mark.parametrize("ahead", ["sys.modules['lightning'] = None  # as where it is not installed",
                                   "import pytorch_lightning"])
def test_pytorch_lightning_will_do(ahead):
    pytest.importorskip("pytorch_lightning")
    ended = subprocess.run([sys.executable, "-c", FALLBACK.format(ahead=ahead)], capture_output=True, text=True)
    assert ended.stdout == "True\n", ended.stderr
