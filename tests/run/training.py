"""Small trainings as a user starts them: whole processes under real launchers, in a temporary folder.

A Job is one launcher with its ranks. Its processes carry a mark in their environment, by which ranks are found among
all processes of the machine, and by which a test sees whether any is left over. ctest sets RIDGELINE, the path of the
command, and RIDGELINE_TORCHRUN.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

RIDGELINE = os.environ.get("RIDGELINE", "")
TORCHRUN = os.environ.get("RIDGELINE_TORCHRUN") or shutil.which("torchrun") or "torchrun"
# Only a hang is ever to reach this: a loaded machine of two cores needs a few seconds for what takes milliseconds.
PATIENCE = float(os.environ.get("PATIENCE", "240"))
RANK_VARIABLES = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID")

CONFIG = """
[model]
preset = "gpt-tiny"
layers = 2
hidden = 32
heads = 4
vocabulary = 257
sequence = 16
dropout = 0.1

[strategy]
global_batch = 8

[data]
path = "corpus"

[optimizer]
lr = 1e-3
warmup_steps = 2

[training]
run = "run"
steps = 6
device = "cpu"
log_every = 1000000
"""


def environment_of(pid):
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return {}
    pairs = (word.decode(errors="replace").partition("=") for word in words)
    return {name: value for name, _, value in pairs}


def is_dead(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True


def wait_until(condition, what):
    end = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise AssertionError(f"waited {PATIENCE:.0f} s in vain for {what}")
        time.sleep(0.02)


class Job:
    """A launcher that was started. `words` is its command line."""

    def __init__(self, words, folder, variables=None):
        self.mark = uuid.uuid4().hex
        self.log = Path(folder) / f"log-{self.mark[:8]}.txt"
        environment = {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}
        # Ranks outnumber the cores here: waiting threads must sleep, not spin.
        environment |= {"GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "passive", "RIDGELINE_TEST_JOB": self.mark}
        environment |= {"TMPDIR": str(folder)}  # a launcher that is killed cannot tidy up
        environment |= variables or {}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([str(word) for word in words], cwd=folder, env=environment,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def output(self):
        return self.log.read_text(errors="replace")

    def processes(self):
        """{pid: its environment} of all processes of this job that run."""
        found = {}
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            environment = environment_of(entry)
            if environment.get("RIDGELINE_TEST_JOB") == self.mark and not is_dead(entry):
                found[int(entry)] = environment
        return found

    def rank(self, number):
        """The process that is rank `number`, once its engine runs; None before."""
        for pid, environment in self.processes().items():
            try:
                program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
            except OSError:
                continue
            of_this = next((environment[name] for name in RANK_VARIABLES if name in environment), None)
            if program == "ridgeline-engine" and of_this == str(number):
                return pid
        return None

    def kill_rank(self, number, by=signal.SIGKILL):
        os.kill(wait_until(lambda: self.rank(number), f"rank {number} to start"), by)

    def wait(self):
        """The exit code of the launcher."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.end()
            raise AssertionError(f"no end within {PATIENCE:.0f} s; it said:\n{self.output()}") from None

    def end(self):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()


class TrainingTest(unittest.TestCase):
    """A folder with a corpus and CONFIG for each test; jobs of it are ended with it."""

    def setUp(self):
        if not os.access(RIDGELINE, os.X_OK):
            self.fail(f"RIDGELINE={RIDGELINE!r}: expected the path of the command")
        self.folder = Path(tempfile.mkdtemp(prefix="ridgeline-run-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "run.toml").write_text(CONFIG)
        text = "\n\n".join(" ".join(str(number * number % 9973) for number in range(line, line + 60))
                           for line in range(80))
        (self.folder / "corpus.txt").write_text(text)
        self.call("data", "tokenize", "corpus.txt", "--documents", "paragraph", "--output", "corpus")

    def call(self, *words):
        return subprocess.run([RIDGELINE, *map(str, words)], cwd=self.folder, check=True, capture_output=True,
                              text=True).stdout

    def train(self, *settings):
        """The words of `ridgeline train` with --set for each of `settings`."""
        return [RIDGELINE, "train", "run.toml", *(f"--set={setting}" for setting in settings)]

    def start(self, words, **variables):
        job = Job(words, self.folder, variables)
        self.addCleanup(job.end)
        return job

    def finish(self, job, code=0):
        """Waits for the end, expects this exit code (None: any but 0) and nothing left over; returns the output."""
        found = job.wait()
        output = job.output()
        if code is None:
            self.assertNotEqual(found, 0, f"it said:\n{output}")
        else:
            self.assertEqual(found, code, f"it said:\n{output}")
        # What a launcher killed may take a moment to go.
        wait_until(lambda: not job.processes(), f"{job.processes().keys()} to end; the job said:\n{output}")
        return output

    def metrics(self, run="run"):
        """{step: line} of what the run folder holds so far."""
        path = self.folder / run / "metrics.jsonl"
        if not path.exists():
            return {}
        whole = path.read_text().rpartition("\n")[0]
        lines = [json.loads(line) for line in whole.splitlines()]
        self.assertEqual(len({line["step"] for line in lines}), len(lines), f"{path}: a step stands there twice")
        return {line["step"]: line for line in lines}

    def losses(self, run="run"):
        """What must not depend on time or load: (step, loss, gradient norm, learning rate)."""
        return [(step, line["loss"], line["grad_norm"], line["lr"]) for step, line in sorted(self.metrics(run).items())]

    def wait_for_steps(self, job, steps, run="run"):
        def reached():
            if job.process.poll() is not None:
                raise AssertionError(f"it ended before step {steps} and said:\n{job.output()}")
            return len(self.metrics(run)) >= steps
        wait_until(reached, f"step {steps}; so far it said:\n{job.output()}")

    def assert_same_losses(self, expected, found, tolerance=1e-5):
        self.assertEqual([row[0] for row in expected], [row[0] for row in found])
        for one, other in zip(expected, found):
            for name, a, b in zip(("loss", "gradient norm", "learning rate"), one[1:], other[1:]):
                self.assertLessEqual(abs(a - b), tolerance * max(abs(a), abs(b)), f"{name} of step {one[0]}")

    def assert_only_whole_checkpoints(self, run="run"):
        listed = json.loads(self.call("checkpoint", "list", run, "--json"))["checkpoints"]
        self.assertEqual([entry["damage"] for entry in listed if not entry["complete"]], [])
        return len(listed)


def installed(program):
    return unittest.skipUnless(shutil.which(program), f"{program} is not installed")
