"""Repeats a dumped training with Hugging Face transformers' GPT-2 and torch's AdamW, and compares.

check_transformers.py DUMP_TRAINING tied|untied

Loss and every gradient of the first step to 1e-5, losses and gradient norms of all steps to 1e-5, relative, in fp32.
"""

import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import load_file
from transformers import GPT2Config, GPT2LMHeadModel

BOUND = 1e-5


def names(layers, tied):
    """Our names and those of transformers' GPT-2, and whether the matrix is transposed there (Conv1D is [in, out])."""
    pairs = [
        ("embedding.token.weight", "transformer.wte.weight", False),
        ("embedding.position.weight", "transformer.wpe.weight", False),
        ("final_norm.weight", "transformer.ln_f.weight", False),
        ("final_norm.bias", "transformer.ln_f.bias", False),
    ]
    parts = [
        ("attention_norm", "ln_1", False),
        ("mlp_norm", "ln_2", False),
        ("attention.qkv", "attn.c_attn", True),
        ("attention.output", "attn.c_proj", True),
        ("mlp.up", "mlp.c_fc", True),
        ("mlp.down", "mlp.c_proj", True),
    ]
    for layer in range(layers):
        for ours, theirs, transposed in parts:
            ours, theirs = f"layers.{layer}.{ours}.", f"transformer.h.{layer}.{theirs}."
            pairs += [(ours + "weight", theirs + "weight", transposed), (ours + "bias", theirs + "bias", False)]
    if not tied:
        pairs.append(("head.weight", "lm_head.weight", False))
    return pairs


def as_theirs(tensor, transposed, shape):
    """[3, h, h] of query, key and value is their [h, 3 h]."""
    if transposed:
        return tensor.reshape(-1, tensor.shape[-1]).t()
    return tensor.reshape(shape)


def compare(what, ours, theirs, worst):
    error = (ours - theirs).norm().item() / max(theirs.norm().item(), 1e-30)
    worst[what] = error
    return error < BOUND


def main():
    dump, tied = sys.argv[1], sys.argv[2] == "tied"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dump.safetensors")
        subprocess.run([dump, sys.argv[2], path], check=True)
        data = load_file(path)
    layers, hidden, heads, vocabulary, sequence = data["shape"].tolist()
    config = GPT2Config(vocab_size=vocabulary, n_positions=sequence, n_embd=hidden, n_layer=layers, n_head=heads,
                        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, tie_word_embeddings=tied)
    model = GPT2LMHeadModel(config).float().train()
    parameters = dict(model.named_parameters())
    pairs = names(layers, tied)
    missing = set(parameters) - {theirs for _, theirs, _ in pairs}
    assert not missing, f"parameters of transformers that we do not have: {missing}"
    with torch.no_grad():
        for ours, theirs, transposed in pairs:
            parameters[theirs].copy_(as_theirs(data["weight." + ours], transposed, parameters[theirs].shape))

    beta1, beta2, epsilon, decay, clip = data["optimizer"].tolist()
    # Decay is on matrices and embeddings, not on norms and biases.
    decayed = [p for p in parameters.values() if p.dim() > 1]
    plain = [p for p in parameters.values() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}],
                                  betas=(beta1, beta2), eps=epsilon)
    good, worst = True, {}
    for step, (loss_ours, norm_ours, rate) in enumerate(data["results"].tolist()):
        logits = model(data["tokens"][step]).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, vocabulary), data["targets"][step].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            for ours, theirs, transposed in pairs:
                gradient = parameters[theirs].grad
                mine = as_theirs(data["gradient." + ours], transposed, gradient.shape)
                if ours.endswith("qkv.bias"):  # the key's part is zero but for rounding: softmax does not see it
                    mine, gradient = (torch.cat([g[:hidden], g[2 * hidden:]]) for g in (mine, gradient))
                good &= compare("gradient of " + ours, mine, gradient, worst)
        norm = torch.nn.utils.clip_grad_norm_(parameters.values(), clip)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        good &= compare(f"loss of step {step}", torch.tensor(loss_ours), loss.detach().double(), worst)
        good &= compare(f"gradient norm of step {step}", torch.tensor(norm_ours), norm.double(), worst)
    for what, error in sorted(worst.items(), key=lambda item: -item[1])[:5]:
        print(f"{error:.2e}  {what}")
    print("equal to transformers" if good else f"DIFFERS from transformers by more than {BOUND}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
