#!/usr/bin/env python3
"""kill -9 of one rank, under every launcher: all ranks end with a message that names it, nothing is left over, no
checkpoint is torn, and the same command goes on to the losses of an unbroken run."""

import signal
import time
import unittest

import launch_words
from training import TrainingTest

ENDLESS = ("training.steps=1000000", "checkpoint.every=5", "optimizer.decay=constant")


class KilledRank(TrainingTest):
    def setUp(self):
        super().setUp()
        self.finish(self.start(self.train("training.run=whole", *ENDLESS, "training.steps=60", "checkpoint.every=0")))

    def kill(self, launcher, rank, by=signal.SIGKILL):
        if not launcher.here():
            self.skipTest(f"{launcher.__name__} is not installed")
        before = max(self.metrics(), default=0)
        job = self.start(launcher(4, self.train(*ENDLESS)))
        self.wait_for_steps(job, before + 7)
        job.kill_rank(rank, by)
        killed = time.monotonic()
        output = self.finish(job, code=None)
        # Far below the communication timeout (600 s), by which a rank would see it without a watchdog.
        self.assertLess(time.monotonic() - killed, 60, output)
        self.assertGreaterEqual(self.assert_only_whole_checkpoints(), 1)
        self.go_on(launcher)
        return output

    def go_on(self, launcher):
        reached = max(self.metrics())
        steps = min(60, reached + 10)
        self.finish(self.start(launcher(4, self.train(*ENDLESS, f"training.steps={steps}"))))
        found = self.losses()
        self.assert_same_losses(self.losses("whole")[:len(found)], found[:60])

    def test_nproc(self):
        for rank in (0, 2):
            with self.subTest(rank=rank):
                output = self.kill(launch_words.nproc, rank)
                self.assertRegex(output, rf"ridgeline: rank {rank} failed: its process \(\d+\) ended without a word; "
                                         r"it was last (at step \d+, )?in ")
                self.assertIn(f"rank {rank} was killed by signal 9 (out of memory?)", output)

    def test_crash_of_a_rank(self):
        output = self.kill(launch_words.nproc, 1, signal.SIGSEGV)
        self.assertIn("rank 1 was killed by signal 11 (Segmentation fault)", output)

    def other(self, launcher):
        for rank in (0, 2):
            with self.subTest(rank=rank):
                # Who is faster, the launcher with its own words or our watchdog, is open; one of them names the culprit.
                self.assertRegex(self.kill(launcher, rank), rf"rank {rank} failed|rank +: {rank} |process rank {rank} |"
                                                            rf"lost rank {rank}'s store")

    def test_torchrun(self):
        self.other(launch_words.torchrun)

    def test_openmpi(self):
        self.other(launch_words.openmpi)

    def test_mpich(self):
        """It kills all ranks before they could say who died, and says the wrong process itself."""
        for rank in (0, 2):
            with self.subTest(rank=rank):
                self.assertIn("Killed (signal 9)", self.kill(launch_words.mpich, rank))

    def test_launcher_itself(self):
        """The kernel ends the ranks of a launcher that is killed."""
        job = self.start(launch_words.nproc(4, self.train(*ENDLESS)))
        self.wait_for_steps(job, 7)
        job.process.kill()
        self.finish(job, code=-signal.SIGKILL)
        self.assert_only_whole_checkpoints()
        self.go_on(launch_words.nproc)


if __name__ == "__main__":
    unittest.main(verbosity=2)
