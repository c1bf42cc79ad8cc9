"""The CI files of examples/ci: valid for their schemas, and their commands run.

Usage: ci_files.py ROOT PREFIX WORK GENERATOR CXX

Makes a repository like a user's in WORK, with Stowage installed in PREFIX, and runs the commands of every job
in it, once as they should pass and once with a baseline that the step has outgrown. GitHub's and GitLab's own
schemas come with check-jsonschema, which scripts/setup.sh installs; without it the test fails.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from ruamel.yaml import YAML

MODEL = "gpt2:layers=2,width=64,seq=32,vocab=128"
CMAKE_LISTS = f"""cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
include(CTest)
find_package(Stowage REQUIRED COMPONENTS core)
stowage_add_memory_test(NAME memory.gpt2 MODEL {MODEL} BATCH 2 DEVICE cpu
  BUDGET 100MB BASELINE memory/gpt2.cpu.json)
"""
GITHUB_SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]


def fail(what):
    sys.exit(f"ci_files: {what}")


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    return done.returncode, done.stdout + done.stderr


def must(command, **options):
    code, output = run(command, **options)
    if code != 0:
        fail(f"{command} ended with {code}:\n{output}")
    return output


def validate(schema, file, work):
    """The schema takes the file, and refuses it with a word of it misspelt."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    must([*command, str(file)])
    broken = work / "broken.yml"
    word, misspelt = ("runs-on:", "run-on:") if schema == "github-workflows" else ("when:", "wen:")
    broken.write_text(file.read_text().replace(word, misspelt))
    if run([*command, str(broken)])[0] != 1:
        fail(f"the schema {schema} takes {misspelt} for {word}")


def head_command(file):
    """What the file's head says to do once."""
    head = file.read_text().split("\nname:")[0].split("\nstages:")[0]
    lines = [line.removeprefix("#   ") for line in head.splitlines() if line.startswith("#   ")]
    command = "\n".join(lines)
    if not command.startswith("stowage check") or "--update-baseline" not in command:
        fail(f"the head of {file} does not say how the baseline is written: {command}")
    return command


def github_jobs(file):
    """Yields (job, [(command, always)], JUnit globs, environment)."""
    workflow = YAML(typ="safe").load(file)
    for name, job in workflow["jobs"].items():
        commands = []
        globs = []
        for step in job["steps"]:
            if "run" in step:
                if "${{" in step["run"]:
                    fail(f"{name}: an expression inside a command is pasted into the shell unquoted")
                commands.append((step["run"], step.get("if") == "always()"))
            elif step["uses"].startswith("actions/upload-artifact@"):
                globs += step["with"]["path"].split()
                if step.get("if") != "always()":
                    fail(f"{name}: the report of a failure would not be uploaded")
        yield name, commands, globs, {**workflow["env"], **job["env"]}


def gitlab_jobs(file):
    config = YAML(typ="safe").load(file)
    for name, job in config.items():
        if not isinstance(job, dict) or "script" not in job:
            continue
        base = config[job["extends"]]
        junit = job["artifacts"]["reports"]["junit"]
        if job["artifacts"]["when"] != "always":
            fail(f"{name}: the report of a failure would not be kept")
        script = "\n".join(base["before_script"] + job["script"])
        yield (name, [(script, False)], [junit] if isinstance(junit, str) else junit,
               {**config["variables"], **job["variables"]})


def run_job(repository, commands, environment):
    """Runs a job as its runner does: after a failure only what always runs. Returns exit code, output."""
    paths = repository / "github_path"
    paths.write_text("")
    environment = {**environment, "GITHUB_PATH": str(paths), "CI_PROJECT_DIR": str(repository),
                   "GITHUB_STEP_SUMMARY": str(repository / "summary.md")}
    result = 0
    output = ""
    for command, always in commands:
        if result != 0 and not always:
            continue
        added = paths.read_text().split()
        path = os.pathsep.join(added + [os.environ["PATH"]])
        code, text = run(GITHUB_SHELL + [command], cwd=repository, env={**environment, "PATH": path})
        output += text
        result = result or code
    return result, output


def reports(repository, globs):
    found = [file for glob in globs for file in repository.glob(glob)]
    if len(found) < len(globs):
        fail(f"of {globs} only {found} are there")
    return found


class Repository:
    def __init__(self, root, prefix, work):
        self.root = root
        self.stowage = str(prefix / "bin" / "stowage")
        self.folder = work / "repository"
        (self.folder / "ci").mkdir(parents=True)
        shutil.copy(root / "examples/ci/install_stowage.sh", self.folder / "ci")
        (self.folder / "CMakeLists.txt").write_text(CMAKE_LISTS)
        # What the runner's cache holds: then nothing is built.
        self.home = work / "home"
        self.home.mkdir()
        (self.home / "prefix").symlink_to(prefix)
        # It makes the folder that the recording needs, too.
        for file in ("github.yml", "gitlab.yml"):
            command = head_command(root / "examples/ci" / file)
            must(GITHUB_SHELL + [command.replace("stowage", self.stowage, 1)], cwd=self.folder)
        must([self.stowage, "profile", MODEL, "--batch", "2", "--device", "cpu", "--threads", "1", "-o",
              "memory/gpt2.trace.json.gz"], cwd=self.folder)
        must([self.stowage, "plan", "memory/gpt2.trace.json.gz", "--policy", "save_on_cpu", "-o",
              "memory/gpt2.plan.json"], cwd=self.folder)
        must([self.stowage, "check", "--plan", "memory/gpt2.plan.json", "--baseline", "memory/gpt2.gpu.json",
              "--update-baseline"], cwd=self.folder)

    def environment(self, given):
        kept = {key: os.environ[key] for key in ("HOME", "TMPDIR", "LANG") if key in os.environ}
        return {**kept, **{key: str(value) for key, value in given.items()},
                "STOWAGE_HOME": str(self.home), "CMAKE_GENERATOR": self.generator, "CXX": self.cxx}

    def clean(self, globs):
        shutil.rmtree(self.folder / "build", ignore_errors=True)
        for glob in globs:
            for file in self.folder.glob(glob):
                file.unlink()

    def outgrow(self):
        """Baselines as if the step had needed less."""
        for file in (self.folder / "memory").glob("gpt2.?pu.json"):
            baseline = json.loads(file.read_text())
            baseline["measured"]["peak_requested_bytes"] //= 2
            for row in baseline["at_peak"]["storages"]:
                if row["class"] == "activation" or row["holding"] == "reloaded":
                    row["bytes"] = 0
            file.write_text(json.dumps(baseline))


def main():
    root, prefix, work = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    validate("github-workflows", root / "examples/ci/github.yml", work)
    validate("gitlab-ci", root / "examples/ci/gitlab.yml", work)
    jobs = [("github " + job[0], *job[1:]) for job in github_jobs(root / "examples/ci/github.yml")]
    jobs += [("gitlab " + job[0], *job[1:]) for job in gitlab_jobs(root / "examples/ci/gitlab.yml")]
    if len(jobs) != 4:
        fail(f"four jobs are expected, not {[job[0] for job in jobs]}")
    repository = Repository(root, prefix, work)
    repository.generator, repository.cxx = sys.argv[4:6]
    schema = root / "tests/data/junit-10.xsd"
    for grown in (False, True):
        if grown:
            repository.outgrow()
        for name, commands, globs, given in jobs:
            repository.clean(globs)
            code, output = run_job(repository.folder, commands, repository.environment(given))
            if code != (1 if grown else 0) and not (grown and code == 8):  # 8: ctest's
                fail(f"{name} ended with {code}:\n{output}")
            # GitLab ends at the first failure, so the reports behind it are not there.
            expected = globs[:1] if grown else globs
            for file in reports(repository.folder, expected):
                must(["xmllint", "--noout", "--schema", str(schema), str(file)])
                text = file.read_text()
                if ("<failure" in text) != grown:
                    fail(f"{name}: {file}:\n{text}")
                if grown and "grew:" not in text:
                    fail(f"{name}: the failure in {file} does not say what grew:\n{text}")
            print(f"{name}: {'fails' if grown else 'passes'} as it should")


if __name__ == "__main__":
    main()
