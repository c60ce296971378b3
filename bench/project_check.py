#!/usr/bin/env python3
"""Projections held against the truth: trains a tiny model some times, projects each run from its first 2 % of steps,
and compares with the time that it took in the end.

    bench/project_check.py --ridgeline build/bin/ridgeline [--repeats 10] [--steps 3000] [--keep FOLDER]
    bench/project_check.py --ridgeline build/bin/ridgeline --replay FOLDER      # what --keep has kept, no training

Prints a line for each run, and how many lie within their range and within 5 % of its middle. The machine should do
nothing else meanwhile.
"""
import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

CONFIG = """
[model]
layers = 2
hidden = 64
heads = 4
sequence = 64
[strategy]
global_batch = 8
micro_batch = 8
[data]
path = "corpus"
[checkpoint]
every = {every}
[training]
device = "cpu"
threads = 1
log_every = 1000000
"""


def train(ridgeline, folder, name, steps, seed):
    start = time.monotonic()
    subprocess.run([ridgeline, "train", "tiny.toml", f"--set=training.run={name}", f"--set=training.steps={steps}",
                    f"--set=training.seed={seed}"], cwd=folder, check=True, capture_output=True)
    seconds = time.monotonic() - start
    (folder / name / "seconds").write_text(f"{seconds}\n")


def project(ridgeline, run, share):
    """Of the first steps alone, as if the run had been stopped there."""
    lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
    tokens = json.loads(lines[-1])["tokens"]
    with tempfile.TemporaryDirectory() as name:
        short = Path(name)
        (short / "config.toml").write_text((run / "config.toml").read_text())
        (short / "metrics.jsonl").write_text("".join(lines[: max(1, round(share * len(lines)))]))
        words = [ridgeline, "project", short, "--tokens", str(tokens), "--no-failures", "--save-every", "1000y", "--json"]
        done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def check(ridgeline, runs, share):
    within = close = 0
    for run in runs:
        truth = float((run / "seconds").read_text())
        projection = project(ridgeline, run, share)
        low, middle, high = (86400 * projection["days"][key] for key in ("low", "middle", "high"))
        within += low <= truth <= high
        close += abs(middle / truth - 1) <= 0.05
        print(f"{run.name:12} took {truth:7.1f} s, projected {low:7.1f} to {high:7.1f}, likely {middle:7.1f} s "
              f"({100 * (middle / truth - 1):+5.1f} %) from {projection['measured']['steps']} steps"
              f"{'' if low <= truth <= high else '  OUTSIDE'}", flush=True)
    print(f"{within} of {len(runs)} within the range, {close} within 5 % of its middle")
    return within >= 0.9 * len(runs) and close >= 0.9 * len(runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ridgeline", required=True, type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--share", type=float, default=0.02)
    parser.add_argument("--keep", type=Path, help="folder for the runs; else a temporary one")
    parser.add_argument("--replay", type=Path, help="folder that --keep has filled")
    arguments = parser.parse_args()
    ridgeline = arguments.ridgeline.resolve()
    if arguments.replay:
        runs = sorted(path.parent for path in arguments.replay.glob("*/seconds"))
        raise SystemExit(0 if check(ridgeline, runs, arguments.share) else 1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        letters = random.Random(1)
        (folder / "text").write_text("".join(letters.choice("etaoin shrdlu\n") for _ in range(1_000_000)))
        subprocess.run([ridgeline, "data", "tokenize", "text", "--output", "corpus"], cwd=folder, check=True,
                       capture_output=True)
        (folder / "tiny.toml").write_text(CONFIG.format(every=arguments.steps // 3))
        for repeat in range(arguments.repeats):
            train(ridgeline, folder, f"run-{repeat}", arguments.steps, repeat)
        good = check(ridgeline, [folder / f"run-{repeat}" for repeat in range(arguments.repeats)], arguments.share)
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
