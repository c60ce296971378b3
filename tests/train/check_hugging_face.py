"""Hugging Face weights through Ridgeline and back.

check_hugging_face.py RIDGELINE DUMP_LOGITS FAMILY      (a family of tests/spec/families.h)

A model that transformers saved in several files is imported; Ridgeline's logits equal those of transformers to 1e-4.
What is exported again loads in transformers, has the same tensors to the bit, and so gives the same logits.
"""

import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

import transformers_families

BOUND = 1e-4


def main():
    ridgeline, dump_logits, family = sys.argv[1:4]
    torch.manual_seed(5)
    grouped = family not in ("llama", "qwen3_fused")
    shape = {"layers": 3, "hidden": 48, "heads": 4, "vocabulary": 101, "sequence": 24, "ffn": 80, "window": 5,
             "key_heads": 2 if grouped else 4, "head_size": 16 if family == "qwen3" else 12,
             "tied": family in ("gpt", "qwen2", "qwen3")}
    model = transformers_families.make(family, shape).float().eval()
    with torch.no_grad():  # norms and biases are not left at one and zero, where errors could hide
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    tokens = (torch.arange(shape["sequence"]) * 7 + 3) % shape["vocabulary"]
    with torch.no_grad():
        expected = model(tokens.unsqueeze(0)).logits[0]
    with tempfile.TemporaryDirectory() as folder:
        theirs, run, back, logits = (os.path.join(folder, name) for name in ("theirs", "run", "back", "logits"))
        model.save_pretrained(theirs, max_shard_size="40KB")
        assert os.path.exists(os.path.join(theirs, "model.safetensors.index.json"))
        subprocess.run([ridgeline, "checkpoint", "import", theirs, "--out", run], check=True)
        checkpoint = os.path.join(run, "checkpoints", "step-00000000")
        subprocess.run([dump_logits, checkpoint, logits], check=True)
        error = (load_file(logits)["logits"] - expected).abs().max().item() / expected.abs().max().item()
        print(f"logits differ by {error:.1e} of the largest")
        subprocess.run([ridgeline, "checkpoint", "export", run, "--out", back, "--file-gib", "5e-5"], check=True)
        again, loading = AutoModelForCausalLM.from_pretrained(back, dtype=torch.float32, output_loading_info=True)
        assert not any(loading[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), loading
        assert type(again) is type(model), type(again)
        before, after = model.state_dict(), again.eval().state_dict()
        assert before.keys() == after.keys(), before.keys() ^ after.keys()
        different = [name for name in before if not torch.equal(before[name], after[name])]
        assert not different, f"changed on the way: {different}"
        with torch.no_grad():
            repeated = again(tokens.unsqueeze(0)).logits[0]
        drift = (repeated - expected).abs().max().item() / expected.abs().max().item()
        print(f"logits of the exported model differ by {drift:.1e}")
    return 0 if error < BOUND and drift < BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
