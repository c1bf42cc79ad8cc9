"""stowage_add_memory_test() of the installed package, in a user's project (memory/).

Usage: memory_test.py SOURCE PREFIX WORK GENERATOR CXX

The planted regression fails with exit code 1 and every layer that keeps more is named, plain and under a plan; the
repaired model passes; labels, timeouts and JUnit files are where they should be; wrong arguments are said.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

SOURCE, PREFIX, WORK = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
CONFIGURE = ["cmake", "-G", sys.argv[4], f"-DCMAKE_CXX_COMPILER={sys.argv[5]}",
             f"-DCMAKE_PREFIX_PATH={PREFIX}"]
STOWAGE = str(PREFIX / "bin" / "stowage")
BUILD = WORK / "build"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def must(*command):
    code, output = run(*command)
    check(code == 0, f"{' '.join(command)} ended with {code}:\n{output}")
    return output


def check(condition, what):
    if not condition:
        sys.exit(f"memory_test: {what}")


def ctest_outcomes():
    """{test: passed} of all tests labelled memory."""
    junit = WORK / "ctest.xml"
    run("ctest", "--test-dir", str(BUILD), "-L", "^memory$", "--output-junit", str(junit))
    cases = ElementTree.parse(junit).getroot().findall("testcase")
    return {case.get("name"): case.get("status") == "run" for case in cases}


def properties():
    listed = json.loads(must("ctest", "--test-dir", str(BUILD), "--show-only=json-v1"))
    return {test["name"]: {each["name"]: each["value"] for each in test["properties"]}
            for test in listed["tests"]}


def failures(name):
    """{case: text} of what failed in a test's own JUnit file, which is valid."""
    file = BUILD / "stowage-memory" / f"{name}.xml"
    must("xmllint", "--noout", "--schema", str(SOURCE.parent / "data" / "junit-10.xsd"), str(file))
    suite = ElementTree.parse(file).getroot().find("testsuite")
    check(suite.get("name") == name, f"{file} names the suite {suite.get('name')}")
    return {case.get("name"): case.find("failure").text
            for case in suite.findall("testcase") if case.find("failure") is not None}


def planted_regression():
    must(*CONFIGURE, "-S", str(SOURCE / "memory"), "-B", str(BUILD))
    must("cmake", "--build", str(BUILD))
    repaired = f"plugin:{BUILD}/repaired/libgpt2_copy.so:layers=3"
    must(STOWAGE, "profile", repaired, "--batch", "4", "--device", "cpu", "--threads", "1", "-o",
         str(BUILD / "trace.json.gz"))
    must(STOWAGE, "plan", str(BUILD / "trace.json.gz"), "--policy", "save_on_cpu", "-o",
         str(BUILD / "plan.json"))
    for test in ("memory.repaired", "memory.repaired_planned"):
        must("cmake", "--build", str(BUILD), "--target", f"{test}_update_baseline")
    first = (BUILD / "repaired/plain.json").read_bytes()
    must("cmake", "--build", str(BUILD), "--target", "memory.repaired_update_baseline")
    check((BUILD / "repaired/plain.json").read_bytes() == first, "the baseline written again is another one")
    # One file in a repository; here both of its states are one project.
    for file in ("plain.json", "planned.json"):
        shutil.copy(BUILD / "repaired" / file, BUILD / "regressed" / file)

    outcomes = ctest_outcomes()
    check(outcomes == {"memory.repaired": True, "memory.repaired_planned": True,
                       "memory.regressed": False, "memory.regressed_planned": False}, outcomes)
    for test in ("memory.repaired", "memory.repaired_planned"):
        check(failures(test) == {}, f"{test} has failures")
    for test in ("memory.regressed", "memory.regressed_planned"):
        failed = failures(test)
        check(list(failed) == ["peak_requested"], failed)
        text = failed["peak_requested"]
        for layer in ("layers.0.mlp", "layers.1.mlp", "layers.2.mlp"):
            # Batch 4, 48 tokens, 64 features of 4 bytes.
            check(f"{layer}: 49.2 kB more" in text and "made by aten::addmm" in text, text)
        check("attn:" not in text, text)
    code, output = run(STOWAGE, "check", "--model", f"plugin:{BUILD}/regressed/libgpt2_copy.so:layers=3", "--batch",
                       "4", "--device", "cpu", "--baseline", str(BUILD / "repaired/plain.json"))
    check(code == 1 and "FAILED" in output and "layers.2.mlp" in output, f"{code}: {output}")

    found = properties()["memory.repaired"]
    check(found["LABELS"] == ["memory"] and found["TIMEOUT"] == 300.0, found)
    check(found["ATTACHED_FILES"] == [str(BUILD / "stowage-memory" / "memory.repaired.xml")], found)
    check(properties()["memory.repaired_planned"]["TIMEOUT"] == 600.0, "the default timeout")


def wrong_arguments():
    project = WORK / "arguments"
    project.mkdir()
    for arguments, words in (
            ("MODEL mlp BUDGET 1GB", "NAME is missing"),
            ("NAME a/b MODEL mlp BUDGET 1GB", "letters, digits"),
            ("NAME a BUDGET 1GB", "give MODEL, or a PLAN"),
            ("NAME a MODEL mlp", "give a BUDGET or a BASELINE"),
            ("NAME a MODEL mlp BUDGET", "BUDGET has no value"),
            ("NAME a MODEL mlp BUDGET 1GB BUGDET 2GB", "unknown argument `BUGDET`"),
            ("NAME a MODEL mlp BUDGET 1GB TIMEOUT soon", "TIMEOUT is a number of seconds"),
            ("NAME a MODEL mlp BUDGET 1GB)\nstowage_add_memory_test(NAME a MODEL mlp BUDGET 1GB",
             "a test of that name"),
            ("NAME a MODEL mlp BASELINE b.json)\nstowage_add_memory_test(NAME b MODEL gpt2 BASELINE b.json",
             "the baseline of another step's test")):
        (project / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(arguments LANGUAGES CXX)\ninclude(CTest)\n"
            f"find_package(Stowage REQUIRED COMPONENTS core)\nstowage_add_memory_test({arguments})\n")
        code, output = run(*CONFIGURE, "-S", str(project), "-B", str(project / "build"))
        check(code != 0 and words in " ".join(output.split()), f"({arguments}): {output}")


def testing_has_to_be_enabled():
    project = WORK / "testing"
    project.mkdir()
    test = "stowage_add_memory_test(NAME a MODEL mlp BUDGET 1GB)\n"
    # Two budgets of one step may share its baseline.
    shared = "".join(f"stowage_add_memory_test(NAME {name} MODEL mlp BUDGET {name}GB BASELINE b.json)\n" for name in "12")
    for before, more, tests in (("", (), None), ("enable_testing()\n", (), 3),
                                ("include(CTest)\n", ("-DBUILD_TESTING=OFF",), 0)):
        shutil.rmtree(project / "build", ignore_errors=True)
        (project / "CMakeLists.txt").write_text(
            f"cmake_minimum_required(VERSION 3.25)\nproject(testing LANGUAGES CXX)\n{before}"
            f"find_package(Stowage REQUIRED COMPONENTS core)\n{test}{shared}")
        code, output = run(*CONFIGURE, *more, "-S", str(project), "-B", str(project / "build"))
        if tests is None:
            check(code != 0 and "testing is not enabled" in " ".join(output.split()), output)
            continue
        check(code == 0, output)
        listed = json.loads(must("ctest", "--test-dir", str(project / "build"), "--show-only=json-v1"))
        check(len(listed["tests"]) == tests, listed)


shutil.rmtree(WORK, ignore_errors=True)
WORK.mkdir(parents=True)
wrong_arguments()
testing_has_to_be_enabled()
planted_regression()
print("memory_test: passed")
