#!/usr/bin/env python3
"""One rank that cannot go on ends all of them with its own words and exit code, once, and leaves whole checkpoints."""

import os
import unittest

import launch_words
from training import RIDGELINE, TrainingTest

ENDLESS = ("training.steps=1000000", "optimizer.decay=constant")


class FailingRank(TrainingTest):
    def engine(self, commands):
        """A stand-in for the engine that runs `commands` on rank 2 before it becomes the engine."""
        path = self.folder / "engine"
        real = os.path.join(os.path.dirname(RIDGELINE), "ridgeline-engine")
        path.write_text(f"""#!/usr/bin/env bash
rank=${{RANK:-${{OMPI_COMM_WORLD_RANK:-${{PMI_RANK:-}}}}}}
if [ "$rank" = 2 ]; then {commands}; fi
exec {real} "$@"
""")
        path.chmod(0o755)
        return {"RIDGELINE_ENGINE": str(path)}

    def run_with(self, commands, code, *settings, launcher=launch_words.nproc):
        job = self.start(launcher(4, self.train(*ENDLESS, *settings)), **self.engine(commands))
        output = self.finish(job, code)
        self.assertEqual(output.count("rank 2 failed"), 1, output)
        return output

    def test_file_size_limit(self):
        """Rank 2 can write 16 KiB; a checkpoint's part is larger."""
        for launcher in launch_words.ALL:
            if not launcher.here():
                continue
            with self.subTest(launcher=launcher.__name__):
                # What torchrun, unlike the others, makes of a rank's exit code is 1 always.
                output = self.run_with("trap '' XFSZ; ulimit -f 16", 1, "checkpoint.every=4", launcher=launcher)
                self.assertRegex(output, r"ridgeline: rank 2 failed: .*run/checkpoints/\S+: .*File too large")
                self.assertEqual(self.assert_only_whole_checkpoints(), 0)

    def test_killed_by_a_limit(self):
        output = self.run_with("ulimit -f 16", 1, "checkpoint.every=4")
        self.assertIn("rank 2 was killed by signal 25 (File size limit exceeded)", output)
        self.assertEqual(self.assert_only_whole_checkpoints(), 0)

    def test_out_of_memory(self):
        """One rank is given less than the machine has for it, which no account of the model can know."""
        output = self.run_with("ulimit -d 1200000", 1, "model.hidden=1024", "model.layers=12")
        self.assertRegex(output, r"ridgeline: rank 2 failed: out of memory: \S+ [GM]iB more were wanted\. Use a "
                                 r"smaller strategy\.micro_batch")

    def test_data_only_others_see(self):
        """A machine whose file system is not mounted: rank 2 is somewhere else."""
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "run.toml").write_text((self.folder / "run.toml").read_text())
        output = self.run_with("cd elsewhere", 2)
        self.assertRegex(output, r"rank 2 failed: data\.path = \"corpus\": corpus\.(bin|idx)\b.*No such "
                                 r"file.* \[host \S+\]")

    def test_config_only_others_see(self):
        (self.folder / "elsewhere").mkdir()
        job = self.start(launch_words.nproc(4, self.train()), **self.engine("cd elsewhere"))
        output = self.finish(job, 2)
        self.assertRegex(output, r"ridgeline: .*run\.toml.*No such file")
        self.assertIn("rank 2 ended with exit code 2", output)

    def test_wrong_config_is_told_once(self):
        for launcher in launch_words.ALL:
            if not launcher.here():
                continue
            with self.subTest(launcher=launcher.__name__):
                output = self.finish(self.start(launcher(4, self.train("strategy.tensor=3"))), code=None)
                self.assertEqual(output.count("strategy.tensor"), 1, output)


if __name__ == "__main__":
    unittest.main(verbosity=2)
