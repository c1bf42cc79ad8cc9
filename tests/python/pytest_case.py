"""Tests that a test runs with pytest and the plugin: a model, its step, and what pytest says of them."""

import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent

HEAD = """
import pytest
import torch
import sys

sys.path.insert(0, {case!r})
from training_case import Net, adamw, batch, loss_of

def parts(make=Net):
    torch.manual_seed(0)
    model = make()
    return model, adamw(model.parameters())

def step_of(model, optimizer, size=512):
    def step(k):
        loss = loss_of(model, k, size)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss
    return step
"""


def run_tests(folder, source, *options):
    """Runs tests of this source behind HEAD; from a test's name to (outcome, its line of the summary)."""
    (folder / "test_it.py").write_text(HEAD.format(case=str(HERE)) + source)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "stowage.pytest_plugin", "-q", "-rA",
               "--strict-markers", "--rootdir", str(folder), *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "COLUMNS": "1000"})
    lines = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(\w+)(?: - (.*))?$", done.stdout, re.MULTILINE)
    assert lines, done.stdout + done.stderr
    return {name: (outcome, line) for outcome, name, line in lines}
