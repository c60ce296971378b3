"""Repeats a dumped training with Hugging Face transformers and torch's AdamW, and compares.

check_transformers.py DUMP_TRAINING FAMILY      (a family of tests/spec/families.h)

Loss and every gradient of the first step to 1e-5, losses and gradient norms of all steps to 1e-5, relative, in fp32.
"""

import os
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from safetensors.torch import load_file
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

import transformers_families

BOUND = 1e-5
SHAPE = ["layers", "hidden", "heads", "vocabulary", "sequence", "key_heads", "head_size", "ffn", "window", "tied"]


GPT2_PARTS = [("embedding.token", "transformer.wte"), ("embedding.position", "transformer.wpe"),
              ("final_norm", "transformer.ln_f"), ("head", "lm_head")]
GPT2_LAYER = [("attention_norm", "ln_1"), ("mlp_norm", "ln_2"), ("attention.qkv", "attn.c_attn"),
              ("attention.output", "attn.c_proj"), ("mlp.up", "mlp.c_fc"), ("mlp.down", "mlp.c_proj")]
LLAMA_PARTS = [("embedding.token", "model.embed_tokens"), ("final_norm", "model.norm"), ("head", "lm_head")]
LLAMA_LAYER = [("attention_norm", "input_layernorm"), ("mlp_norm", "post_attention_layernorm"),
               ("attention.query", "self_attn.q_proj"), ("attention.key", "self_attn.k_proj"),
               ("attention.value", "self_attn.v_proj"), ("attention.output", "self_attn.o_proj"),
               ("attention.query_norm", "self_attn.q_norm"), ("attention.key_norm", "self_attn.k_norm"),
               ("mlp.gate", "mlp.gate_proj"), ("mlp.up", "mlp.up_proj"), ("mlp.down", "mlp.down_proj"),
               ("mlp.router", "mlp.gate")]


def their_name(family, ours):
    stem, kind = ours.rsplit(".", 1)
    gpt = family.startswith("gpt")
    parts, of_layer = (GPT2_PARTS, GPT2_LAYER) if gpt else (LLAMA_PARTS, LLAMA_LAYER)
    if not stem.startswith("layers."):
        return f"{dict(parts)[stem]}.{kind}"
    _, layer, part = stem.split(".", 2)
    return f"{'transformer.h' if gpt else 'model.layers'}.{layer}.{dict(of_layer)[part]}.{kind}"


def as_theirs(family, tensors):
    """Our tensors under their names and in their shapes. Query, key and value may be one of ours, [3, h, h]."""
    result = {}
    for ours, tensor in tensors.items():
        if ".experts." in ours:  # theirs have gate and up in one, and no ".weight"
            module = f"model.layers.{ours.split('.')[1]}.mlp.experts."
            if ours.endswith("gate.weight"):
                up = tensors[ours.replace("gate.weight", "up.weight")]
                result[module + "gate_up_proj"] = torch.cat([tensor, up], 1)
            elif ours.endswith("down.weight"):
                result[module + "down_proj"] = tensor
            continue
        if not family.startswith("gpt") and ".qkv." in ours:
            for part, values in zip(("query", "key", "value"), tensor):
                result[their_name(family, ours.replace(".qkv.", f".{part}."))] = values
            continue
        name = their_name(family, ours)
        conv1d = family.startswith("gpt") and ".h." in name and name.endswith("weight") and ".ln_" not in name
        if conv1d:  # which is [in, out]
            result[name] = tensor.reshape(-1, tensor.shape[-1]).t()
        else:
            result[name] = tensor.reshape(-1) if name.endswith("bias") else tensor
    return result


def visible(name, gradient):
    """Without the key's bias where softmax does not see it: its gradient is zero but for rounding."""
    if name.endswith("attn.c_attn.bias"):
        third = gradient.shape[0] // 3
        return torch.cat([gradient[:third], gradient[2 * third:]])
    return gradient


def auxiliary_loss(logits, data, samples):
    """Of all layers' router logits, by transformers' own function, which is given one layer and one sample at a time."""
    experts, picks, even_use, small_logits = data["experts"].tolist()
    total = 0
    for of_layer in logits:
        for of_sample in of_layer.chunk(samples):
            total = total + even_use * load_balancing_loss_func((of_sample,), int(experts), int(picks))
        total = total + small_logits * samples * torch.logsumexp(of_layer, 1).square().mean()
    return total / (len(logits) * samples)


def compare(what, ours, theirs, worst):
    error = (ours - theirs).norm().item() / max(theirs.norm().item(), 1e-30)
    worst[what] = error
    return error < BOUND


def main():
    dump, family = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "dump.safetensors")
        subprocess.run([dump, family, path], check=True)
        data = load_file(path)
    shape = dict(zip(SHAPE, data["shape"].tolist()))
    model = transformers_families.make(family, shape).float().train()
    parameters = dict(model.named_parameters())
    of_kind = lambda kind: as_theirs(family, {name.removeprefix(kind): tensor for name, tensor in data.items()
                                              if name.startswith(kind)})
    weights, gradients = of_kind("weight."), of_kind("gradient.")
    assert set(parameters) == set(weights), f"parameters differ: {set(parameters) ^ set(weights)}"
    with torch.no_grad():
        for name, values in weights.items():
            parameters[name].copy_(values)

    beta1, beta2, epsilon, decay, clip = data["optimizer"].tolist()
    # Decay is on matrices and embeddings, not on norms and biases.
    decayed = [p for p in parameters.values() if p.dim() > 1]
    plain = [p for p in parameters.values() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": decay}, {"params": plain, "weight_decay": 0.0}],
                                  betas=(beta1, beta2), eps=epsilon)
    good, worst = True, {}
    for step, (loss_ours, norm_ours, rate) in enumerate(data["results"].tolist()):
        routers = {"output_router_logits": True} if "experts" in data else {}
        output = model(data["tokens"][step], **routers)
        logits = output.logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, shape["vocabulary"]),
                                                 data["targets"][step].reshape(-1))
        optimizer.zero_grad()
        auxiliary = auxiliary_loss(output.router_logits, data, len(data["tokens"][step])) if routers else 0.0
        (loss + auxiliary).backward()
        if routers and auxiliary > 0:
            good &= compare(f"auxiliary loss of step {step}", data["auxiliary"][step], auxiliary.detach().double(), worst)
        if step == 0:
            for name, mine in gradients.items():
                good &= compare("gradient of " + name, visible(name, mine), visible(name, parameters[name].grad), worst)
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
