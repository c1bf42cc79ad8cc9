"""fuzz_command.py must find each kind of failure, give the same bytes for the same seed, and be content else."""
import json
import pathlib
import random
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import fuzz_command  # noqa: E402
import mutations  # noqa: E402

DOCUMENT = {"schema": "stowage-plan/1", "for": {"model": "mlp", "batch": 4}, "rows": {"a": [1, 2, 3], "b": [4, 5, 6]}}


def fuzzer_of(script):
    """A fuzzer whose command is a shell script."""
    folder = tempfile.TemporaryDirectory()
    command = pathlib.Path(folder.name) / "stowage"
    command.write_text("#!/bin/sh\n" + script)
    command.chmod(0o755)
    options = types.SimpleNamespace(stowage=str(command), memory_gib=1, seconds=1, keep=None)
    fuzzer = fuzz_command.Fuzzer(options, None)
    fuzzer.folder = folder
    return fuzzer


class Complaints(unittest.TestCase):
    def complaint(self, script, command=("inspect", "t.json")):
        fuzzer = fuzzer_of(script)
        with fuzzer.folder:
            return fuzzer.run(list(command), fuzzer.limits)[0]

    def test_none(self):
        self.assertEqual(self.complaint("echo fine"), "")
        self.assertEqual(self.complaint("echo 'stowage: error: t.json: not JSON' >&2; exit 3"), "")

    def test_signal(self):
        self.assertEqual(self.complaint("kill -SEGV $$"), "signal 11")

    def test_exit_codes(self):
        for code in (5, 70, 130, 134):
            self.assertEqual(self.complaint(f"echo 'stowage: error: x' >&2; exit {code}"), f"exit code {code}")

    def test_processor_time(self):
        self.assertEqual(self.complaint("while :; do :; done"), "signal 24")

    def test_memory(self):
        self.assertEqual(self.complaint("echo 'stowage: error: not enough memory' >&2; exit 4"), "memory")
        self.assertEqual(self.complaint("exec >/dev/null 2>&1; ulimit -v | grep -qx 1048576 && kill -KILL $$"), "signal 9")

    def test_control_characters(self):
        self.assertEqual(self.complaint(r"printf 'a\033[2J'"), "control characters")
        self.assertEqual(self.complaint(r"printf 'a\377' >&2"), "control characters")

    def test_errors(self):
        self.assertEqual(self.complaint("exit 3"), "0 error lines")
        self.assertEqual(self.complaint("echo 'stowage: error: a'>&2; echo 'stowage: error: b'>&2; exit 3"), "2 error lines")
        self.assertEqual(self.complaint("printf 'stowage: error: %05000d' 1 >&2; exit 3"), "an error of megabytes")

    def test_json(self):
        self.assertEqual(self.complaint("echo '{'", ("inspect", "--json")), "JSON that is none")
        self.assertEqual(self.complaint("echo '{}'", ("inspect", "--json")), "")


class Mutations(unittest.TestCase):
    def test_a_seed_gives_the_same_bytes(self):
        for seed in range(200):
            twice = [mutations.damage_json(DOCUMENT, random.Random(seed)) for _ in range(2)]
            self.assertEqual(*twice)

    def test_most_are_other_documents_and_some_still_json(self):
        whole = json.dumps(DOCUMENT, separators=(",", ":")).encode()
        drawn = [mutations.damage_json(DOCUMENT, random.Random(seed)) for seed in range(500)]
        self.assertGreater(sum(text != whole for text in drawn), 450)
        parsed = 0
        for text in drawn:
            try:
                json.loads(text)
                parsed += 1
            except (ValueError, RecursionError):
                pass
        self.assertGreater(parsed, 200)
        self.assertLess(parsed, 500)

    def test_the_undamaged_document_is_left_alone(self):
        before = json.dumps(DOCUMENT)
        for seed in range(50):
            mutations.damage_json(DOCUMENT, random.Random(seed))
        self.assertEqual(json.dumps(DOCUMENT), before)


if __name__ == "__main__":
    unittest.main()
