"""The picture of the architecture is what files include, and check_doc_paths.py finds what is not there."""

import pathlib
import sys
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from architecture_picture import PLACES, Picture, Units  # noqa: E402
from check_doc_paths import Tree  # noqa: E402

FILES = {
    "traces/a.h": "",
    "simulator/step/a.h": '#include "traces/a.h"\n',
    "simulator/step/b.h": '#include "traces/a.h"\n#include "simulator/step/a.h"\n',
    "planner/a.h": '#include "simulator/step/a.h"\n#include "traces/a.h"\n',
    "executor/device/a.cpp": '#include <ATen/ATen.h>\n#include <cuda_runtime.h>\n',
    "tests/a.cpp": '#include "planner/a.h"\n',
}


class ArchitecturePicture(unittest.TestCase):
    def test_arrows_are_includes_and_none_that_follows_from_others(self):
        self.assertEqual(list(Units(FILES).drawn_arrows()),
                         [("simulator/step", "traces", 2), ("planner", "simulator/step", 1)])

    def test_a_unit_stands_above_what_it_includes(self):
        self.assertEqual(Units(FILES).layers(), {
            "traces": 0, "simulator/step": 1, "planner": 2, "executor/device": 0})

    def test_worlds(self):
        self.assertEqual(Units(FILES).worlds["executor/device"], ["LibTorch", "CUDA"])
        self.assertEqual(Units(FILES).worlds["planner"], [])

    def test_a_further_include_changes_the_picture(self):
        more = FILES | {"planner/b.h": '#include "executor/device/a.h"\n'}
        self.assertEqual(Picture(Units(FILES)).svg(), Picture(Units(dict(FILES))).svg())
        self.assertNotEqual(Picture(Units(FILES)).svg(), Picture(Units(more)).svg())

    def test_a_unit_without_a_place_gets_a_free_one(self):
        with mock.patch.dict(PLACES):
            del PLACES["executor/device"]
            picture = Picture(Units(FILES))
        self.assertGreaterEqual(abs(picture.x["executor/device"] - picture.x["traces"]), 152)


class DocPaths(unittest.TestCase):
    TREE = Tree(["traces/gzip.cpp", "docs/decisions/0011-later.md", "scripts/setup.sh"])

    def documents(self, text):
        return [named for _, named in self.TREE.check_document(text)]

    def test_documents(self):
        self.assertEqual(self.documents("`traces/gzip.cpp` `traces/gzip` `traces/` `setup.sh`"), [])
        self.assertEqual(self.documents("`docs/decisions/0011` `ATen/ATen.h` `p.json` traces/no.h"), [])
        self.assertEqual(self.documents("`traces/no.h`, `traces/gz`\n`no.sh`"),
                         ["traces/no.h", "traces/gz", "no.sh"])

    def test_sources(self):
        found = list(self.TREE.check_source("// traces/gzip.cpp, c10/no.h\n// (simulator/no.h)."))
        self.assertEqual(found, [(2, "simulator/no.h")])


if __name__ == "__main__":
    unittest.main()
