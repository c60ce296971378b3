#!/usr/bin/env python3
"""`ridgeline tune` under a real Slurm of two virtual nodes: trials as steps of an allocation and as jobs. Skips like
slurm_test.py, whose cluster it uses."""

import json
import os
import sqlite3
import subprocess
import time
from pathlib import Path

from training import RIDGELINE, wait_until
from under_slurm import SlurmTest, main

FAKE_TRAIN = Path(__file__).parents[1] / "study" / "fake-train"

STUDY = """
model = "./run.toml"
machine = "./machine.toml"
devices = 2
seed = 3

[space]
tensor = [1, 2]
pipeline = [1, 2]
micro_batch = [2, 4]
recompute = "none"
sequence_parallel = "off"

[budget]
trials = 4

[measure]
steps = 10
least_steps = 7
tolerance = 0.5
hopeless = 0
confirm = 0

[executor]
slots = 2
deadline_seconds = 120
retries = 0
"""

MACHINE = """
[machine]
name = "two-nodes"
base = "local-cpu"
devices_per_node = 2
"""


class TuneUnderSlurm(SlurmTest):
    def setUp(self):
        super().setUp()
        (self.folder / "study.toml").write_text(STUDY)
        (self.folder / "machine.toml").write_text(MACHINE)

    def tune(self, *settings):
        return [RIDGELINE, "tune", "study.toml", *(f"--set={setting}" for setting in settings)]

    def call_slurm(self, *words):
        return subprocess.run(words, capture_output=True, text=True, env=os.environ | self.slurm).stdout

    def status(self):
        return json.loads(self.call("tune", "study.toml", "--status", "--json"))

    def assert_all_ok(self):
        trials = self.status()["trials"]
        self.assertEqual([trial["outcome"] for trial in trials], ["ok"] * 4, trials)

    def test_steps_on_disjoint_nodes(self):
        """Real training; two at a time, each on a node of its own."""
        job = self.start(["salloc", "--quiet", "-N", 2, "--ntasks-per-node", 2,
                          *self.tune('executor.kind="srun"')], **self.slurm)
        shared = []

        def steps():
            lines = self.call_slurm("squeue", "--steps", "--noheader", "--format=%j %N").splitlines()
            nodes = [line.split()[1] for line in lines if line.startswith("ridgeline-")]
            if len(nodes) == 2:
                shared.append(nodes)
            return job.process.poll() is not None

        wait_until(steps, "the study to end")
        self.finish(job)
        self.assert_all_ok()
        self.assertTrue(shared, "two trials were never at work at once")
        self.assertTrue(all(len(set(nodes)) == 2 for nodes in shared), shared)

    def test_steps_of_a_killed_tuner(self):
        slow = ('executor.kind="srun"', f'executor.command=["{FAKE_TRAIN}"]')
        words = ["salloc", "--quiet", "-N", 2, "--ntasks-per-node", 2, "sh", "-c",
                 '"$@" & tuner=$!; sleep 4; kill -KILL $tuner; wait; FAKE_PAUSE=0.01 exec "$@"', "sh", *self.tune(*slow)]
        output = self.finish(self.start(words, FAKE_PAUSE="100", **self.slurm))
        self.assertIn("going on with study.sqlite: 0 trials have ended, 2 were under way", output)
        self.assert_all_ok()
        self.assertFalse([line for line in self.call_slurm("squeue", "--steps", "--noheader").splitlines() if line])

    def test_jobs_outlive_the_tuner(self):
        words = self.tune('executor.kind="sbatch"', f'executor.command=["{FAKE_TRAIN}"]')
        first = self.start(words, FAKE_PAUSE="0.7", **self.slurm)
        wait_until(lambda: len(self.call_slurm("squeue", "--noheader", "--states=RUNNING").splitlines()) == 2, "two jobs")
        time.sleep(1)
        first.process.kill()
        first.process.wait()
        before = self.status()["trials"]
        self.finish(self.start(words, **self.slurm))
        self.assert_all_ok()
        runs = self.call("tune", "study.toml", "--status", "--json")
        self.assertEqual(json.loads(runs)["trials"][0]["strategy"], before[0]["strategy"])
        handles = self.handles()
        self.assertEqual(len(handles), 4, "a job was submitted twice")

    def test_scaling_by_jobs(self):
        """A job for each point and repeat; a file of `scale` shares the executor's keys with one of `tune`."""
        executor = STUDY[STUDY.index("[executor]"):]
        (self.folder / "scale.toml").write_text(f"""
model = "./run.toml"
machine = "./machine.toml"
[scale]
devices = [1, 2, 4]
global_batch = 8
repeats = 2
[strategy]
tensor = 1
pipeline = 1
micro_batch = 2
[measure]
steps = 10
least_steps = 7
{executor}kind = "sbatch"
command = ["{FAKE_TRAIN}"]
""")
        self.finish(self.start([RIDGELINE, "scale", "scale.toml", "--strong"], **self.slurm))
        points = json.loads(self.call("scale", "scale.toml", "--strong", "--status", "--json"))["points"]
        self.assertEqual([(point["devices"], len(point["runs"])) for point in points], [(1, 2), (2, 2), (4, 2)])
        with sqlite3.connect(self.folder / "scale-strong.sqlite") as connection:
            nodes = dict(connection.execute("select trial, max(nodes) from runs group by trial"))
        self.assertEqual(sorted(nodes.values()), [1, 1, 2])

    def handles(self):
        with sqlite3.connect(self.folder / "study.sqlite") as connection:
            return [row[0] for row in connection.execute("select handle from runs")]


if __name__ == "__main__":
    main()
