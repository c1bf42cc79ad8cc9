"""Evaluation and state_dict() between planned steps on a card that has nothing else left.

    python3 bench/gpu/evaluate_on_full_card.py [--layers 6] [--batch 4] [--budget 60%] [--left 256]

A Llama of transformers (random weights, bf16, AdamW) trains under a plan; then a tensor takes the card but for
``--left`` MiB. Three times: parameters come back, two batches are evaluated, the state is read, a step goes on. All
beside the same without a plan: losses, evaluations and parameters have to be equal bit by bit. One line of JSON each.
"""

import argparse
import gc
import json
import sys
import time

import stowage
import torch
from transformers import LlamaConfig, LlamaForCausalLM

LENGTH = 2048
VOCABULARY = 32000
REPEATS = 3


def make(layers):
    torch.manual_seed(0)
    config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=VOCABULARY, max_position_embeddings=4096, use_cache=False)
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).to(torch.bfloat16)
    return model, torch.optim.AdamW(model.parameters(), lr=1e-4)


def loss_of(model, seed, batch):
    tokens = torch.randint(0, VOCABULARY, (batch, LENGTH), generator=torch.Generator().manual_seed(seed)).cuda()
    return model(input_ids=tokens, labels=tokens).loss


def step(model, optimizer, k, batch):
    loss = loss_of(model, k, batch)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def evaluate(model):
    model.eval()
    with torch.no_grad():
        losses = [loss_of(model, 1000 + i, 1).item() for i in range(2)]
    model.train()
    return losses


def seconds(begin):
    torch.cuda.synchronize()
    return round(time.time() - begin, 3)


def planned(args):
    """Losses, evaluations and parameters of the planned run."""
    model, optimizer = make(args.layers)
    run = stowage.attach(model, optimizer, budget=args.budget)
    losses, evaluations = [], []

    def one_step():
        with run.step():
            losses.append(step(model, optimizer, len(losses), args.batch))
        return run.last_report()

    while one_step() is None:
        pass
    one_step()
    gc.collect()
    torch.cuda.empty_cache()
    filler = torch.empty(torch.cuda.mem_get_info()[0] - (args.left << 20), dtype=torch.uint8, device="cuda")
    for _ in range(REPEATS):
        figures = {"filler_bytes": filler.nbytes}
        begin = time.time()
        run.materialise()
        figures["materialise_s"] = seconds(begin)
        begin = time.time()
        evaluations.append(evaluate(model))
        figures["evaluation_s"] = seconds(begin)
        memory = run.planned_memory()
        figures |= {"lent": memory["lent"], "pages_while_lent": memory["bytes"]}
        begin = time.time()
        state = {name: each.cpu() for name, each in model.state_dict().items()}
        figures["state_dict_s"] = seconds(begin)
        del state
        for name in ("step_behind_s", "next_step_s"):
            begin = time.time()
            one_step()
            figures[name] = seconds(begin)
        memory = run.planned_memory()
        figures |= {"pages": memory["bytes"], "conflicts": memory["conflicts"], "unforeseen": memory["unforeseen"]}
        print(json.dumps(figures), flush=True)
    del filler
    run.detach()
    return losses, evaluations, [p.detach().cpu() for p in model.parameters()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--budget", default="60%")
    parser.add_argument("--left", type=int, default=256, help="MiB")
    args = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    losses, evaluations, parameters = planned(args)
    gc.collect()
    torch.cuda.empty_cache()
    model, optimizer = make(args.layers)
    same = True
    for k in range(len(losses)):
        left = len(losses) - k
        if left <= 2 * REPEATS and left % 2 == 0:
            same &= evaluate(model) == evaluations[REPEATS - left // 2]
        same &= step(model, optimizer, k, args.batch) == losses[k]
    same &= all(torch.equal(a, p.detach().cpu()) for a, p in zip(parameters, model.parameters(), strict=True))
    print(json.dumps({"bitwise": same, "steps": len(losses)}))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
