#!/usr/bin/env python3
"""kill -9 of the tuner and of trials at random moments: nothing is lost or run twice, no process is left over, and the
study goes the way that it would have gone. KILLS says how many."""

import os
import random
import time
import unittest

from studies import StudyTest, kill

KILLS = int(os.environ.get("KILLS", "8"))
TRIALS = 30


class Kill(StudyTest):
    def kill_at_random(self, study, generator):
        """Kills tuners and trials until so many have died; returns how many tuners did."""
        killed = tuners = 0
        while killed < KILLS:
            process = self.start(study, FAKE_PAUSE="0.02")
            end = time.monotonic() + generator.uniform(0.02, 1.2)
            while time.monotonic() < end and process.poll() is None:
                time.sleep(0.01)
                if killed < KILLS and generator.random() < 0.03 and (self.folder / "study.sqlite").exists():
                    runs = self.marked()
                    if runs:
                        kill(generator.choice(runs))
                        killed += 1
            if process.poll() is None:
                kill(process.pid)
                killed += 1
                tuners += 1
            process.communicate()
            if process.returncode == 0:
                break  # all trials are done: fewer could be killed than was asked for
        return killed, tuners

    def run_killed(self, slots):
        seed = random.randrange(1 << 30)
        print(f"seed {seed}")
        study = self.write(trials=TRIALS + 2 * KILLS, slots=slots)
        killed, tuners = self.kill_at_random(study, random.Random(seed))
        self.assertGreaterEqual(tuners, 1)
        document = self.result(study)
        trials = self.assert_in_order()
        self.assertEqual(sum(trial["place"] is None for trial in trials), 0)
        self.assert_nothing_left()
        return document, killed

    def test_goes_the_same_way(self):
        document, killed = self.run_killed(slots=1)
        self.assertGreaterEqual(killed, min(KILLS, 4))
        study = self.write("calm.toml", trials=TRIALS + 2 * KILLS)
        calm = self.result(study)
        self.assertEqual([trial["strategy"] for trial in document["trials"]],
                         [trial["strategy"] for trial in calm["trials"]])
        self.assertEqual(document["best"], calm["best"])

    def test_several_at_once(self):
        self.run_killed(slots=3)


if __name__ == "__main__":
    unittest.main(verbosity=2)
