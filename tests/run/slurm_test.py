#!/usr/bin/env python3
"""The same training under a real Slurm of two virtual nodes. Skips, saying what is missing, where Slurm's programs are
not installed and cannot be."""

import getpass
import os
import re
import shutil
import subprocess

from training import TORCHRUN, wait_until
from under_slurm import SlurmTest, main

class Slurm(SlurmTest):
    def srun(self, *words):
        return self.start(["srun", "--quiet", "-N", 2, *words], **self.slurm)

    def test_losses_of_one_rank(self):
        self.finish(self.start(self.train("training.run=one")))
        # How ranks lie on nodes: evenly, and as Slurm likes to fill them (three and one).
        for name, shape, local in (("even", ("--ntasks-per-node", 2), 2), ("uneven", ("-n", 4), 3)):
            with self.subTest(shape=name):
                output = self.finish(self.srun(*shape, *self.train(f"training.run={name}", "strategy.tensor=2")))
                self.assertRegex(output, rf"rank 0 of 4 \(local 0 of {local}, slurm, rendezvous at 127\.0\.0\.1:\d+\)")
                threads = int(re.search(r"(\d+) threads a rank", output)[1])
                self.assertEqual(threads, max(1, len(os.sched_getaffinity(0)) // local))
                self.assert_same_losses(self.losses("one"), self.losses(name))

    def test_allocation_without_srun(self):
        output = self.finish(self.start(["salloc", "--quiet", "-N", 2, *self.train()], **self.slurm))
        self.assertRegex(output, r"inside Slurm job \d+ but not started by srun: this is one rank")

    def test_torchrun_inside_srun(self):
        if not shutil.which(TORCHRUN):
            self.skipTest("torchrun is not installed")
        self.finish(self.start(self.train("training.run=one")))
        output = self.finish(self.srun("--ntasks-per-node", 1, TORCHRUN, "--nnodes", 2, "--rdzv-backend", "c10d",
                                       "--rdzv-endpoint", "127.0.0.1:29533", "--nproc-per-node", 2, "--no-python",
                                       *self.train()))
        self.assertRegex(output, r"rank 0 of 4 \(local 0 of 2, torchrun")
        self.assert_same_losses(self.losses("one"), self.losses())

    def test_two_steps_at_once(self):
        """Two jobs whose ranks share the machines meet their own kind."""
        jobs = [self.srun("--ntasks-per-node", 1, *self.train(f"training.run={name}")) for name in "ab"]
        for job in jobs:
            self.finish(job)
        self.assertEqual(self.losses("a"), self.losses("b"))

    def test_killed_rank(self):
        job = self.srun("-n", 4, *self.train("training.steps=1000000", "checkpoint.every=5"))
        self.wait_for_steps(job, 7)
        job.kill_rank(2)
        output = self.finish(job, code=None)
        self.assertRegex(output, r"rank 2 failed: its process \(\d+\) ended without a word")
        self.assertGreaterEqual(self.assert_only_whole_checkpoints(), 1)

    def test_data_that_one_node_misses(self):
        """srun by itself does not end the other tasks when one fails."""
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "run.toml").write_text((self.folder / "run.toml").read_text())
        job = self.srun("-n", 4, "sh", "-c", '[ "$SLURM_PROCID" != 2 ] || cd elsewhere; exec "$@"', "sh", *self.train())
        output = self.finish(job, code=2)
        self.assertEqual(len(re.findall(r"rank 2 failed: .*corpus\.\w+.*No such file", output)), 1, output)

    def stop(self, send, code):
        job = self.srun("-n", 4, *self.train("training.steps=1000000", "optimizer.decay=constant"))
        self.wait_for_steps(job, 3)
        send(job)
        output = self.finish(job, code)
        stopped = max(self.metrics())
        self.assertEqual(output.count(f"saved after step {stopped}; the same command continues"), 1, output)
        self.finish(self.srun("-n", 4, *self.train(f"training.steps={stopped + 3}", "optimizer.decay=constant")))
        self.assertEqual(max(self.metrics()), stopped + 3)

    def test_warning_before_the_time_limit(self):
        """What `--signal=USR1@300` does, by hand."""
        self.stop(lambda job: self.scancel("--signal=USR1"), code=3)

    def scancel(self, *words):
        subprocess.run(["scancel", *words, "--user", getpass.getuser()], check=True, env=os.environ | self.slurm)

    def test_cancelled(self):
        """scancel sends SIGTERM, and SIGKILL only KillWait seconds later. (SIGTERM to srun itself kills the tasks.)"""
        self.stop(lambda job: self.scancel(), code=None)

    def tearDown(self):
        wait_until(lambda: not subprocess.run(["squeue", "--noheader"], capture_output=True, text=True,
                                              env=os.environ | self.slurm).stdout.strip(), "the queue to be empty")


if __name__ == "__main__":
    main()
