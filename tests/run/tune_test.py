#!/usr/bin/env python3
"""`ridgeline tune` with real training runs of a tiny GPT on two ranks: some fail on purpose, in every way, and the study ends
with a config that trains."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from training import RIDGELINE, TrainingTest

STUDY = """
model = "./run.toml"
machine = "local-cpu"
devices = 2
seed = 3

[space]
tensor = [1, 2]
pipeline = [1, 2]
micro_batch = [2, 4, 8]
zero_stage = [0]
recompute = "none"
sequence_parallel = "off"

[budget]
trials = 20

[measure]
steps = 12
least_steps = 6
tolerance = 0.2
hopeless = 0
confirm = 2
confirm_rounds = 1
confirm_steps = 6

[executor]
command = ["{command}"]
heartbeat_seconds = 15
"""

# What needs more than a strategy that ran out of memory is not tried: so that is the one that needs the most.
FAULTS = {"2 1 2": "crash", "2 1 4": "hang", "1 2 8": "memory", "1 2 4": "diverge", "1 1 4": "kill", "1 2 2": "refuse"}
OUTCOMES = {"2 1 2": "crashed", "2 1 4": "timeout", "1 2 8": "out_of_memory", "1 2 4": "diverged", "1 1 4": "ok",
            "1 2 2": "invalid", "1 1 2": "ok", "2 1 8": "ok"}


def key_of(trial):
    strategy = trial["strategy"]
    return f"{strategy['tensor']} {strategy['pipeline']} {strategy['micro_batch']}"


class RealStudy(TrainingTest):
    def tune(self, *words, **variables):
        quiet = {"GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "passive"}  # ranks outnumber the cores here
        done = subprocess.run([RIDGELINE, "tune", *words], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | quiet | variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_failures_of_each_kind(self):
        command = Path(__file__).with_name("faulty-train")
        (self.folder / "study.toml").write_text(STUDY.format(command=command))
        out, log = self.tune("study.toml", "--json", FAULTS=json.dumps(FAULTS), RIDGELINE=RIDGELINE)
        document = json.loads(out)
        found = {key_of(trial): trial["outcome"] for trial in document["trials"]}
        self.assertEqual(found, OUTCOMES, log)
        self.assertRegex(log, r"is tried again: killed from outside")
        self.assertEqual(OUTCOMES[key_of(document["best"])], "ok")
        self.assertEqual(len(document["confirmed"]), 2)
        self.assertFalse((self.folder / "study.runs").exists())
        # What it ends with trains.
        self.finish(self.start([RIDGELINE, "train", "best.toml", "--nproc", 2, "--set=training.steps=2"]))
        self.assertEqual(len(self.metrics()), 2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
