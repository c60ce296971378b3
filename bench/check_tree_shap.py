#!/usr/bin/env python3
"""Our SHAP values against the shap package's TreeExplainer on the same forest.

  build/tuners/bin/python bench/check_tree_shap.py build/bench/bench_tree_shap

The environment is that of bench/tune_replay.py. Exits 1 where a value differs by more than 1e-6.
"""

import json
import subprocess
import sys

import numpy as np
import shap

MOST = 1e-6


def tree_for_shap(tree, share):
    values = np.array(tree["values"], dtype=np.float64).reshape(-1, 1) * share
    return {
        "children_left": np.array(tree["children_left"], dtype=np.int32),
        "children_right": np.array(tree["children_right"], dtype=np.int32),
        "children_default": np.array(tree["children_right"], dtype=np.int32),
        "features": np.array(tree["features"], dtype=np.int32),
        "thresholds": np.array(tree["thresholds"], dtype=np.float64),
        "values": values,
        "node_sample_weight": np.array(tree["covers"], dtype=np.float64),
    }


def main():
    done = subprocess.run(sys.argv[1:2] or ["build/bench/bench_tree_shap"], stdout=subprocess.PIPE, check=True)
    ours = json.loads(done.stdout)
    trees = [tree_for_shap(tree, 1 / len(ours["trees"])) for tree in ours["trees"]]
    model = {
        "trees": trees,
        "base_offset": 0.0,
        "tree_output": "raw_value",
        "objective": "squared_error",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
    }
    rows = np.array(ours["rows"], dtype=np.float64)
    explainer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    theirs = np.asarray(explainer.shap_values(rows, check_additivity=False)).reshape(rows.shape)
    off = float(np.abs(theirs - np.array(ours["shap"])).max())
    base_off = abs(float(np.ravel(explainer.expected_value)[0]) - ours["base"])
    largest = float(np.abs(theirs).max())
    print(f"{theirs.size} values up to {largest:.3f}: largest difference {off:.2e}; base {base_off:.2e}")
    if not (off <= MOST and base_off <= MOST and largest > 0.1):
        sys.exit(f"expected differences of at most {MOST}")


if __name__ == "__main__":
    main()
