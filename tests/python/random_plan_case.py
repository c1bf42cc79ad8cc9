"""What tests with random plans share: the draw, and what else is in memory."""

import gc

import stowage
from stowage import _torch


def drawn(trace, random_):
    """A plan by a policy that decides at random, with parameters, state and gradients of random layers away."""
    share = random_.choice([0.1, 0.5, 0.9])
    again = random_.choice([0.0, 0.3, 0.8])

    decided = {}  # by storage: what shares bytes goes together

    def decide(saved):
        if saved.storage not in decided:
            away = "recompute" if random_.random() < again else "offload"
            decided[saved.storage] = away if random_.random() < share else "keep"
        choice = decided[saved.storage]
        return choice if choice != "recompute" or all_can[saved.storage] else "offload"

    all_can = {}
    for row in trace.saved_tensors():
        all_can[row["storage"]] = all_can.get(row["storage"], True) and row["can_recompute"]

    content = stowage.plan(trace, policy=decide).plan.to_dict()
    content.pop("predicted", None)
    layers = [layer["name"] for layer in trace.layers if layer["parameter_bytes"] > 0 and layer["kind"] == "layer"]
    blocks = [[layer] for layer in layers if layer.count(".") <= 3 and random_.random() < 0.4]
    if random_.random() < 0.5 and blocks:
        content["parameters"] = {"shards": blocks, "stream": True, "prefetch": random_.randrange(3)}
    if random_.random() < 0.5:
        content["optimizer"] = [{"layer": "*", "state": "stream"}]
    if random_.random() < 0.3:
        content["placement"] = "planned"
    return stowage.Plan.from_dict(content)


def allocated():
    """Bytes of CPU tensors that live now."""
    gc.collect()
    return _torch.device("cpu").memory()["requested_bytes"]
