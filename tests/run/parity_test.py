#!/usr/bin/env python3
"""ridgeline parity: layouts that agree, one that cannot, and words that are no layout."""

import json
import subprocess
import unittest

from training import RIDGELINE, TrainingTest


class Parity(TrainingTest):
    def parity(self, layouts, *words, code=0):
        found = subprocess.run([RIDGELINE, "parity", "run.toml", "--layouts", layouts, *words], cwd=self.folder,
                               capture_output=True, text=True)
        self.assertEqual(found.returncode, code, found.stderr)
        return found

    def test_layouts_agree(self):
        layouts = "data=1; tensor=2,pipeline=2; data=4,zero_stage=3; stage_layers=[1,1],pipeline=2"
        document = json.loads(self.parity(layouts, "--steps", "4", "--json").stdout)
        self.assertEqual([entry["ranks"] for entry in document["layouts"]], [1, 4, 4, 2])
        self.assertEqual(document["loss_bound"], 1e-5)
        for entry in document["layouts"]:
            self.assertEqual(len(entry["losses"]), 4)
            self.assertTrue(entry["within"])
            self.assertLess(entry["loss_difference"], 1e-5)
        self.assertNotEqual(document["layouts"][0]["losses"], [0] * 4)
        self.assertFalse((self.folder / "run").exists(), "the config's own run folder is left alone")

    def test_a_difference_ends_with_1(self):
        """Bounds that no sum in another order can keep."""
        found = self.parity("data=1; tensor=4", "--steps", "3", "--loss-bound", "1e-18", "--norm-bound", "1e-18", code=1)
        self.assertRegex(found.stdout, r"tensor=4 +4 .*DIFFERS")
        self.assertRegex(found.stdout, r"data=1 +1 +reference")

    def test_wrong_words(self):
        for layouts, words in (("data=1", "at least two"), ("data=1; tensor", "no KEY=VALUE"),
                               ("data=1; tensr=2", 'strategy.tensr'), ("data=1; tensor=3", "4 heads do not divide by 3"),
                               ("data=1; data=0", "expected an integer 1 to 4096"),
                               ("data=1; global_batch=4", "changes what is computed")):
            with self.subTest(layouts=layouts):
                self.assertIn(words, self.parity(layouts, code=2).stderr)


if __name__ == "__main__":
    unittest.main()
