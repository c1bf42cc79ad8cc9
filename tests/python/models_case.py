"""Models of transformers and torchvision with random weights, small, and their training loops."""

import torch
from training_case import Loop, adamw

WORDS = 200
STEPS_PLANNED = 5


def _config(name):
    import transformers

    small = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
    if name == "gpt2":
        return transformers.GPT2LMHeadModel, transformers.GPT2Config(n_layer=3, n_embd=64, n_head=4, vocab_size=WORDS,
                                                                     n_positions=64)
    if name == "llama":
        return transformers.LlamaForCausalLM, transformers.LlamaConfig(num_key_value_heads=2, vocab_size=WORDS, **small)
    if name == "bert":
        return transformers.BertForMaskedLM, transformers.BertConfig(vocab_size=WORDS, **small)
    if name == "vit":
        return transformers.ViTForImageClassification, transformers.ViTConfig(image_size=32, patch_size=8,
                                                                              num_labels=10, **small)
    if name == "t5":
        return transformers.T5ForConditionalGeneration, transformers.T5Config(
            d_model=64, d_ff=128, d_kv=16, num_layers=2, num_heads=4, vocab_size=WORDS, decoder_start_token_id=0)
    raise KeyError(name)


def make_transformer(name, attention="eager"):
    kind, config = _config(name)
    if name != "t5":
        config._attn_implementation = attention
    return kind(config).train()


class UNet(torch.nn.Module):
    """Skip connections, normalization over the batch, operations in place."""

    def __init__(self, width=8):
        super().__init__()
        nn = torch.nn

        def block(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs),
                                 nn.ReLU(inplace=True))

        self.down1 = block(3, width)
        self.down2 = block(width, 2 * width)
        self.middle = block(2 * width, 2 * width)
        self.up2 = block(4 * width, width)
        self.up1 = block(2 * width, width)
        self.head = nn.Conv2d(width, 3, 1)

    def forward(self, x):
        f = torch.nn.functional
        a = self.down1(x)
        b = self.down2(f.max_pool2d(a, 2))
        c = self.middle(f.max_pool2d(b, 2))
        d = self.up2(torch.cat([f.interpolate(c, scale_factor=2), b], 1))
        return self.head(self.up1(torch.cat([f.interpolate(d, scale_factor=2), a], 1)))


def make_vision(name):
    if name == "unet":
        return UNet()
    import torchvision

    return torchvision.models.resnet50(width_per_group=8, num_classes=10)


def _transformer_inputs(name, k):
    generator = torch.Generator().manual_seed(k)
    if name == "vit":
        return {"pixel_values": torch.randn(8, 3, 32, 32, generator=generator),
                "labels": torch.randint(0, 10, (8,), generator=generator)}
    ids = torch.randint(0, WORDS, (4, 32), generator=generator)
    return {"input_ids": ids, "labels": ids.clone()}


def loss_of(name, model, k):
    if name in ("unet", "resnet50"):
        x = torch.randn(4, 3, 32, 32, generator=torch.Generator().manual_seed(k))
        y = model(x)
        return y.square().mean() if name == "unet" else torch.nn.functional.cross_entropy(y, torch.tensor([1, 2, 3, 4]))
    return model(**_transformer_inputs(name, k)).loss


def loop(name, attention="eager", autocast=False, accumulate=1, prepare=lambda model: model, **attach):
    """A loop that zeroes gradients at its end, as most do; of the prepared model."""

    def body(model, optimizer, k):
        losses = []
        for part in range(accumulate):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = loss_of(name, model, accumulate * k + part)
            loss.backward()
            losses.append(loss.item())
        optimizer.step()
        optimizer.zero_grad()
        return losses

    vision = name in ("unet", "resnet50")
    make = (lambda: make_vision(name)) if vision else (lambda: make_transformer(name, attention))
    return Loop(lambda: prepare(make()), adamw, body, **attach)
