"""TensorBoard's own reader must find in our event files what check_tensorboard.cpp put there."""

import subprocess
import sys
import tempfile

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, folder], check=True)
        events = EventAccumulator(folder)
        events.Reload()
        assert events.file_version == 2.0 or events.file_version is None, events.file_version
        tags = events.Tags()["scalars"]
        for tag in ("train/loss", "train/tokens", "speed/mfu", "memory/peak_gib", "\u03bb"):
            assert tag in tags, (tag, tags)

        # Steps 6 to 8 of the first file are void, since the run was resumed after step 5.
        loss = [(event.step, event.value) for event in events.Scalars("train/loss")]
        assert [step for step, _ in loss] == [1, 2, 3, 4, 5, 6, 7], loss
        for step, value in loss:
            expected = 10.0 / step if step <= 5 else 100.0
            assert abs(value - expected) < 1e-6, (step, value)
        assert [event.value for event in events.Scalars("speed/mfu")] == [0.5] * 5
        assert events.Scalars("memory/peak_gib")[0].value == 3.0
        assert "large/step" not in tags or not events.Scalars("large/step")
        times = [event.wall_time for event in events.Scalars("train/loss")]
        assert times == sorted(times) and times[0] > 1.7e9
        print(f"{len(loss)} steps, {len(tags)} tags")


if __name__ == "__main__":
    main()
