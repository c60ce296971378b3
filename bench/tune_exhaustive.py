#!/usr/bin/env python3
"""How good what `ridgeline tune` finds is: against a measurement of every layout of the same space, with both bests
measured again in turns.

  bench/tune_exhaustive.py STUDY.toml [--ridgeline PATH] [--rounds N] [--folder FOLDER]

Prints the tuner's best and that of all layouts with the medians of the turns, and by how much the first is slower.
Takes as long as the space is large; stopped, the same command goes on.
"""

import argparse
import json
import os
import statistics
import subprocess
import tomllib
from pathlib import Path


def tune(arguments, name, *settings):
    command = [arguments.ridgeline, "tune", arguments.study, "--json",
               f"--set=store={arguments.folder}/{name}.sqlite", f"--set=best={arguments.folder}/{name}.toml"]
    done = subprocess.run([*command, *(f"--set={setting}" for setting in settings)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def median_step(arguments, name, number):
    """Seconds of a step of the config FOLDER/NAME.toml, from a run of its own."""
    run = arguments.folder / f"turn-{name}-{number}"
    settings = {"training.run": run, "training.steps": arguments.steps, "checkpoint.at_end": "false",
                "checkpoint.every": 0, "checkpoint.resume": "false", "evaluation.every": 0}
    devices = tomllib.loads(Path(arguments.study).read_text())["devices"]
    subprocess.run([arguments.ridgeline, "train", f"{arguments.folder}/{name}.toml", "--nproc", str(devices),
                    *(f"--set={key}={value}" for key, value in settings.items())], check=True, stderr=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["step_seconds"] for line in lines[len(lines) // 4:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--ridgeline", default="./ridgeline")
    parser.add_argument("--folder", type=Path, default=Path("runs/tune-exhaustive"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tuned = tune(arguments, "tuned")
    every = tune(arguments, "every", "budget.trials=100000", "measure.hopeless=0")
    times = {"tuned": [], "every": []}
    for number in range(arguments.rounds):
        for name in times:
            times[name].append(median_step(arguments, name, number))
    for name, document, words in (("tuned", tuned, "tuner"), ("every", every, "all layouts")):
        print(f"{words}: {len(document['trials'])} trials, best {json.dumps(document['best']['strategy'])}")
        print(f"  turns {' '.join(f'{seconds * 1e3:.1f}' for seconds in times[name])} ms, "
              f"median {statistics.median(times[name]) * 1e3:.1f} ms")
    excess = statistics.median(times["tuned"]) / statistics.median(times["every"]) - 1
    print(f"the tuner's best is slower by {excess:+.1%}")


if __name__ == "__main__":
    main()
