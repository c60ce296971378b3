#!/usr/bin/env python3
"""Counts parameters as transformers does, from the same config.json, and compares with `ridgeline explain --json`.

  foreign_counts.py RIDGELINE FIXTURE.json ...

The models are built on the meta device: shapes without memory. A tied output weight counts once on both sides.
"""

import json
import subprocess
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def count_by_transformers(path):
    with open(path) as file:
        fields = json.load(file)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    return sum(parameter.numel() for parameter in model.parameters())


def count_by_ridgeline(program, path):
    output = subprocess.run([program, "explain", path, "--json"], check=True, capture_output=True, text=True).stdout
    return json.loads(output)["parameters"]


def main():
    program, paths = sys.argv[1], sys.argv[2:]
    if not paths:
        sys.exit(__doc__)
    faults = 0
    for path in paths:
        ours, theirs = count_by_ridgeline(program, path), count_by_transformers(path)
        print(f"{path}: {ours} ridgeline, {theirs} transformers")
        faults += ours != theirs
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
