#!/usr/bin/env python3
"""Trials that searches take on a recorded table: ours beside the defaults of DeepHyper and Optuna.

  python3 -m venv build/tuners && build/tuners/bin/pip install -r bench/requirements-bench.txt
  build/tuners/bin/python bench/tune_replay.py TABLE --program build/bench/bench_tune_replay -- --model gpt-175b \\
      --machine selene --devices 512 --global-batch 1536

All searches see the same table: a row that failed is a failed trial. DeepHyper and Optuna draw each dimension by itself; what
they draw that is no legal strategy (no row) is refused and costs them no trial, and neither does a point that they draw
again. A line for each search: the median over seeds of the trials to within 1 % and 5 % of the table's best (a seed that never got
there counts as more than all trials), of failures, of failures after the first ten trials, and of the best time found.

With --save FILE each seed of DeepHyper and Optuna is kept as it ends, a JSON line, and the same command goes on after a stop:
DeepHyper takes minutes for each.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
DIMENSIONS_NOT = {"data", "outcome", "step_seconds", "memory_gib"}
MOST_DRAWS = 20  # for each trial


class Table:
    def __init__(self, path):
        with open(path, newline="") as stream:
            rows = list(csv.DictReader(stream))
        names = [name for name in rows[0] if name not in DIMENSIONS_NOT]
        self.values = {}
        for name in names:
            texts = {row[name] for row in rows}
            is_number = all(text.replace(".", "", 1).isdigit() for text in texts)
            if len(texts) > 1:
                self.values[name] = sorted(texts, key=float if is_number else str)
        # Seconds, or nothing for a failure.
        self.seconds = {
            tuple(row[name] for name in self.values): float(row["step_seconds"]) if row["outcome"] == "ok" else None
            for row in rows
        }
        self.fastest = min(seconds for seconds in self.seconds.values() if seconds)


class Score:
    def __init__(self):
        self.within1 = self.within5 = self.failures = self.later_failures = 0
        self.best = float("inf")
        self.trials = 0

    def add(self, seconds, fastest):
        self.trials += 1
        if seconds is None:
            self.failures += 1
            self.later_failures += self.trials > 10
            return
        self.best = min(self.best, seconds / fastest)
        if not self.within1 and self.best <= 1.01:
            self.within1 = self.trials
        if not self.within5 and self.best <= 1.05:
            self.within5 = self.trials


def run_search(table, trials, ask, tell):
    """`ask()` gives a dict of values; `tell(asked, seconds)` takes seconds or None for a failure."""
    score, seen = Score(), {}
    for _ in range(MOST_DRAWS * trials):
        if score.trials == trials:
            break
        asked, values = ask()
        key = tuple(values[name] for name in table.values)
        seconds = table.seconds.get(key)
        if key in table.seconds and key not in seen:
            seen[key] = seconds
            score.add(seconds, table.fastest)
        tell(asked, seconds)
    return score


def deephyper(table, trials, seed):
    from deephyper.hpo import CBO, HpProblem

    problem = HpProblem()
    for name, texts in table.values.items():
        problem.add_hyperparameter(texts, name)
    # Its default gives up after 100 failures.
    search = CBO(problem, random_state=seed, verbose=0, acq_optimizer_kwargs={"max_total_failures": -1})

    def ask():
        config = search.ask(1)[0]
        return config, config

    def tell(config, seconds):
        search.tell([(config, "F_failed" if seconds is None else -seconds)])

    return run_search(table, trials, ask, tell)


def optuna(table, trials, seed):
    import optuna as library

    library.logging.set_verbosity(library.logging.ERROR)
    study = library.create_study(sampler=library.samplers.TPESampler(seed=seed))

    def ask():
        trial = study.ask()
        return trial, {name: trial.suggest_categorical(name, texts) for name, texts in table.values.items()}

    def tell(trial, seconds):
        if seconds is None:
            study.tell(trial, state=library.trial.TrialState.FAIL)
        else:
            study.tell(trial, seconds)

    return run_search(table, trials, ask, tell)


def ours(arguments, table, kind):
    command = [arguments.program, arguments.table, "--seeds", str(arguments.seeds), "--trials", str(arguments.trials)]
    done = subprocess.run(command + [f"--{kind}"] + arguments.rest, stdout=subprocess.PIPE, text=True, check=True)
    scores = []
    for line in done.stdout.splitlines():
        score, fields = Score(), line.split()
        score.within1, score.within5, score.failures, score.later_failures = map(int, fields[2:6])
        score.best = float(fields[6])
        scores.append(score)
    return scores


def of_seeds(arguments, table, name, search):
    scores = {}
    if arguments.save and os.path.exists(arguments.save):
        with open(arguments.save) as stream:
            for line in map(json.loads, stream):
                if (line["search"], line["table"], line["of"]) == (name, os.path.basename(arguments.table), arguments.trials):
                    scores[line["seed"]] = Score()
                    vars(scores[line["seed"]]).update(line["score"])
    for seed in range(arguments.seeds):
        if seed in scores:
            continue
        scores[seed] = search(table, arguments.trials, seed)
        print(f"{name} seed {seed}: {vars(scores[seed])}", file=sys.stderr, flush=True)
        if arguments.save:
            line = {"search": name, "table": os.path.basename(arguments.table), "of": arguments.trials, "seed": seed}
            with open(arguments.save, "a") as stream:
                stream.write(json.dumps(line | {"score": vars(scores[seed])}) + "\n")
    return [scores[seed] for seed in range(arguments.seeds)]


def report(name, scores, trials, seconds):
    def median(values):
        middle = statistics.median(values)
        return f"> {trials}" if middle > trials else f"{middle:g}"

    reached1 = [score.within1 or trials + 1 for score in scores]
    reached5 = [score.within5 or trials + 1 for score in scores]
    print(
        f"{name:28} within 1 %: {median(reached1):>6}   within 5 %: {median(reached5):>6}   failures "
        f"{median([score.failures for score in scores]):>6}   after ten {median([score.later_failures for score in scores]):>6}   "
        f"best {statistics.median(score.best for score in scores):.4f}   ({len(scores)} seeds, {seconds:.0f} s)",
        flush=True,
    )


def main():
    own = sys.argv[1 : sys.argv.index("--")] if "--" in sys.argv else sys.argv[1:]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--program", default="build/bench/bench_tune_replay")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--save", help="file of finished seeds")
    parser.add_argument("--only", nargs="*", default=["prior", "blind", "optuna", "deephyper"])
    arguments = parser.parse_args(own)
    arguments.rest = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    table = Table(arguments.table)
    for name in arguments.only:
        start = time.monotonic()
        if name in ("prior", "blind"):
            scores = ours(arguments, table, name)
        else:
            scores = of_seeds(arguments, table, name, {"optuna": optuna, "deephyper": deephyper}[name])
        title = {"prior": "Ridgeline", "blind": "Ridgeline, blind", "optuna": "Optuna (TPE)", "deephyper": "DeepHyper (CBO)"}
        report(title[name], scores, arguments.trials, time.monotonic() - start)


if __name__ == "__main__":
    main()
