#!/usr/bin/env python3
"""The same training under every launcher of one machine: each says what it detected, divides the cores among its ranks,
gives the losses of one rank and leaves nothing over."""

import re
import socket
import unittest

from launch_words import mpich, nproc, openmpi, torchrun
from training import TORCHRUN, RIDGELINE, TrainingTest, installed

LAYOUTS = {"data": (), "mixed": ("strategy.tensor=2", "strategy.pipeline=2")}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def threads(output):
    return int(re.search(r"(\d+) threads a rank", output)[1])


class Launchers(TrainingTest):
    def one_rank(self):
        self.output_of_one = self.finish(self.start(self.train("training.run=one")))
        self.assertIn("one rank", self.output_of_one)
        return self.losses("one")

    def check(self, launcher, start, cores_are_own=False):
        expected = self.one_rank()
        self.assertEqual(len(expected), 6)
        for name, layout in LAYOUTS.items():
            with self.subTest(layout=name):
                output = self.finish(self.start(start(4, self.train(f"training.run={name}", *layout))))
                self.assertRegex(output, rf"rank 0 of 4 \(local 0 of 4, {launcher}, rendezvous at \S+\)")
                # Four-fold output would drown what matters: only rank 0 tells how it goes.
                self.assertEqual(output.count("threads a rank"), 1)
                if not cores_are_own:
                    self.assertEqual(threads(output), max(1, threads(self.output_of_one) // 4))
                self.assert_same_losses(expected, self.losses(name))

    def test_nproc(self):
        self.check("local", nproc)

    @installed(TORCHRUN)
    def test_torchrun(self):
        self.check("torchrun", torchrun)

    @installed("mpirun.openmpi")
    def test_openmpi(self):
        # Open MPI binds ranks to cores where there are enough of them.
        self.check("openmpi", openmpi, cores_are_own=True)

    @installed("mpirun.mpich")
    def test_mpich(self):
        self.check("mpich", mpich)

    @installed(TORCHRUN)
    def test_two_agents_of_torchrun(self):
        expected = self.one_rank()
        port = free_port()
        agents = [self.start([TORCHRUN, "--nnodes", 2, "--node-rank", node, "--master-addr", "127.0.0.1",
                              "--master-port", port, "--nproc-per-node", 2, "--no-python", *self.train()])
                  for node in range(2)]
        outputs = [self.finish(agent) for agent in agents]
        self.assertIn("rank 0 of 4 (local 0 of 2, torchrun", outputs[0])
        self.assert_same_losses(expected, self.losses())

    def test_two_jobs_at_once(self):
        expected = self.one_rank()
        starters = [nproc, openmpi, mpich]
        jobs = {name: self.start(start(2, self.train(f"training.run={name}")))
                for start in starters for name in (f"{start.__name__}-a", f"{start.__name__}-b") if start.here()}
        for name, job in jobs.items():
            with self.subTest(job=name):
                self.finish(job)
                self.assert_same_losses(expected, self.losses(name))

    def test_nproc_inside_a_launcher_is_refused(self):
        if not mpich.here():
            self.skipTest("mpirun.mpich is not installed")
        output = self.finish(self.start(mpich(2, [RIDGELINE, "train", "run.toml", "--nproc", "2"])), code=2)
        self.assertIn("--nproc 2: mpich has started 2 ranks already", output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
