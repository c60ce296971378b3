#!/usr/bin/env python3
"""`ridgeline tune` with trials that take milliseconds: what it finds, shows, keeps and writes, and how it is stopped."""

import csv
import io
import json
import os
import re
import signal
import statistics
import subprocess
import threading
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

    def test_warm_start(self):
        first = self.result(self.write("first.toml", trials=12))
        # The same problem, another seed and space: what is known is not tried again and costs no budget.
        study = self.write("second.toml", trials=6)
        words = (study, "--set", "seed=9", "--set", "space.tensor=[1, 2]", "--set", 'warm_start=["first.sqlite"]')
        document = self.result(*words)
        known = [trial for trial in document["trials"] if "inherited" in trial]
        expected = [trial for trial in first["trials"] if trial["strategy"]["tensor"] <= 2]
        self.assertEqual([trial["strategy"] for trial in known], [trial["strategy"] for trial in expected])
        self.assertEqual(len(document["trials"]), len(known) + 6)
        self.assert_in_order_but_known("second.sqlite")
        # Only its beginning reads earlier files.
        (self.folder / "first.sqlite").unlink()
        self.assertEqual(self.result(*words), document)
        error = self.tune(self.write("third.toml"), "--set", 'warm_start=["first.sqlite"]', code=2)[1]
        self.assertIn("warm_start: first.sqlite: there is no such file", error)

    def assert_in_order_but_known(self, name):
        points = [row["point"] for row in self.rows("select point from trials", name)]
        self.assertEqual(len(points), len(set(points)))
        runs = self.rows("select count(*) as n from runs join trials on trial = number where inherited != '' "
                         "and purpose = 'search'", name)
        self.assertEqual(runs[0]["n"], 0)

    def test_warm_start_from_other_devices(self):
        """Of another number of devices the ratios to predictions are taken over, and no trial."""
        self.tune(self.write("first.toml", trials=20), "--set", "measure.confirm=0")
        words = ("--set", "devices=8", "--set", "measure.confirm=0")
        cold = self.result(self.write("cold.toml", trials=8), *words)
        warm = self.result(self.write("warm.toml", trials=8), *words, "--set", 'warm_start=["first.sqlite"]')
        self.assertFalse([trial for trial in warm["trials"] if "inherited" in trial])
        self.assertGreater(self.rows("select count(*) as n from earlier", "warm.sqlite")[0]["n"], 10)

        def seconds_of_two(document):
            return sum(trial["objective"] for trial in document["trials"][:2])

        self.assertLess(seconds_of_two(warm), 0.95 * seconds_of_two(cold))
        error = self.tune(self.write("blind.toml"), *words, "--set", 'objective.prior="none"', "--set",
                          'warm_start=["first.sqlite"]', code=2)[1]
        self.assertIn("nothing to take over", error)

    def test_cheap_trials(self):
        """Half of the layers on fewer devices; the best of them measured whole."""
        study = self.write(trials=12)
        cheap = ("--set", "fidelity.layers=2", "--set", "fidelity.devices=2", "--set", "executor.keep_folders=true")
        document = self.result(study, *cheap)
        configs = {int(path.parent.name): tomllib.loads(path.read_text())
                   for path in (self.folder / "study.runs").glob("*/trial.toml")}
        layers = {"search": [], "confirm": []}
        for run in self.rows("select * from runs where outcome = 'ok'"):
            layers[run["purpose"]].append(configs[run["id"]]["model"]["layers"])
        self.assertEqual(set(layers["confirm"]), {4})
        # A layout that half of the layers cannot have, or whose cheap run would need more memory, is measured whole.
        self.assertLessEqual(set(layers["search"]), {2, 4})
        self.assertGreater(layers["search"].count(2), len(layers["search"]) / 2)
        self.assertEqual(len(document["confirmed"]), 2)
        best = document["best"]
        self.assertEqual(best["objective"], document["confirmed"][0]["objective"])
        # What was scaled up is near what the whole then took.
        scaled = {trial["trial"]: trial["objective"] for trial in document["trials"]}
        for entry in document["confirmed"]:
            self.assertLess(abs(scaled[entry["trial"]] / entry["objective"] - 1), 0.3)
        error = self.tune(self.write("other.toml"), *cheap, "--set", "measure.confirm=0", code=2)[1]
        self.assertIn("measure.confirm = 0: expected at least 1 with [fidelity]", error)

    def test_preset_alone(self):
        """A preset has no data: random tokens are made."""
        document = self.result(self.write(trials=3), "--set", "model=gpt-tiny", "--set", "global_batch=16")
        self.assertEqual(len(document["trials"]), 3)
        self.assertGreater((self.folder / "study.tokens.bin").stat().st_size, 1000)

    def test_measured_energy(self):
        """A counter that grows by 50 W while trials run."""
        counter = self.folder / "energy_uj"
        done = threading.Event()
        begin = time.monotonic()

        def count():
            while not done.is_set():
                joules = 50 * (time.monotonic() - begin)
                (self.folder / "new").write_text(f"{joules * 1e6:.0f}\n")
                os.replace(self.folder / "new", counter)
                time.sleep(0.002)

        thread = threading.Thread(target=count)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(done.set)
        while not counter.exists():
            time.sleep(0.01)
        goals = ("--set", 'objective.goals=["joules_per_token"]', "--set", 'objective.energy="measured"')
        document = self.result(self.write(trials=4), *goals, "--set", 'objective.energy_counters=["energy_uj"]',
                               "--set", "executor.keep_folders=true", FAKE_PAUSE="0.1")
        watts = [run["watts"] for run in self.rows("select watts from runs where outcome = 'ok'")]
        self.assertTrue(all(35 < value < 65 for value in watts), watts)
        seconds = self.rows("select step_seconds, costs from runs join trials on trial = number "
                            "where runs.outcome = 'ok' and purpose = 'search'")[0]
        median = statistics.median(json.loads(seconds["step_seconds"])[1:])
        config = tomllib.loads(next((self.folder / "study.runs").glob("*/trial.toml")).read_text())
        tokens = config["strategy"]["global_batch"] * config["model"]["sequence"]
        self.assertAlmostEqual(json.loads(seconds["costs"])[0] * tokens / median, 50, delta=15)
        self.assertIsNotNone(document["best"])
        error = self.tune(self.write("none.toml"), *goals, "--set", 'objective.energy_counters=["no-file"]', code=2)[1]
        self.assertIn("no-file: expected a readable file that begins with a number of joules", error)
        error = self.tune(self.write("slots.toml", slots=2), *goals, code=2)[1]
        self.assertIn("executor.slots = 1", error)

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
        self.assertTrue(keys.strip() in DOCS.read_text(), "docs/tune.md does not hold what `ridgeline tune --keys` prints")


if __name__ == "__main__":
    unittest.main(verbosity=2)
