"""`python -m stowage profile FILE.py:function`: a trace of a user's step, and the command's ways."""

import json
import os
import subprocess
import sys

import pytest
import stowage
from stowage._command import main
from stowage._profiled import profile_json, profile_text

FILE = """
import sys
import torch

print("of the file's own", sys.argv, __name__)
weights = torch.arange(3.0)

def net(device):
    torch.manual_seed(3)
    blocks = [torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64)) for _ in range(4)]
    model = torch.nn.Sequential(*blocks).to(device)
    optimizer = torch.optim.AdamW(model.parameters())

    def step(k):
        assert k == len(seen)
        seen.append(k)
        model(torch.randn(512, 64, device=device)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    seen = []
    return model, optimizer, step

def without_device():
    model = torch.nn.Linear(64, 64)
    return model, None, lambda: model(torch.randn(512, 64)).sum().backward()

def grows(device):
    model, optimizer, step = net(device)
    kept = []
    return model, optimizer, lambda: (step(len(kept)), kept.append(torch.zeros(1)))

def two_values():
    return 1, 2

def no_model():
    return "model", None, print

def no_optimizer():
    return torch.nn.Linear(1, 1), "adam", print

def no_step():
    return torch.nn.Linear(1, 1), None, 7

def needs(batch):
    pass

def raises():
    raise KeyError("of the function's own")

def leaves():
    sys.exit(0)

def fails_later():
    model, optimizer, step = without_device()
    def fails(k):
        if k == 5:
            raise ValueError("in a step")
        step()
    return model, optimizer, fails

def meta():
    return torch.nn.Linear(64, 64, device="meta"), None, print

def interrupted():
    raise KeyboardInterrupt
"""


@pytest.fixture
def files(tmp_path):
    (tmp_path / "step of.py").write_text(FILE)
    (tmp_path / "broken.py").write_text("x = 1\ny = = 2\n")


@pytest.fixture
def profile(files, tmp_path):
    """A function from arguments, "{}" the folder, to what the command ended with."""

    def run(*arguments):
        words = [each.replace("{}", str(tmp_path)) for each in arguments]
        return subprocess.run([sys.executable, "-m", "stowage", "profile", *words], capture_output=True, text=True,
                              cwd=tmp_path)

    return run


def test_a_step_is_recorded(profile, tmp_path):
    ended = profile("step of.py:net", "-o", "t.json.gz", "--device", "cpu")
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == "of the file's own ['step of.py'] stowage_profiled\n"  # and nothing else
    trace = stowage.Trace.load(tmp_path / "t.json.gz")
    assert ended.stdout == profile_text(trace, "t.json.gz")
    assert trace.model == "python:step of.py:net" and trace.optimizer == "python:adamw" and trace.device == "cpu"
    recorded = json.loads(trace.to_json())["run"]
    assert recorded["argv"] == ["stowage", "profile", "step of.py:net", "-o", "t.json.gz", "--device", "cpu"]
    assert recorded["threads"] == 1
    assert [row["name"] for row in trace.layers if row["calls"]] != []
    assert stowage.plan(trace, "70%").feasible


def test_the_answer_is_one_object_and_the_trace_may_go_to_stdout(profile, tmp_path):
    ended = profile("python:{}/step of.py:without_device", "--json", "-q", "-o", "{}/t.json")
    assert ended.returncode == 0, ended.stderr
    trace = stowage.Trace.load(tmp_path / "t.json")
    assert ended.stdout == profile_json(trace, f"{tmp_path}/t.json")
    written = profile("step of.py:without_device", "-o", "-")
    assert written.returncode == 0, written.stderr
    assert stowage.Trace.from_json(written.stdout).fingerprint == trace.fingerprint
    assert trace.optimizer == "none"


def test_text_and_answer_are_those_of_the_command(program, tmp_path):
    file = str(tmp_path / "t.json")
    command = [program, "profile", "mlp:layers=2,width=64,hidden=128", "--batch", "8", "--device", "cpu", "--threads", "1",
               "-q", "-o", file]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert profile_text(stowage.Trace.load(file), file) == text
    answer = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True).stdout
    assert json.loads(profile_json(stowage.Trace.load(file), file)) == json.loads(answer)
    assert list(json.loads(profile_json(stowage.Trace.load(file), file))) == list(json.loads(answer))


def test_a_gpus_records_are_counted(on_gpu):
    gpu = json.loads(profile_json(on_gpu, "t.json.gz"))["gpu"]
    recorded = json.loads(on_gpu.to_json())
    assert gpu["kernels"] + gpu["copies"] + gpu["memsets"] == recorded["gpu"]["n"]
    assert gpu["kernels"] > gpu["copies"] and gpu["busy_ns"] == sum(recorded["gpu"]["duration"])
    assert gpu["attributed_ratio"] == 1 and gpu["timing_overhead"] == pytest.approx(190606118 / 190382823 - 1)
    assert "% of it attributed" in profile_text(on_gpu, "t.json.gz")


@pytest.mark.parametrize("arguments, code, said", [
    (["nowhere.py:f"], 3, "nowhere.py: there is no such file"),
    (["step of.py"], 2, "'step of.py' names no function of a file (FILE.py:function)"),
    (["step of.py:"], 2, "names no function of a file"),
    (["step of.py:other"], 3, "step of.py: there is no function 'other'"),
    (["broken.py:f"], 3, "broken.py: line 2: SyntaxError"),
    (["step of.py:two_values"], 3, "two_values() returns 2 values (return model, optimizer, step"),
    (["step of.py:no_model"], 3, "no_model() returns a str as its model"),
    (["step of.py:no_optimizer"], 3, "no_optimizer() returns a str as its optimizer"),
    (["step of.py:no_step"], 3, "no_step() returns a int as its step"),
    (["step of.py:needs"], 3, "needs() needs 'batch', which nobody gives it"),
    (["step of.py:raises"], 3, "KeyError: \"of the function's own\""),
    (["step of.py:leaves"], 3, "SystemExit: 0"),
    (["step of.py:fails_later"], 3, "ValueError: in a step"),
    (["step of.py:meta"], 3, "a model on meta cannot be attached"),
    (["step of.py:interrupted"], 130, "interrupted"),
    (["step of.py:grows"], 3, "more from one to the next"),
    (["step of.py:net", "--batch", "4"], 2, "--batch is of built-in models"),
    (["step of.py:net", "--wurmup=4"], 2, "unknown option '--wurmup'"),
    (["step of.py:net", "--warmup", "0"], 2, "--warmup: 0 is not allowed"),
    (["step of.py:net", "--memory-limit", "20 gigs"], 2, 'did you mean "20GB"?'),
    (["step of.py:net", "--memory-limit", "1MB"], 1, "above --memory-limit 1MB"),
    ([], 2, "the following arguments are required: FILE.py:function"),
])
def test_what_is_wrong_is_one_line_and_a_code(files, tmp_path, monkeypatch, capsys, one_thread, arguments, code, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", sys.path[:])
    assert main(["profile", *arguments, "-o", "t.json.gz", "--device", "cpu"]) == code
    out, err = capsys.readouterr()
    errors = [line for line in err.splitlines() if not line.startswith("of the file's own")]
    assert len(errors) == 1 and errors[0].startswith("stowage: error: "), err
    assert said in errors[0]
    assert out == "" and not (tmp_path / "t.json.gz").exists()


def test_output_that_cannot_be_is_said_ahead(profile, tmp_path):
    nowhere = profile("step of.py:net", "-o", "no/t.json")
    assert nowhere.returncode == 4 and nowhere.stderr == (
        "stowage: error: no/t.json: cannot be written: No such file or directory (create the folder first)\n")
    itself = profile("step of.py:net", "-o", "step of.py")
    assert itself.returncode == 2 and "would be lost" in itself.stderr
    assert (tmp_path / "step of.py").read_text() == FILE
    both = profile("step of.py:net", "--json", "-o", "-")
    assert both.returncode == 2
    assert json.loads(both.stdout)["error"] == {
        "code": "usage", "exit_code": 2, "message": "--json and -o - would both write to stdout", "where": "",
        "hint": "give -o a file"}


def test_without_a_gpu_none_can_be_asked_for(profile):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    ended = profile("step of.py:net", "-o", "t.json", "--device", "cuda")
    assert ended.returncode == 4 and "no CUDA device" in ended.stderr and "use --device cpu" in ended.stderr


def test_the_help_shows_the_contract(profile):
    ended = profile("--help")
    assert ended.returncode == 0 and ended.stderr == ""
    assert "FILE.py:function" in ended.stdout and "(model, optimizer, step)" in " ".join(ended.stdout.split())


def test_the_command_hands_a_python_function_over(program, tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    environment = os.environ | {"PATH": os.path.dirname(sys.executable) + os.pathsep + os.environ["PATH"]}
    done = subprocess.run([program, "profile", f"python:{tmp_path}/own.py:without_device", "--device", "cpu", "-o",
                           str(tmp_path / "t.json.gz")], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    trace = stowage.Trace.load(str(tmp_path / "t.json.gz"))
    seen = subprocess.run([program, "inspect", str(tmp_path / "t.json.gz"), "--json"], capture_output=True, text=True,
                          timeout=300)
    assert json.loads(seen.stdout)["schema"]
    assert trace.device == "cpu"


def test_a_full_disk_is_the_environments(tmp_path):
    (tmp_path / "own.py").write_text(FILE)
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "stowage", "profile", f"{tmp_path}/own.py:without_device", "--device",
                               "cpu", "-q", "-o", "-"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 4
    assert "No space left" in done.stderr and "Traceback" not in done.stderr
