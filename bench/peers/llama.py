"""The model of the rows: transformers' LlamaForCausalLM, shaped as Stowage's `llama3-8b` is by the same spec.

Weights are transformers' own random ones, so losses differ from Stowage's; shapes, dtypes and ops do not.
"""

import torch
import torch.nn.functional as F
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM


def read_spec(text):
    """The options of `llama3-8b[:NAME=VALUE,..]` with the defaults of docs/models.md; ValueError if it is none."""
    name, _, rest = text.partition(":")
    if name != "llama3-8b":
        raise ValueError(f"model '{name}': only llama3-8b has peers")
    given = {}
    for word in filter(None, rest.split(",")):
        key, _, value = word.partition("=")
        if key in given:
            raise ValueError(f"'{key}' twice in '{text}'")
        given[key] = value
    if given.pop("loss", "ones") != "ones":
        raise ValueError("loss: only ones, backward of the logits with ones")
    shape = {"layers": 32, "width": 4096, "seq": 1024, "vocab": 128256}
    shape.update({key: int(given.pop(key)) for key in list(given) if key in shape})
    heads = max(1, shape["width"] // 128)
    shape["heads"] = int(given.pop("heads", heads))
    shape["kv_heads"] = int(given.pop("kv_heads", max(1, shape["heads"] // 4)))
    shape["hidden"] = int(given.pop("hidden", max(1, 7 * shape["width"] // 2)))
    if given:
        raise ValueError(f"unknown options {', '.join(given)} in '{text}'")
    return shape


def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, **kwargs):
    """transformers' call of sdpa for a causal step without a mask: PyTorch gets the groups."""
    mixed = F.scaled_dot_product_attention(
        query, key, value, dropout_p=dropout, scale=scaling, is_causal=query.shape[2] > 1,
        enable_gqa=query.shape[1] != key.shape[1],
    )  # fmt: skip
    return mixed.transpose(1, 2).contiguous(), None


def repeat_heads(x, times):
    batch, heads, seq, width = x.shape
    if times == 1:
        return x
    return x[:, :, None].expand(batch, heads, times, seq, width).reshape(batch, heads * times, seq, width)


def attend_repeated(module, query, key, value, attention_mask, **kwargs):
    """The same with keys and values repeated for their query heads, which kernels without groups take."""
    times = module.num_key_value_groups
    return attend(module, query, repeat_heads(key, times), repeat_heads(value, times), attention_mask, **kwargs)


ATTENTION = {"math": attend, "efficient": attend_repeated}


def make_llama(shape, attention, dtype, device):
    # An attention of its own has no function that makes masks, so none is made. transformers' "sdpa" makes
    # none either in an eager step, after a look for packed sequences (tiny integer ops and a synchronisation,
    # which Stowage's step has not); in a compiled one it makes a dense mask, which would slow that peer down.
    name = f"causal_{attention}"
    AttentionInterface.register(name, ATTENTION[attention])
    config = LlamaConfig(
        vocab_size=shape["vocab"],
        hidden_size=shape["width"],
        intermediate_size=shape["hidden"],
        num_hidden_layers=shape["layers"],
        num_attention_heads=shape["heads"],
        num_key_value_heads=shape["kv_heads"],
        max_position_embeddings=max(8192, shape["seq"]),
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
        tie_word_embeddings=False,
        use_cache=False,
        attn_implementation=name,
    )
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(before)
    model.train()  # else transformers does not checkpoint; there is no dropout
    check(model, shape, dtype, name)
    return model


def check(model, shape, dtype, attention):
    """The model has Stowage's parameters (docs/models.md) and the attention that was asked for."""
    w, kv = shape["width"], shape["width"] // shape["heads"] * shape["kv_heads"]
    block = 2 * w * w + 2 * w * kv + 3 * w * shape["hidden"] + 2 * w
    expected = 2 * shape["vocab"] * w + shape["layers"] * block + w
    found = sum(parameter.numel() for parameter in model.parameters())
    if found != expected:
        raise RuntimeError(f"{found} parameters, llama3-8b has {expected}")
    if any(parameter.dtype != dtype for parameter in model.parameters()):
        raise RuntimeError(f"parameters that are not {dtype}")
    if model.model.rotary_emb.inv_freq.dtype != torch.float32:
        raise RuntimeError("rotary frequencies that are not float32")
    if model.config._attn_implementation != attention:
        raise RuntimeError(f"attention is {model.config._attn_implementation}")
