"""Tests that a test runs with pytest and the plugin: a model, its step, and what pytest says of them."""

import functools
import json
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


# Has torch and what it imports late, and runs each line's pytest in a fork of itself: a tenth of the time, and no run
# finds what another left.
SERVER = """
import json, os, signal, sys
import pytest, torch, torch._dynamo
for line in sys.stdin:
    folder, output, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        sys.path[0] = folder
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        signal.alarm(300)
        code = pytest.main(arguments)
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@functools.cache
def server():
    return subprocess.Popen([sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "COLUMNS": "1000"})


def run_tests(folder, source, *options):
    """Runs tests of this source behind HEAD; from a test's name to (outcome, its line of the summary)."""
    (folder / "test_it.py").write_text(HEAD.format(case=str(HERE)) + source)
    output = folder / "output.txt"
    arguments = ["-p", "no:cacheprovider", "-p", "stowage.pytest_plugin", "-q", "-rA", "--strict-markers", "--rootdir",
                 str(folder), *options, "test_it.py"]
    server().stdin.write(json.dumps([str(folder), str(output), arguments]) + "\n")
    server().stdin.flush()
    code = server().stdout.readline().strip()
    lines = re.findall(r"^(PASSED|FAILED|ERROR) test_it.py::(\w+)(?: - (.*))?$", output.read_text(), re.MULTILINE)
    assert code in ("0", "1") and lines, code + output.read_text()
    return {name: (outcome, line) for outcome, name, line in lines}
