#!/usr/bin/env python3
"""Speed of `ridgeline train` beside PyTorch eager: the same model, data shape, precision and threads, in turn in one run.

    bench/train_speed.py [--ridgeline build/bin/ridgeline] [--precision fp32 bf16] [--rounds 3] [--steps 6]
                         [--preset gpt2-124m | --layers 6 --hidden 512 --heads 8] [--sequence 512] [--micro-batch 2]

The peer is what a PyTorch user would write for speed without compilation: nn.Linear and nn.LayerNorm modules,
scaled_dot_product_attention, F.cross_entropy, fused AdamW, gradient clipping, and for bf16 torch.autocast over fp32
parameters. Rounds alternate between the two, since a machine's speed drifts; the ratio is that of the medians of all steps
but each round's first two. Prints tokens/s of both, and their ratio.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {"gpt2-124m": (12, 768, 12), "gpt2-350m": (24, 1024, 16)}


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.output = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, sequence, hidden = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, sequence, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attention = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(attention.transpose(1, 2).reshape(batch, sequence, hidden))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, heads, vocabulary, sequence):
        super().__init__()
        self.token, self.position = nn.Embedding(vocabulary, hidden), nn.Embedding(sequence, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(hidden)
        self.apply(lambda m: nn.init.normal_(m.weight, std=0.02) if isinstance(m, (nn.Linear, nn.Embedding)) else None)

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.token.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Eager:
    """The peer's training step; keeps its model between rounds."""

    def __init__(self, arguments, precision):
        torch.manual_seed(1)
        self.model = Gpt(arguments.layers, arguments.hidden, arguments.heads, arguments.vocabulary, arguments.sequence)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
        self.arguments, self.precision = arguments, precision

    def step(self):
        a = self.arguments
        self.optimizer.zero_grad()
        for _ in range(a.micro_batches):
            tokens = torch.randint(a.vocabulary, (a.micro_batch, a.sequence + 1))
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=self.precision == "bf16"):
                loss = self.model(tokens[:, :-1], tokens[:, 1:]) / a.micro_batches
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def round(self, steps):
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            self.step()
            seconds.append(time.perf_counter() - start)
        return seconds[2:]


def write_tokens(prefix, vocabulary, count):
    """A Megatron token file of one document of random tokens."""
    generator = random.Random(1)
    with open(prefix + ".bin", "wb") as out:
        out.write(struct.pack(f"<{count}i", *(generator.randrange(vocabulary) for _ in range(count))))
    with open(prefix + ".idx", "wb") as out:
        out.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 4, 1, 2))
        out.write(struct.pack("<i", count) + struct.pack("<q", 0) + struct.pack("<qq", 0, 1))


def ridgeline_round(arguments, precision, folder):
    run = os.path.join(folder, "run")
    shutil.rmtree(run, ignore_errors=True)
    settings = {
        "model.layers": arguments.layers, "model.hidden": arguments.hidden, "model.heads": arguments.heads,
        "model.vocabulary": arguments.vocabulary, "model.sequence": arguments.sequence,
        "strategy.micro_batch": arguments.micro_batch,
        "strategy.global_batch": arguments.micro_batch * arguments.micro_batches,
        "precision.compute": precision, "data.path": os.path.join(folder, "tokens"), "training.run": run,
        "training.steps": arguments.steps, "training.threads": arguments.threads, "checkpoint.at_end": "false",
    }
    config = os.path.join(folder, "empty.toml")
    open(config, "w").close()
    command = [arguments.ridgeline, "train", config]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"bench: {' '.join(command)} failed:\n{result.stderr}")
    with open(os.path.join(run, "metrics.jsonl")) as lines:
        return [json.loads(line)["step_seconds"] for line in lines][2:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridgeline", default=os.path.join(os.path.dirname(__file__), "../build/bin/ridgeline"))
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=6, help="of a round, the first two not counted")
    parser.add_argument("--preset", choices=PRESETS)
    parser.add_argument("--layers", type=int, default=6)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--vocabulary", type=int, default=50257)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--micro-batch", type=int, default=2)
    parser.add_argument("--micro-batches", type=int, default=1)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    if arguments.preset:
        arguments.layers, arguments.hidden, arguments.heads = PRESETS[arguments.preset]
    torch.set_num_threads(arguments.threads)
    tokens = arguments.micro_batch * arguments.micro_batches * arguments.sequence
    print(f"{arguments.layers} layers, hidden {arguments.hidden}, vocabulary {arguments.vocabulary}, {tokens} tokens a step, "
          f"{arguments.threads} threads, torch {torch.__version__}")
    with tempfile.TemporaryDirectory() as folder:
        write_tokens(os.path.join(folder, "tokens"), arguments.vocabulary, 40 * tokens + 1)
        for precision in arguments.precision:
            eager, ours, theirs = Eager(arguments, precision), [], []
            for _ in range(arguments.rounds):
                theirs += eager.round(arguments.steps)
                ours += ridgeline_round(arguments, precision, folder)
            mine, peer = tokens / statistics.median(ours), tokens / statistics.median(theirs)
            print(f"{precision}: ridgeline {mine:.0f} tokens/s, PyTorch eager {peer:.0f} tokens/s, ratio {mine / peer:.2f}",
                  flush=True)


if __name__ == "__main__":
    main()
