"""Trainings under a real Slurm of two virtual nodes on the loopback interface (slurm-cluster), a cluster for each test.
Skips, saying what is missing, where Slurm's programs are not installed and cannot be."""

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from training import TrainingTest

CLUSTER = Path(__file__).with_name("slurm-cluster")
PROGRAMS = ("slurmctld", "slurmd", "srun", "munged")
PACKAGES = ("slurm-wlm", "munge")
SKIPPED = 77


def missing():
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    return [program for program in PROGRAMS if not shutil.which(program, path=path)]


def install():
    """What is missing after an attempt to install it, and why."""
    if not missing():
        return ""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return f"{', '.join(missing())} (as root: apt-get install --no-install-recommends {' '.join(PACKAGES)})"
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=120", "install", "-y", "--no-install-recommends", *PACKAGES]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"{', '.join(missing())}; apt-get: {last}" if missing() else ""


class SlurmTest(TrainingTest):
    """`self.slurm`: what commands of Slurm need in their environment."""

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        started = subprocess.run([CLUSTER, "start", self.folder / "slurm"], capture_output=True, text=True)
        self.assertEqual(started.returncode, 0, started.stderr)
        self.addCleanup(subprocess.run, [CLUSTER, "stop", self.folder / "slurm"], check=True)
        self.slurm = {"SLURM_CONF": started.stdout.strip()}


def main():
    lacking = install()
    if lacking:
        print(f"SKIPPED: no Slurm here: {lacking}")
        sys.exit(SKIPPED)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    unittest.main(verbosity=2)
