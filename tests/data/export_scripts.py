#!/usr/bin/env python3
"""Exports models of torchvision and transformers, with random weights, to TorchScript, and writes what
Python makes of one step of each: the loss and the gradients.

  python tests/data/export_scripts.py FOLDER [NAME..]        (default: all that can be imported)

For each NAME it writes into FOLDER
  NAME.pt         the script, for `stowage profile script:FOLDER/NAME.pt:...`
  NAME.spec       the options that fit it, one line
  NAME.json       loss and, per parameter, largest absolute value and a few elements of its gradient; of
                  buffers that are floating point the same, after the step

torchvision and transformers come from PyPI: scripts/setup.sh exports. Inputs are drawn as Stowage draws them:
`torch.Generator().manual_seed(seed)`, then normal_() or random_() one input after the other.
"""

import argparse
import importlib.util
import json
import pathlib
import warnings
from typing import Final

import torch

SEED = 1
SAMPLES = 5


class Logits(torch.nn.Module):
    """A language model of transformers as token ids -> logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        return self.model(tokens, use_cache=False, return_dict=False)[0]


def resnet18():
    from torchvision.models import resnet18 as build
    return build(num_classes=100), [((4, 3, 64, 64), 0)]


def gpt2():
    from transformers import GPT2Config, GPT2LMHeadModel
    config = GPT2Config(n_layer=3, n_embd=64, n_head=2, vocab_size=256, n_positions=64,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    config._attn_implementation = "eager"
    return Logits(GPT2LMHeadModel(config)), [((4, 48), 256)]


def resnet50():
    from torchvision.models.resnet import Bottleneck, ResNet
    return ResNet(Bottleneck, [2, 1, 1, 1], num_classes=40), [((4, 3, 64, 64), 0)]


def vit():
    from torchvision.models import VisionTransformer
    model = VisionTransformer(image_size=32, patch_size=8, num_layers=2, num_heads=2, hidden_dim=32,
                              mlp_dim=64, num_classes=40)
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # zero in torchvision: no gradients behind it
    return model, [((4, 3, 32, 32), 0)]


class Branches(torch.nn.Module):
    """Scripted, not traced: a loop, a branch, a tuple between layers, a tied weight, in-place ops. Keeping
    (a planted regression of memory) it holds something until the next step."""

    keeps: Final[bool]

    class Half(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = torch.nn.Linear(width, width)
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x):
            self.steps.add_(1)
            y = torch.tanh(self.linear(x))
            return y, y.mean()

    def __init__(self, keeps=False, width=32):
        super().__init__()
        self.keeps = keeps
        if keeps:
            self.register_buffer("kept", torch.zeros(1))
        self.first = torch.nn.Linear(width, width)
        self.act = torch.nn.ReLU(inplace=True)
        self.middle = Branches.Half(width)
        self.rest = torch.nn.ModuleList(torch.nn.Linear(width, width) for _ in range(3))
        self.last = torch.nn.Linear(width, width)
        self.last.weight = self.first.weight

    def forward(self, x):
        if self.keeps:
            self.kept = torch.sin(x)
        x = self.act(self.first(x))
        x, m = self.middle(x)
        for layer in self.rest:
            x = x + torch.tanh(layer(x))
        if x.size(0) > 1:
            x = x * 2 + m
        return {"out": self.last(x)}


def branches():
    return Branches(), [((16, 32), 0)]


def branches_keeping():
    return Branches(keeps=True), [((16, 32), 0)]


MODELS = {"resnet18": (resnet18, "torchvision", "trace"),
          "gpt2": (gpt2, "transformers", "trace"),
          "resnet50": (resnet50, "torchvision", "trace"),
          "vit": (vit, "torchvision", "trace"),
          "branches": (branches, "torch", "script"),
          "branches_keeping": (branches_keeping, "torch", "script")}


def draw(inputs, seed):
    generator = torch.Generator().manual_seed(seed)
    drawn = []
    for shape, below in inputs:
        if below:
            drawn.append(torch.empty(shape, dtype=torch.int64).random_(0, below,
                                                                       generator=generator))
        else:
            drawn.append(torch.empty(shape).normal_(0, 1, generator=generator))
    return drawn


def spec_of(inputs):
    shapes = "+".join("x".join(map(str, shape)) for shape, _ in inputs)
    kinds = "+".join(f"int:{below}" if below else "normal" for _, below in inputs)
    return f"shape={shapes},input={kinds},loss=mean"


def figures(tensor):
    flat = tensor.flatten()
    step = max(1, flat.numel() // SAMPLES)
    return {"absmax": flat.abs().max().item(), "every": step, "elements": flat[::step][:SAMPLES].tolist()}


def first_tensor(output):
    if isinstance(output, dict):
        output = next(iter(output.values()))
    return output[0] if isinstance(output, (tuple, list)) else output


def export(name, folder):
    build, _, how = MODELS[name]
    torch.manual_seed(SEED)
    model, inputs = build()
    model.train()
    state = {key: value.clone() for key, value in model.state_dict().items()}
    example = tuple(draw(inputs, SEED))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, tracing warns about branches
        script = (torch.jit.trace(model, example, check_trace=False) if how == "trace"
                  else torch.jit.script(model))
        model.load_state_dict(state)     # tracing runs a step of the buffers
        script.save(str(folder / f"{name}.pt"))
    (folder / f"{name}.spec").write_text(spec_of(inputs) + "\n")
    loss = first_tensor(model(*example)).mean()
    loss.backward()
    gradients = {key: figures(parameter.grad) for key, parameter in model.named_parameters()}
    buffers = {key: figures(value) for key, value in model.named_buffers() if value.is_floating_point()}
    (folder / f"{name}.json").write_text(json.dumps(
        {"seed": SEED, "loss": loss.item(), "gradients": gradients, "buffers": buffers}, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], default=[])
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    for name, (_, package, _) in MODELS.items():
        if arguments.names and name not in arguments.names:
            continue
        if importlib.util.find_spec(package) is None:
            if arguments.names:
                parser.exit(4, f"{name} needs the Python package {package}: scripts/setup.sh exports\n")
            continue
        export(name, arguments.folder)
        print(name)


if __name__ == "__main__":
    main()
