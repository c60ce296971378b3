#!/usr/bin/env python3
"""kill -9 at random moments, start-up and saves included, over and over: in the end the run has the bits of one that
nobody touched. KILLS and SEED in the environment choose others."""

import os
import random
import signal
import time
import unittest

import launch_words
from training import TrainingTest

KILLS = int(os.environ.get("KILLS", "20"))
STEPS = 5 * KILLS


class KillLoop(TrainingTest):
    def settings(self, run):
        return (f"training.run={run}", f"training.steps={STEPS}", "strategy.tensor=2", "strategy.zero_stage=1",
                "checkpoint.every=2")

    def test_same_bits(self):
        seed = int(os.environ.get("SEED", str(random.randrange(1_000_000))))
        print(f"SEED={seed} KILLS={KILLS}", flush=True)
        chance = random.Random(seed)
        words = launch_words.nproc(4, self.train(*self.settings("run")))
        began = time.monotonic()
        self.finish(self.start(launch_words.nproc(4, self.train(*self.settings("whole")))))
        step_seconds = (time.monotonic() - began) / STEPS
        saving = 0
        for number in range(KILLS):
            job = self.start(words)
            reached = max(self.metrics(), default=0)
            kind = chance.choice(("early", "step", "save"))
            if kind == "step":
                self.wait_for_steps(job, min(reached + 1, STEPS - 1))
                time.sleep(chance.random() * 6 * step_seconds)
            elif kind == "save":
                saving += self.wait_for_a_save(job)
            else:
                time.sleep(chance.random() * 2)
            victim = chance.choice(("launcher", 0, 1, 2, 3))
            pid = job.process.pid if victim == "launcher" else job.rank(victim)
            if pid is not None and job.process.poll() is None:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            else:
                job.process.kill()
            job.wait()
            self.assertNotIn("Traceback", job.output())
            with self.subTest(kill=number, kind=kind, victim=victim):
                self.finish(job, None if job.process.returncode else 0)
                if (self.folder / "run" / "checkpoints").exists():
                    self.assert_only_whole_checkpoints()
        self.finish(self.start(words))
        print(f"killed while a checkpoint was under way: {saving}", flush=True)
        self.assertEqual(self.losses("whole"), self.losses("run"))
        self.assertEqual(len(self.losses("run")), STEPS)

    def wait_for_a_save(self, job):
        """Until files of an unfinished checkpoint stand in the run folder."""
        folder = self.folder / "run" / "checkpoints"
        end = time.monotonic() + 60
        while job.process.poll() is None and time.monotonic() < end:
            if any(not path.name.startswith("step-") or not (path / "manifest.json").exists()
                   for path in folder.glob("*")):
                return 1
        return 0


if __name__ == "__main__":
    unittest.main(verbosity=2)
