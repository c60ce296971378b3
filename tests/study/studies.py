"""Studies for tests: a folder, the command, and what its store says."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

RIDGELINE = os.environ["RIDGELINE"]
FAKE_TRAIN = Path(__file__).with_name("fake-train")

CONFIG = """
[model]
preset = "gpt-tiny"

[strategy]
global_batch = 16

[data]
path = "corpus"
"""

STUDY = """
model = "./model.toml"
machine = "local-cpu"
devices = 4
seed = 7

[objective]
kind = "measured"

[space]
micro_batch = [1, 2, 4, 8]
recompute = "none, full"
sequence_parallel = "off"
schedule = "1f1b"

[budget]
trials = {trials}

[measure]
steps = 10
least_steps = 7
confirm = 2
confirm_rounds = 2
confirm_steps = 7

[executor]
command = ["{command}"]
slots = {slots}
heartbeat_seconds = 2
retries = 100
"""


class StudyTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        (self.folder / "model.toml").write_text(CONFIG)

    def write(self, name="study.toml", trials=24, slots=1, command=FAKE_TRAIN, extra=""):
        text = STUDY.format(trials=trials, slots=slots, command=command) + extra
        (self.folder / name).write_text(text)
        return name

    def start(self, *words, **variables):
        return subprocess.Popen([RIDGELINE, "tune", *map(str, words)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | variables)

    def tune(self, *words, code=0, **variables):
        process = self.start(*words, **variables)
        out, err = process.communicate()
        self.assertEqual(process.returncode, code, err)
        return out, err

    def result(self, *words, **variables):
        return json.loads(self.tune(*words, "--json", **variables)[0])

    def rows(self, sql, name="study.sqlite"):
        with contextlib.closing(sqlite3.connect(self.folder / name, timeout=30)) as connection:
            connection.row_factory = sqlite3.Row
            return [dict(row) for row in connection.execute(sql)]

    def study_id(self, name="study.sqlite"):
        return self.rows("select value from study where name = 'id'", name)[0]["value"]

    def marked(self, name="study.sqlite"):
        """Processes of the study's runs that are alive."""
        mark = b"RIDGELINE_TRIAL=" + self.study_id(name).encode() + b"/"
        found = []
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                if any(word.startswith(mark) for word in (folder / "environ").read_bytes().split(b"\0")):
                    found.append(int(folder.name))
        return found

    def assert_in_order(self, name="study.sqlite"):
        """Nothing lost, nothing run twice."""
        trials = self.rows("select * from trials order by number", name)
        self.assertEqual([trial["number"] for trial in trials], list(range(1, len(trials) + 1)))
        ended = sorted(trial["place"] for trial in trials if trial["place"] is not None)
        self.assertEqual(ended, list(range(1, len(ended) + 1)))
        points = [trial["point"] for trial in trials]
        self.assertEqual(len(points), len(set(points)), "a point was tried twice")
        for trial in trials:
            runs = self.rows(f"select * from runs where trial = {trial['number']} and purpose = 'search'", name)
            measured = [run for run in runs if run["outcome"] not in (None, "infrastructure")]
            self.assertEqual(len(measured), 0 if trial["place"] is None else 1, trial)
        return trials

    def assert_nothing_left(self, name="study.sqlite"):
        deadline = time.monotonic() + 10
        while self.marked(name) and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.marked(name), [])
        self.assertFalse((self.folder / name).with_suffix(".runs").exists())


def kill(process):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
