"""The families of tests/spec/families.h as models of Hugging Face transformers."""

from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, MistralConfig,
                          MistralForCausalLM, MixtralConfig, MixtralForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM)


def gpt2(shape):
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=shape["vocabulary"], n_positions=shape["sequence"], n_embd=shape["hidden"], n_layer=shape["layers"],
        n_head=shape["heads"], n_inner=shape["ffn"], resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        tie_word_embeddings=bool(shape["tied"])))


def llama_like(family, shape):
    rope = {"rope_type": "default", "rope_theta": 100.0}
    if family == "llama3":
        rope |= {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                 "original_max_position_embeddings": 8}
    if family == "biased":
        rope |= {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}
    config, model, more = {
        "llama": (LlamaConfig, LlamaForCausalLM, {}),
        "llama3": (LlamaConfig, LlamaForCausalLM, {}),
        "biased": (LlamaConfig, LlamaForCausalLM, {"attention_bias": True, "mlp_bias": True}),
        "mistral": (MistralConfig, MistralForCausalLM, {"sliding_window": shape["window"]}),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM, {}),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM, {}),
        "qwen3_fused": (Qwen3Config, Qwen3ForCausalLM, {}),
        "mixtral": (MixtralConfig, MixtralForCausalLM, {"num_local_experts": 4, "num_experts_per_tok": 2}),
        "qwen3_moe": (Qwen3MoeConfig, Qwen3MoeForCausalLM, {
            "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": shape["hidden"],
            "norm_topk_prob": False, "router_aux_loss_coef": 0.5, "decoder_sparse_step": 1}),
    }[family]
    if family != "qwen2":  # which has no such key
        more["head_dim"] = shape["head_size"]
    return model(config(
        vocab_size=shape["vocabulary"], max_position_embeddings=shape["sequence"], hidden_size=shape["hidden"],
        num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"], num_key_value_heads=shape["key_heads"],
        intermediate_size=shape["ffn"], rms_norm_eps=1e-5, tie_word_embeddings=bool(shape["tied"]),
        rope_parameters=rope, attn_implementation="eager", **more))


def make(family, shape):
    """shape: layers, hidden, heads, vocabulary, sequence, key_heads, head_size, ffn, window, tied."""
    return gpt2(shape) if family.startswith("gpt") else llama_like(family, shape)
