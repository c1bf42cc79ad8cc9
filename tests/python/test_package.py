"""The package itself: what it brings, what it says of itself, that the document's examples run."""

import ast
import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys

import stowage

PACKAGE = pathlib.Path(stowage.__file__).parent
PROJECT = pathlib.Path(__file__).parents[2]
DOCUMENT = PROJECT / "docs/python.md"
SAMPLE = PROJECT / "traces/samples/gpt2-l6-fp32-cpu.trace.json.gz"


def test_importing_it_imports_nothing_heavy():
    code = "import sys, stowage; print(sorted({'torch', 'numpy', 'pandas', 'tqdm', 'IPython'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert out.strip() == "[]"


def test_is_typed():
    assert (PACKAGE / "py.typed").exists()
    stub = ast.parse((PACKAGE / "_core.pyi").read_text())
    classes = {node.name for node in stub.body if isinstance(node, ast.ClassDef)}
    assert {"Recording", "PlanValue", "Simulated", "Planned"} <= classes


def public_functions():
    """Every public function, method and property, by its name; of a build without stowage._torch those of values."""
    without = stowage._TRAINING if importlib.util.find_spec("stowage._torch") is None else ()
    for name in stowage.__all__:
        if name in without:
            continue
        value = getattr(stowage, name)
        if inspect.isfunction(value):
            yield name, value
        if not inspect.isclass(value) or not value.__module__.startswith("stowage"):
            continue
        for member, attribute in vars(value).items():
            function = getattr(attribute, "fget", None) or getattr(attribute, "__func__", attribute)
            if not member.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{member}", function


def test_everything_public_is_documented_and_typed():
    names = dict(public_functions())
    assert {"plan", "simulate", "Trace.load", "Plan.to_dict", "PlanOutcome.floor"} <= set(names)
    for name, function in names.items():
        assert function.__doc__, name
        assert "return" in function.__annotations__, name
        parameters = list(inspect.signature(function).parameters.values())
        for parameter in parameters:
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not inspect.Parameter.empty, f"{name}({parameter.name})"


def test_the_documents_examples_run(tmp_path, monkeypatch):
    """All blocks of Python in docs/python.md and README.md, one after the other, in a folder with the trace that they
    name."""
    blocks = [(document, block) for document in (DOCUMENT, PROJECT / "README.md")
              for block in re.findall(r"```python\n(.*?)```", document.read_text(), re.DOTALL)]
    assert len(blocks) >= 6
    (tmp_path / "t.json.gz").write_bytes(SAMPLE.read_bytes())
    monkeypatch.chdir(tmp_path)
    names = {}
    has_torch = importlib.util.find_spec("stowage._torch") is not None
    for document, block in blocks:
        if not has_torch and ("attach" in block or "run." in block):
            continue
        exec(compile(block, str(document), "exec"), names)
