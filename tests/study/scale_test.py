#!/usr/bin/env python3
"""`ridgeline scale`: simulated, and with runs that take milliseconds; what it reckons, keeps and refuses."""

import csv
import io
import json
import os
import re
import subprocess
import time
import unittest
from pathlib import Path

from studies import FAKE_TRAIN, RIDGELINE, StudyTest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "scaling.md"

FILE = """
model = "./model.toml"
machine = "local-cpu"

[scale]
devices = [1, 2, 4]
global_batch = 16
repeats = 3

[measure]
steps = 10
least_steps = 7
tolerance = 0.5

[executor]
command = ["{command}"]
heartbeat_seconds = 2
"""


class Scale(StudyTest):
    def setUp(self):
        super().setUp()
        (self.folder / "scale.toml").write_text(FILE.format(command=FAKE_TRAIN))

    def start(self, *words, **variables):
        return subprocess.Popen([RIDGELINE, "scale", *map(str, words)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | variables)

    def example(self, name, *words):
        return self.result(ROOT / "examples" / f"scale-frontier-{name}.toml", "--set", "store=frontier.sqlite", *words)

    def test_simulated_strong(self):
        document = self.example("175b", "--strong")
        points = document["points"]
        self.assertEqual([point["devices"] for point in points], [128, 256, 512, 1024])
        first = points[0]["step_seconds"]["middle"]
        for point in points:
            self.assertEqual(point["strategy"]["global_batch"], 8000)
            expected = first * 128 / (point["step_seconds"]["middle"] * point["devices"])
            self.assertAlmostEqual(point["efficiency"]["middle"], expected, places=12)
            self.assertAlmostEqual(point["predicted"]["efficiency"], expected, places=12)
            self.assertAlmostEqual(sum(point["loss"].values()), 1 - expected, places=9)
            self.assertAlmostEqual(point["critical_share"] * document["critical_batch"]["tokens"], 8000 * 2048, places=3)
        # Ever fewer micro-batches for a replica: it is the bubble that grows.
        loss = points[-1]["loss"]
        self.assertEqual(max(loss, key=loss.get), "bubble")
        low, high = document["fit"]["interval"]
        self.assertLess(low, document["fit"]["share"])
        self.assertLess(document["fit"]["share"], high)

    def test_simulated_weak(self):
        document = self.example("175b", "--weak")
        rates = [point["tokens_per_device_second"] for point in document["points"]]
        for point, rate in zip(document["points"], rates):
            self.assertEqual(point["strategy"]["global_batch"], 640 * point["strategy"]["data"])
            self.assertAlmostEqual(point["efficiency"]["middle"], rate / rates[0], places=12)
        self.assertGreater(document["points"][-1]["efficiency"]["middle"], 0.95)

    def test_best_at_each_point(self):
        given = self.example("175b", "--strong", "--devices", "128,512")
        best = self.example("175b", "--strong", "--devices", "128,512", "--best", "--set", "store=best.sqlite")
        for at, better in zip(given["points"], best["points"]):
            self.assertLess(better["step_seconds"]["middle"], at["step_seconds"]["middle"])

    def test_measured(self):
        document = self.result("scale.toml", "--strong")
        times = [point["step_seconds"] for point in document["points"]]
        for point, seconds in zip(document["points"], times):
            self.assertEqual(len(point["runs"]), 3)
            self.assertEqual(seconds["low"], min(point["runs"]))
            self.assertEqual(seconds["high"], max(point["runs"]))
            expected = times[0]["middle"] / (seconds["middle"] * point["devices"])
            self.assertAlmostEqual(point["efficiency"]["middle"], expected, places=12)
        # These runs take as long on any number: nothing scales.
        self.assertAlmostEqual(document["fit"]["share"], 1, places=2)
        self.assertEqual(self.result("scale.toml", "--strong", "--status"), document)
        rows = list(csv.DictReader(io.StringIO(self.tune("scale.toml", "--strong", "--export", "csv")[0])))
        self.assertEqual([int(row["devices"]) for row in rows], [1, 2, 4])
        self.assertAlmostEqual(float(rows[2]["efficiency"]), document["points"][2]["efficiency"]["middle"])
        # More points are added to those that there are.
        more = self.result("scale.toml", "--strong", "--devices", "8")
        self.assertEqual([point["devices"] for point in more["points"]], [1, 2, 4, 8])
        self.assertEqual([point["runs"] for point in more["points"][:3]], [point["runs"] for point in document["points"]])
        self.assertEqual(len(more["points"][3]["runs"]), 3)
        self.assertIn("Amdahl", self.tune("scale.toml", "--strong")[0])

    def test_goes_on_after_a_kill(self):
        process = self.start("scale.toml", "--strong", FAKE_PAUSE="0.05")
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if (self.folder / "scale-strong.sqlite").exists():
                try:
                    if self.rows("select count(*) as n from runs where outcome = 'ok'", "scale-strong.sqlite")[0]["n"] >= 2:
                        break
                except Exception:  # the tables are not there yet
                    pass
            time.sleep(0.01)
        process.kill()
        process.communicate()
        before = self.rows("select id, step_seconds from runs where outcome = 'ok'", "scale-strong.sqlite")
        self.assertTrue(2 <= len(before) < 9, before)
        document = self.result("scale.toml", "--strong")
        self.assertTrue(all(len(point["runs"]) == 3 for point in document["points"]))
        after = self.rows("select id, step_seconds from runs where outcome = 'ok'", "scale-strong.sqlite")
        self.assertEqual(after[:len(before)], before)
        self.assertEqual(len(after), 9)
        self.assert_nothing_left("scale-strong.sqlite")

    def test_failing_points_are_shown(self):
        words = ("scale.toml", "--strong", "--set", "strategy.pipeline=4", "--set", "strategy.recompute=full",
                 "--devices", "4,8")
        points = self.result(*words)["points"]
        self.assertEqual([point["outcome"] for point in points], ["crashed"] * 2)
        self.assertIn("no such layer", points[0]["message"])
        self.assertIn("crashed", self.tune(*words)[0])

    def test_critical_batch(self):
        said = self.tune("scale.toml", "--weak", "--set", "objective.kind=simulate", "--set",
                         "scale.critical_batch_tokens=3000")[0]
        self.assertRegex(said, r"From 2 devices on .* the batch is beyond it")

    def test_wrong_input(self):
        for words, message in (
                ((), "scale.kind is missing: give --weak or --strong"),
                (("--strong", "--devices", "3"), "3 devices, 16 samples a step: strategy.global_batch = 16"),
                (("--weak", "--best", "--set", "scale.replica_batch=4"), "scale.replica_batch = 4: replicas of strategies"),
                (("--strong", "--status"), "there is no such study yet"),
                (("--strong", "--set", "machine="), None),
                (("--weak", "--strong"), "excludes")):
            with self.subTest(words):
                if message is None:
                    self.tune("scale.toml", *words, "--set", "objective.kind=simulate", code=2)
                    continue
                self.assertIn(message, self.tune("scale.toml", *words, code=2)[1])
        self.tune("scale.toml", "--strong", "--devices", "1,2", "--set", "scale.repeats=1")
        error = self.tune("scale.toml", "--strong", "--set", "strategy.micro_batch=2", code=2)[1]
        self.assertIn("strategy.micro_batch = 2 (was strategy.micro_batch = 1)", error)

    def test_keys_are_those_of_the_docs(self):
        keys = subprocess.run([RIDGELINE, "scale", "--keys"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(keys.strip() in DOCS.read_text(), "docs/scaling.md does not hold what `ridgeline scale --keys` prints")

    def test_tables_of_the_docs(self):
        """Efficiencies in docs/scaling.md are those that the commands print."""
        text = DOCS.read_text()
        for name, devices in (("175b", 1024), ("1t", 3072)):
            for kind in ("weak", "strong"):
                (self.folder / "frontier.sqlite").unlink(missing_ok=True)
                point = self.example(name, f"--{kind}")["points"][-1]
                self.assertEqual(point["devices"], devices)
                found = re.search(rf"\| {name.upper()}, {kind} \|[^|]*\| ([\d.]+) % \|", text)
                self.assertAlmostEqual(float(found[1]), 100 * point["efficiency"]["middle"], delta=0.06)


if __name__ == "__main__":
    unittest.main(verbosity=2)
