"""What the tests of the package share: recorded samples, the command."""

import gc
import os
import pathlib

import pytest
import stowage

SAMPLES = pathlib.Path(__file__).parents[2] / "traces/samples"


@pytest.fixture(scope="session")
def sample():
    """A function from a sample's name to its trace, each read once."""
    traces = {}

    def load(name):
        if name not in traces:
            traces[name] = stowage.Trace.load(SAMPLES / f"{name}.trace.json.gz")
        return traces[name]

    return load


@pytest.fixture(scope="session")
def gpt2(sample):
    """A GPT-2 with 6 layers on a CPU: a step of 161 MB."""
    return sample("gpt2-l6-fp32-cpu")


@pytest.fixture(scope="session")
def on_gpu(sample):
    """A small MLP on an H200: reserved bytes, a link."""
    return sample("mlp-l6-fp32-h200")


@pytest.fixture(scope="session")
def program():
    """The `stowage` command of this build."""
    return os.path.join(os.environ["STOWAGE_BIN_DIR"], "stowage")


@pytest.fixture
def one_thread():
    """PyTorch's ops on one thread, which recordings on a CPU need; and nothing left for the next test's peaks."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    gc.collect()
