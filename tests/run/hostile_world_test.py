#!/usr/bin/env python3
"""Full disks, damaged data, diverging losses, one folder used twice: each ends with the cause and the way out."""

import os
import subprocess
import unittest

import launch_words
from training import TrainingTest


class Data(TrainingTest):
    def refused(self, pattern, code=2):
        for launcher in (lambda ranks, words: words, launch_words.nproc):
            output = self.finish(self.start(launcher(4, self.train())), code)
            self.assertRegex(output, pattern)
            self.assertEqual(output.count("ridgeline: "), 1, output)
            self.assertFalse(list(self.folder.glob("run/checkpoints/step-*")))

    def test_truncated_tokens(self):
        with open(self.folder / "corpus.bin", "r+b") as file:
            file.truncate(os.path.getsize(self.folder / "corpus.bin") // 2 + 1)
        self.refused(r"corpus\.(bin|idx): ")

    def test_truncated_index(self):
        with open(self.folder / "corpus.idx", "r+b") as file:
            file.truncate(os.path.getsize(self.folder / "corpus.idx") // 2)
        self.refused(r"corpus\.idx: ")

    def test_lying_index(self):
        path = self.folder / "corpus.idx"
        content = bytearray(path.read_bytes())
        content[34:42] = b"\x7f" * 8  # the first two lengths
        path.write_bytes(content)
        self.refused(r"corpus\.bin: sequence 0 takes bytes 0 to \d+, and the file has \d+; .*corpus\.idx")

    def test_tokens_beyond_the_vocabulary(self):
        path = self.folder / "corpus.bin"
        content = bytearray(path.read_bytes())
        half = len(content) // 4
        content[:2 * half] = (60000).to_bytes(2, "little") * half
        path.write_bytes(content)
        self.refused(r"corpus\.bin: .*60000")


class Divergence(TrainingTest):
    def test_ends_with_the_cause(self):
        # Without clipping and warm-up, and steps that throw every weight away.
        settings = ("optimizer.lr=1e30", "optimizer.clip=0", "optimizer.warmup_steps=0", "checkpoint.every=1",
                    "optimizer.decay=constant")
        job = self.start(launch_words.nproc(4, self.train(*settings)))
        output = self.finish(job, 1)
        self.assertRegex(output, r"step \d+: the gradient norm is -?(nan|inf) .*optimizer\.lr")
        self.assertEqual(output.count("gradient norm is"), 1, output)
        failed = max(self.metrics(), default=0) + 1
        self.assertIn(f"step {failed}: the gradient norm", output)
        self.assertEqual(self.assert_only_whole_checkpoints(), min(2, failed - 1))


@unittest.skipUnless(os.geteuid() == 0, "only root can mount a small file system")
class FullDisk(TrainingTest):
    """A checkpoint takes 410 KiB: the first fits, the next does not."""

    def setUp(self):
        super().setUp()
        (self.folder / "small").mkdir()
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k", "tmpfs", self.folder / "small"],
                               capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"cannot mount a tmpfs here: {mount.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder / "small"], check=True)

    def test_while_saving(self):
        settings = ("training.run=small/run", "checkpoint.every=2", "training.steps=8")
        output = self.finish(self.start(launch_words.nproc(4, self.train(*settings))), 1)
        self.assertRegex(output, r"rank \d failed: .*small/run/checkpoints\b.*(are free; |No space left on device)")
        self.assertEqual(output.count(" failed: "), 1, output)
        self.assertEqual(self.assert_only_whole_checkpoints("small/run"), 1)
        subprocess.run(["mount", "-o", "remount,size=4m", self.folder / "small"], check=True)
        output = self.finish(self.start(launch_words.nproc(4, self.train(*settings))))
        self.assertIn("resumed after step 2 of 8", output)
        self.finish(self.start(self.train("training.steps=8")))
        self.assert_same_losses(self.losses(), self.losses("small/run"))

    def test_known_before_the_first_step(self):
        (self.folder / "small" / "filler").write_bytes(bytes(500_000))
        output = self.finish(self.start(launch_words.nproc(4, self.train("training.run=small/run"))), 1)
        self.assertRegex(output, r"small/run: a checkpoint of this model takes .* are free")
        self.assertEqual(output.count(" failed: "), 1, output)


class OneFolderTwice(TrainingTest):
    def test_second_run_is_refused(self):
        first = self.start(launch_words.nproc(2, self.train("training.steps=1000000", "optimizer.decay=constant")))
        self.wait_for_steps(first, 2)
        second = self.start(launch_words.nproc(2, self.train()))
        output = self.finish(second, 2)
        self.assertRegex(output, r"training\.run = \"run\": .*process \d+ on \S+")
        self.assertIsNone(first.process.poll(), first.output())


if __name__ == "__main__":
    unittest.main(verbosity=2)
