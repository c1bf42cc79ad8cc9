"""transformers' Trainer under a plan."""

import gc

import pytest
import stowage
import torch
from training_case import FAST, RECORDED

pytestmark = pytest.mark.usefixtures("one_thread")
transformers = pytest.importorskip("transformers")


def words(count, seed, length=32):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, 100, (count, length), generator=generator)
    return [{"input_ids": row, "labels": row.clone()} for row in rows]


def train(folder, callbacks, accumulation, rows=None, **options):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=3, n_embd=64, n_head=4, vocab_size=100, n_positions=32)
    model = transformers.GPT2LMHeadModel(config)
    settings = dict(
        output_dir=str(folder), per_device_train_batch_size=4, gradient_accumulation_steps=accumulation,
        max_steps=RECORDED + 6, logging_steps=1, save_steps=RECORDED + 2, eval_strategy="steps",
        eval_steps=RECORDED + 3, report_to=[], use_cpu=True, disable_tqdm=True, seed=1, optim="adamw_torch")
    arguments = transformers.TrainingArguments(**{**settings, **options})
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=rows or words(400, 1),
                                   eval_dataset=words(8, 2), callbacks=callbacks)
    trainer.train()
    history = [{key: row[key] for key in ("loss", "eval_loss", "grad_norm") if key in row}
               for row in trainer.state.log_history]
    saved = sorted(folder.glob("checkpoint-*/model.safetensors"))
    return history, [parameter.detach().clone() for parameter in model.parameters()], [p.read_bytes() for p in saved]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_trainer_has_the_same_results(tmp_path, accumulation):
    from stowage.trainer import StowageCallback

    callback = StowageCallback("75%", recording=FAST)
    planned = train(tmp_path / "planned", [callback], accumulation)
    report = callback.run.last_report()
    assert report.on_plan, report.first_difference
    assert callback.run.outcome().plan is not None
    gc.collect()
    plain = train(tmp_path / "plain", [], accumulation)
    assert planned[0] == plain[0]
    assert len(plain[0]) > RECORDED
    assert all(map(torch.equal, planned[1], plain[1]))
    assert planned[2] == plain[2] and len(plain[2]) == 2
    with pytest.raises(stowage.UsageError, match="detached"):
        with callback.run.step():
            pass


class Reports(transformers.TrainerCallback):
    """Of all planned steps, by key, of the callback ahead of it."""

    def __init__(self, callback):
        self._callback = callback
        self.seen = {}

    def on_step_end(self, *_, model, **__):
        assert not model._forward_pre_hooks  # the model is itself between steps
        run = self._callback.run
        for key in run.keys:
            report = run.last_report(key)
            if report is not None and report not in self.seen.setdefault(key, []):
                self.seen[key].append(report)


def assert_same(planned, plain):
    assert planned[0] == plain[0] and len(plain[0]) >= RECORDED
    assert all(map(torch.equal, planned[1], plain[1]))
    assert planned[2] == plain[2]


def assert_on_plan(callback, seen):
    batch = 2 * 4 * 32 * 8  # bytes, of which the Trainer still holds the last one or not
    for key, reports in seen.items():
        predicted = callback.run.outcome(key).predicted["peak_requested_bytes"]
        assert callback.run.outcome(key).resident["peak_requested_bytes"] > predicted + 10 * batch
        for report in reports:
            assert report.on_plan, report.first_difference
            assert abs(report.peak_requested_bytes - predicted) <= batch


def test_two_shapes_in_turn_have_a_plan_each(tmp_path):
    from stowage.trainer import StowageCallback

    steps = 2 * (RECORDED + 4)
    # Batches of four of one length, then of the other: the sampler keeps the order of rows.
    long, short = words(2 * steps, 1), words(2 * steps, 2, length=24)
    rows = [row for at in range(0, 2 * steps, 4) for row in long[at:at + 4] + short[at:at + 4]]
    options = dict(max_steps=steps, train_sampling_strategy="sequential", save_strategy="no", eval_strategy="no")
    callback = StowageCallback("85%", recording=FAST)
    reports = Reports(callback)
    planned = train(tmp_path / "planned", [callback, reports], 1, rows, **options)
    assert [dict(shapes)["input_ids"] for shapes, parts in callback.run.keys] == [(4, 32), (4, 24)]
    assert all(callback.run.plan(key) is not None for key in callback.run.keys) and len(reports.seen) == 2
    assert callback.run.outcome(callback.run.keys[0]).plan != callback.run.outcome(callback.run.keys[1]).plan
    assert_on_plan(callback, reports.seen)
    gc.collect()
    assert_same(planned, train(tmp_path / "plain", [], 1, rows, **options))


def test_an_epochs_last_accumulation_with_fewer_parts_has_a_key_of_its_own(tmp_path):
    from stowage.trainer import StowageCallback

    options = dict(rows=words(5 * 4, 1), max_steps=3 * (RECORDED + 3), save_strategy="no", eval_strategy="no")
    callback = StowageCallback("85%", recording=FAST)
    reports = Reports(callback)
    planned = train(tmp_path / "planned", [callback, reports], 2, **options)
    assert [parts for _, parts in callback.run.keys] == [2, 1]
    assert_on_plan(callback, reports.seen)
    assert len(reports.seen) == 2
    gc.collect()
    assert_same(planned, train(tmp_path / "plain", [], 2, **options))


class OfParts(transformers.Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        logits = model.lm_head(model.transformer(input_ids=inputs["input_ids"]).last_hidden_state)
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), inputs["labels"].flatten())


@pytest.mark.parametrize("key", ["none", "parts"])
def test_without_a_first_forward_a_step_begins_where_the_trainer_says(tmp_path, monkeypatch, key):
    from stowage.trainer import StowageCallback

    if key == "parts":
        monkeypatch.setattr(transformers, "Trainer", OfParts)
    options = dict(max_steps=RECORDED + 5, save_strategy="no", eval_strategy="no")
    callback = StowageCallback("85%", recording=FAST, **({"key": None} if key == "none" else {}))
    reports = Reports(callback)
    planned = train(tmp_path / "planned", [callback, reports], 1, **options)
    assert callback.run.keys == [None]
    assert_on_plan(callback, reports.seen)
    assert len(reports.seen) == 1
    gc.collect()
    assert_same(planned, train(tmp_path / "plain", [], 1, **options))
