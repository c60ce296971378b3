#!/usr/bin/env python3
"""The batch job of `ridgeline job` on a real Slurm: it goes on after a failure, puts itself back in the queue when its
time is up, and gives up on what cannot work. Skips where Slurm is not installed and cannot be."""

import os
import re
import signal
import subprocess

from training import environment_of, is_dead, wait_until
from under_slurm import SlurmTest, main

MACHINE = """
[machine]
name = "virtual"
base = "local-cpu"
devices_per_node = 2
[links]
node_gb_per_s = 10
nic_gb_per_s = 1
[operation]
node_storage_gb_per_s = 1000
"""


class BatchJob(SlurmTest):
    def setUp(self):
        super().setUp()
        self.slurm |= {"GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "passive"}
        (self.folder / "virtual.toml").write_text(MACHINE)

    def submit(self, *settings, replace=()):
        """The number of the job; `replace`: (pattern, text) in its script, to hurry what takes minutes otherwise."""
        words = ["job", "run.toml", "--machine", "./virtual.toml", "--nodes", "2", "--walltime", "20min",
                 *(f"--set={setting}" for setting in settings)]
        script = self.call(*words)
        for pattern, text in (("sleep 10", "sleep 1"), *replace):
            script, count = re.subn(pattern, text, script)
            self.assertEqual(count, 1, pattern)
        (self.folder / "job.sh").write_text(script)
        done = subprocess.run(["sbatch", "--parsable", "job.sh"], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | self.slurm)
        self.assertEqual(done.returncode, 0, done.stderr)
        return int(done.stdout)

    def state(self, job):
        text = self.slurm_says("scontrol", "--oneliner", "show", "job", job)
        return re.search(r"JobState=(\S+)", text)[1], re.search(r"ExitCode=(\S+)", text)[1]

    def slurm_says(self, *words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              env=os.environ | self.slurm).stdout

    def log(self, job):
        path = self.folder / f"run-{job}.log"
        return path.read_text() if path.exists() else ""

    def wait_for_steps(self, job, steps):
        wait_until(lambda: len(self.metrics()) >= steps, f"step {steps}; so far it said:\n{self.log(job)}")

    def finish_job(self, job, state, code=None):
        ends = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        wait_until(lambda: self.state(job)[0] in ends, f"the job to end; so far it said:\n{self.log(job)}")
        found = self.state(job)
        self.assertEqual(found, (state, code or found[1]), self.log(job))

    def rank(self, job, number):
        for entry in os.listdir("/proc"):
            environment = environment_of(entry) if entry.isdigit() else {}
            if environment.get("SLURM_JOB_ID") != str(job) or environment.get("SLURM_PROCID") != str(number):
                continue
            program = os.path.basename(os.path.realpath(f"/proc/{entry}/exe"))
            if program == "ridgeline-engine" and not is_dead(entry):
                return int(entry)
        return None

    def test_trains_to_the_end(self):
        job = self.submit("strategy.tensor=2")
        self.finish_job(job, "COMPLETED", "0:0")
        self.assertEqual(len(self.metrics()), 6)
        self.assertIn("rank 0 of 4 (local 0 of 2, slurm", self.log(job))

    def test_starts_again_after_a_failure(self):
        job = self.submit("training.steps=600", "checkpoint.every=5")
        self.wait_for_steps(job, 12)
        os.kill(wait_until(lambda: self.rank(job, 1), "rank 1"), signal.SIGKILL)
        self.finish_job(job, "COMPLETED", "0:0")
        self.assertIn("resumed after step", self.log(job))
        self.assertEqual(sorted(self.metrics()), list(range(1, 601)))

    def test_goes_back_in_the_queue_when_its_time_is_up(self):
        # As if the signal came at the end of the job: its script believes that the limit is near.
        job = self.submit("training.steps=400", replace=((r"limit=\d+", "limit=1"),))
        self.wait_for_steps(job, 20)
        self.slurm_says("scancel", "--signal=USR1", job)
        wait_until(lambda: "back in the queue" in self.log(job), f"the job to save; it said:\n{self.log(job)}")
        self.finish_job(job, "COMPLETED", "0:0")
        self.assertIn("resumed after step", self.log(job))
        self.assertEqual(sorted(self.metrics()), list(range(1, 401)))

    def test_gives_up_on_what_cannot_work(self):
        wrong = self.submit("data.path=nowhere")
        self.finish_job(wrong, "FAILED", "2:0")
        # Every start is killed before its first checkpoint.
        futile = self.submit("training.steps=100000", "checkpoint.every=0")
        for _ in range(3):
            pid = wait_until(lambda: self.rank(futile, 0), "rank 0")
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda: is_dead(pid), "rank 0 to end")
        self.finish_job(futile, "FAILED")
        self.assertIn("3 starts in a row without a new checkpoint; giving up", self.log(futile))


if __name__ == "__main__":
    main()
