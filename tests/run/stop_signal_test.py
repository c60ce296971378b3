#!/usr/bin/env python3
"""Signals that ask to stop: saved, exit code 3, and the same command continues as if nothing had been."""

import signal
import unittest

import launch_words
from training import TrainingTest

LONG = ("training.steps=1000000", "optimizer.decay=constant")
WHOLE = 40


class StopSignal(TrainingTest):
    def setUp(self):
        super().setUp()
        self.finish(self.start(self.train("training.run=whole", *LONG, f"training.steps={WHOLE}")))

    def stop_and_go_on(self, launcher, number, code=3):
        if not launcher.here():
            self.skipTest(f"{launcher.__name__} is not installed")
        job = self.start(launcher(2, self.train(*LONG)))
        self.wait_for_steps(job, 3)
        job.process.send_signal(number)
        output = self.finish(job, code)
        stopped = max(self.metrics())
        saved = f"asked to stop: saved after step {stopped}; the same command continues"
        self.assertEqual(output.count(saved), 1, output)
        self.assertEqual(self.assert_only_whole_checkpoints(), 1)
        output = self.finish(self.start(launcher(2, self.train(*LONG, f"training.steps={stopped + 5}"))))
        self.assertIn(f"resumed after step {stopped} of {stopped + 5}", output)
        found = self.losses()
        self.assertEqual(found[-1][0], stopped + 5)
        compared = min(WHOLE, len(found))
        self.assert_same_losses(self.losses("whole")[:compared], found[:compared])

    def test_terminate(self):
        self.stop_and_go_on(launch_words.nproc, signal.SIGTERM)

    def test_interrupt(self):
        self.stop_and_go_on(launch_words.nproc, signal.SIGINT)

    def test_warning_of_a_batch_system(self):
        """SIGUSR1 is what `sbatch --signal=USR1@300` sends before the time limit; MPI launchers pass it on."""
        for launcher in (launch_words.nproc, launch_words.openmpi, launch_words.mpich):
            if launcher.here():
                with self.subTest(launcher=launcher.__name__):
                    self.stop_and_go_on(launcher, signal.SIGUSR1)
                    self.setUp()

    def test_torchrun_terminates(self):
        """torchrun passes SIGTERM on and waits; its own exit code is not ours to choose."""
        self.stop_and_go_on(launch_words.torchrun, signal.SIGTERM, code=None)

    def test_one_rank(self):
        job = self.start(self.train(*LONG))
        self.wait_for_steps(job, 3)
        job.process.send_signal(signal.SIGTERM)
        self.finish(job, 3)
        self.assertEqual(self.assert_only_whole_checkpoints(), 1)

    def test_before_the_first_step(self):
        """A signal while ranks still start is obeyed too, without a step or a word about a fault."""
        job = self.start(launch_words.nproc(2, self.train(*LONG)))
        while not job.rank(1) and job.process.poll() is None:
            pass
        job.process.send_signal(signal.SIGTERM)
        output = self.finish(job, code=3)
        self.assertNotIn("failed", output)

    def test_second_interrupt_kills(self):
        job = self.start(launch_words.nproc(2, self.train(*LONG, "model.hidden=512")))
        self.wait_for_steps(job, 1)
        job.process.send_signal(signal.SIGINT)
        job.process.send_signal(signal.SIGINT)
        self.finish(job, code=None)
        self.assert_only_whole_checkpoints()


if __name__ == "__main__":
    unittest.main(verbosity=2)
