"""A GPT-2 of transformers with random weights, first as ever, then in 60 % of its memory: the same losses, bit by bit.

    PYTHONPATH=build/release/python .venv/bin/python examples/python/train_gpt2.py

The lines that Stowage adds are marked.
"""

import contextlib
import sys

import torch
import transformers

import stowage  # Stowage

STEPS = 30


def make_batch(k):
    ids = torch.randint(0, 1000, (8, 64), generator=torch.Generator().manual_seed(k))
    return {"input_ids": ids, "labels": ids}


def train(budget=None):
    torch.manual_seed(0)
    config = transformers.GPT2Config(n_layer=6, n_embd=128, n_head=4, vocab_size=1000, n_positions=64)
    model = transformers.GPT2LMHeadModel(config).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    run = stowage.attach(model, optimizer, budget) if budget else None  # Stowage
    losses = []
    for k in range(STEPS):
        with run.step() if run else contextlib.nullcontext():  # Stowage
            loss = model(**make_batch(k)).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())
    if run:
        print(run.outcome().text())
        print(run.report())
        as_predicted = run.last_report().peak_requested_bytes == run.predicted()["peak_requested_bytes"]
        run.detach()
        return losses, list(model.parameters()), as_predicted
    return losses, list(model.parameters())


def main():
    torch.set_num_threads(1)  # so that steps are the same op for op, which a recording on the CPU needs
    losses, parameters, as_predicted = train("60%")
    expected, expected_parameters = train()
    same = losses == expected and all(map(torch.equal, parameters, expected_parameters))
    print(f"loss {losses[0]:.4f} -> {losses[-1]:.4f}; bitwise the plain run's: {same}; peak as predicted: {as_predicted}")
    return 0 if same and as_predicted else 1


if __name__ == "__main__":
    sys.exit(main())
