"""transformers' Trainer under a plan."""

import gc

import pytest
import stowage
import torch
from training_case import FAST, RECORDED

transformers = pytest.importorskip("transformers")


def words(count, seed):
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randint(0, 100, (count, 32), generator=generator)
    return [{"input_ids": row, "labels": row.clone()} for row in rows]


def train(folder, callbacks, accumulation):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=3, n_embd=64, n_head=4, vocab_size=100, n_positions=32)
    model = transformers.GPT2LMHeadModel(config)
    arguments = transformers.TrainingArguments(
        output_dir=str(folder), per_device_train_batch_size=4, gradient_accumulation_steps=accumulation,
        max_steps=RECORDED + 6, logging_steps=1, save_steps=RECORDED + 2, eval_strategy="steps",
        eval_steps=RECORDED + 3, report_to=[], use_cpu=True, disable_tqdm=True, seed=1, optim="adamw_torch")
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=words(400, 1), eval_dataset=words(8, 2),
                                   callbacks=callbacks)
    trainer.train()
    history = [{key: row[key] for key in ("loss", "eval_loss", "grad_norm") if key in row}
               for row in trainer.state.log_history]
    saved = sorted(folder.glob("checkpoint-*/model.safetensors"))
    return history, [parameter.detach().clone() for parameter in model.parameters()], [p.read_bytes() for p in saved]


@pytest.mark.parametrize("accumulation", [1, 2])
def test_a_trainer_has_the_same_results(tmp_path, accumulation):
    from stowage.trainer import StowageCallback

    torch.set_num_threads(1)
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
