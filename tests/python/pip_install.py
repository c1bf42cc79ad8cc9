"""Installs the package with pip into a folder of its own and uses it there.

Usage: pip_install.py PROJECT WORK WERROR COMPILER
"""

import os
import pathlib
import shutil
import subprocess
import sys

USE = """
import importlib.metadata, pathlib, stowage
assert importlib.metadata.version("stowage") == stowage.__version__, stowage.__version__
assert pathlib.Path(stowage.__file__).parent.parent == pathlib.Path({target!r}), stowage.__file__
trace = stowage.Trace.load({trace!r})
outcome = stowage.plan(trace, "60%")
assert outcome.feasible and outcome.peak_bytes <= outcome.budget_bytes
"""


def main():
    project, work, werror, compiler = sys.argv[1:]
    target = pathlib.Path(work) / "installed"
    shutil.rmtree(target, ignore_errors=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-build-isolation", "--no-deps",
         "--no-index", "--target", str(target), f"{project}/python",
         "-C", f"build-dir={work}",
         "-C", "cmake.define.STOWAGE_PYTHON_TORCH=OFF",
         "-C", f"cmake.define.STOWAGE_WERROR={werror}",
         "-C", f"cmake.define.CMAKE_CXX_COMPILER={compiler}",
         "-C", "cmake.build-type=Debug",
         "-C", "cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0"],
        check=True)
    files = {path.name.split(".")[0] + path.suffix for path in (target / "stowage").iterdir() if path.is_file()}
    sources = {path.name for path in pathlib.Path(project, "python/src/stowage").iterdir() if path.is_file()}
    missing = (sources | {"_core.so", "_core.pyi"}) - files
    assert not missing, f"not installed: {missing}"
    others = {path.name for path in target.iterdir()} - {"stowage"}
    assert all(name.startswith("stowage-") for name in others), f"installed beside the package: {others}"
    trace = os.path.join(project, "traces/samples/mlp-l6-fp32-cpu.trace.json.gz")
    subprocess.run([sys.executable, "-c", USE.format(target=str(target), trace=trace)],
                   check=True, env={**os.environ, "PYTHONPATH": str(target)}, cwd=target)


if __name__ == "__main__":
    main()
