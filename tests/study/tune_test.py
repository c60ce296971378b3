#!/usr/bin/env python3
"""`ridgeline tune` with trials that take milliseconds: what it finds, shows, keeps and writes, and how it is stopped."""

import csv
import io
import re
import signal
import subprocess
import time
import tomllib
import unittest
from pathlib import Path

from studies import RIDGELINE, StudyTest

EXAMPLES = Path(__file__).parents[2] / "examples"
DOCS = Path(__file__).parents[2] / "docs" / "tune.md"


class Tune(StudyTest):
    def test_whole_study(self):
        study = self.write(trials=100, slots=4)  # more than there are: all are tried
        document = self.result(study)
        trials = self.assert_in_order()
        self.assertEqual(len(document["trials"]), len(trials))
        outcomes = {trial["outcome"] for trial in document["trials"]}
        self.assertEqual(outcomes, {"ok", "crashed", "timeout", "diverged", "out_of_memory", "stopped_early"})
        shap = {entry["name"]: entry["shap"] for entry in document["importance"]["dimensions"]}
        self.assertGreater(shap["micro_batch"], 3 * shap["zero_stage"])  # which changes nothing in these runs
        self.assertGreater(shap["recompute"], 3 * shap["zero_stage"])
        self.assertGreater(document["failures"]["crashed"], 0)
        best = document["best"]["strategy"]
        self.assertEqual((best["tensor"], best["pipeline"], best["micro_batch"], best["recompute"]), (1, 1, 4, "none"))
        self.assertEqual(len(document["confirmed"]), 2)
        self.assertTrue(all(len(entry["step_seconds"]) == 2 for entry in document["confirmed"]))
        for trial in document["trials"]:
            if trial["outcome"] == "out_of_memory":
                self.assertEqual(trial["missing_bytes"], 1.5 * 2**30)
            if trial["outcome"] == "timeout":
                self.assertIn("executor.heartbeat_seconds", trial["message"])
        # The first step is three times as long: it is found and left out.
        run = self.rows("select * from runs where outcome = 'ok' order by id")[0]
        self.assertGreaterEqual(run["dropped"], 1)
        config = tomllib.loads((self.folder / "best.toml").read_text())
        self.assertEqual(config["strategy"]["micro_batch"], 4)
        self.assert_nothing_left()

        # Started again there is nothing to do, and all views agree.
        again = self.result(study)
        self.assertEqual(again, document)
        self.assertEqual(self.result(study, "--status"), document)
        rows = list(csv.DictReader(io.StringIO(self.tune(study, "--export", "csv")[0])))
        self.assertEqual([row["outcome"] for row in rows], [trial["outcome"] for trial in document["trials"]])
        self.assertEqual(len(self.tune(study, "--top", 3)[0].splitlines()), 4)
        self.assertIn("Best: trial", self.tune(study, "--status")[0])

    def test_more_budget_goes_on(self):
        study = self.write(trials=6)
        first = self.result(study)
        more = self.result(study, "--set", "budget.trials=10")
        self.assertEqual(len(more["trials"]), 10)
        self.assertEqual(more["trials"][:6], first["trials"])

    def test_slots(self):
        study = self.write(trials=20, slots=4)
        process = self.start(study, FAKE_PAUSE="0.05")
        most = 0
        while process.poll() is None:
            if (self.folder / "study.sqlite").exists():
                try:
                    most = max(most, self.rows("select count(*) as n from trials where place is null")[0]["n"])
                except Exception:  # the tables are not there yet
                    pass
            time.sleep(0.01)
        self.assertEqual(process.returncode, 0, process.communicate()[1])
        process.communicate()
        self.assertEqual(most, 4)
        self.assert_in_order()
        self.assert_nothing_left()

    def test_interrupted(self):
        study = self.write(trials=20)
        process = self.start(study, FAKE_PAUSE="0.2")
        process.stderr.readline()  # the first trial has been started
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        error = process.communicate()[1]
        self.assertEqual(process.returncode, 3, error)
        self.assertIn("the same command goes on", error)
        self.assert_nothing_left()
        self.assertEqual(len(self.result(study)["trials"]), 20)
        self.assert_in_order()

    def test_status_before_the_start(self):
        self.assertIn("there is no such study yet", self.tune(self.write(), "--status", code=2)[1])

    def test_two_tuners(self):
        study = self.write(trials=20)
        first = self.start(study, FAKE_PAUSE="100")
        first.stderr.readline()
        error = self.tune(study, code=2)[1]
        self.assertRegex(error, rf"another tuner is at work on this study \(process {first.pid} on ")
        first.terminate()
        first.communicate()

    def test_wrong_input(self):
        for extra, words in (("\n[budgett]\ntrials = 1\n", "unknown table 'budgett'; did you mean 'budget'"),
                             ("slotz = 1\n", "unknown key 'executor.slotz'; did you mean 'executor.slots'"),
                             ("kind = \"srun\"\n", 'executor.kind = "srun": this is no Slurm allocation')):
            with self.subTest(words):
                error = self.tune(self.write(extra=extra), code=2)[1]
                self.assertIn(words, error)
                self.assertIn("study.toml:", error)

    def test_another_study(self):
        self.tune(self.write(trials=3))
        error = self.tune("study.toml", "--set", "seed=8", code=2)[1]
        self.assertIn("seed = 8 (was seed = 7)", error)

    def test_pareto_front(self):
        study = self.write(trials=12)
        document = self.result(study, "--set", 'objective.goals=["step_seconds", "tokens_per_node_hour"]',
                               "--set", "space.devices=[1, 2, 4]", "--set", "measure.confirm=0")
        # A step is no slower on one device here, and then cheaper: the front holds what no trial beats in both.
        good = [trial["objectives"] for trial in document["trials"] if trial["outcome"] == "ok"]
        for entry in (trial["objectives"] for trial in document["front"]):
            self.assertFalse(any(other["step_seconds"] < entry["step_seconds"] and
                                 other["tokens_per_node_hour"] > entry["tokens_per_node_hour"] for other in good))
        error = self.tune(self.write("joules.toml"), "--set", 'objective.goals=["joules_per_token"]', code=2)[1]
        self.assertIn("joules_per_token needs the machine's device.power_w", error)

    def test_example_of_the_docs(self):
        text = DOCS.read_text()
        example = text.split("```toml\n", 1)[1].split("```", 1)[0]
        (self.folder / "study.toml").write_text(example)
        document = self.result("study.toml")
        self.assertGreater(len(document["trials"]), 10)
        self.assertIsNotNone(document["best"])

    def test_learned_machine(self):
        study = self.write(trials=20)
        error = self.tune(study, "--set", "learned=learned.toml")[1]
        before, after = map(float, re.search(r"were off by ([\d.]+) %, with it by ([\d.]+) %", error).groups())
        self.assertLess(after, before / 2)
        # Another study of this space foretells its trials better with it.
        document = self.result(study, "--set", "machine=./learned.toml", "--set", "store=other.sqlite")
        self.assertLess(document["agreement"]["mean_absolute_error"], before / 100 / 2)

    def test_frontier_examples(self):
        (self.folder / "runs").mkdir()
        for name, recipe in (("175b", (4, 16, 1)), ("1t", (8, 64, 1))):
            document = self.result(EXAMPLES / f"tune-frontier-{name}.toml")
            rates = {(trial["strategy"]["tensor"], trial["strategy"]["pipeline"], trial["strategy"]["micro_batch"]):
                     trial["objective"] for trial in document["trials"] if trial["strategy"]["zero_stage"] == 1}
            # What the study chose is among the best of them.
            self.assertGreater(rates[recipe], 0.95 * document["best"]["objective"])

    def test_keys_are_those_of_the_docs(self):
        keys = subprocess.run([RIDGELINE, "tune", "--keys"], capture_output=True, text=True, check=True).stdout
        self.assertIn(keys.strip(), DOCS.read_text(), "docs/tune.md does not hold what `ridgeline tune --keys` prints")


if __name__ == "__main__":
    unittest.main(verbosity=2)
