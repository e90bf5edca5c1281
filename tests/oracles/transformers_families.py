# SPDX-License-Identifier: Apache-2.0
"""Writes what the model classes of the installed Hugging Face transformers say, for small models of each family, built on PyTorch's meta
device: the config.json that the release saves, the parameters (unique ones, and the e_score_correction_bias buffers that checkpoints hold),
and the parameters of the same file with one key left out, null, changed or added, where they are others.

    pip install torch transformers==4.57.6 && python3 tests/oracles/transformers_families.py tests/oracles/transformers_4.json
    pip install torch transformers==5.24.0 && python3 tests/oracles/transformers_families.py tests/oracles/transformers_5.json

With names of classes behind the file ("Qwen3Next Bamba") it writes those alone: to look at while a family is added.
"""
import copy
import json
import sys

import torch
import transformers

SIZES = dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, num_attention_heads=12, num_key_value_heads=4, intermediate_size=416,
             max_position_embeddings=512)
GPT_SIZES = dict(vocab_size=1000, n_embd=192, n_layer=3, n_head=12, n_positions=512)
NEOX_SIZES = {key: value for key, value in SIZES.items() if key != "num_key_value_heads"}
FALCON_SIZES = dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, num_attention_heads=12)
OPT_SIZES = dict(FALCON_SIZES, ffn_dim=416, max_position_embeddings=512)
MLA = dict(kv_lora_rank=64, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24)


def plain(**changes):
    return dict(SIZES, **changes)


def gpt(**changes):
    return dict(GPT_SIZES, **changes)


def moe(**changes):
    return plain(num_experts_per_tok=2, moe_intermediate_size=96, **changes)


def mixtral(**changes):
    return plain(num_local_experts=6, num_experts_per_tok=2, **changes)


def llama4(**changes):
    sizes = dict(num_local_experts=6, intermediate_size=96, intermediate_size_mlp=416, num_experts_per_tok=1, head_dim=16)
    return plain(**dict(sizes, **changes))


def ernie_moe(**changes):
    return plain(moe_num_experts=6, moe_k=2, moe_intermediate_size=96, num_hidden_layers=6, **changes)


LINEAR = dict(linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=16, linear_value_head_dim=24, linear_conv_kernel_dim=3)
MAMBA = dict(mamba_n_heads=16, mamba_d_head=24, mamba_n_groups=2, mamba_d_state=32, mamba_d_conv=3, time_step_limit=[0.0, 10.0], pad_token_id=0)
INDEXER = dict(index_n_heads=4, index_head_dim=24, index_topk=64)


def hybrid(**changes):
    return plain(num_hidden_layers=6, head_dim=24, **changes)


def longcat(**changes):
    sizes = dict(vocab_size=1000, hidden_size=192, num_layers=2, num_hidden_layers=4, num_attention_heads=12, q_lora_rank=48, ffn_hidden_size=416,
                 expert_ffn_hidden_size=96, moe_topk=2, n_routed_experts=6, zero_expert_num=3, max_position_embeddings=512, **MLA)
    return dict(sizes, **changes)


def deepseek_v4(**changes):
    sizes = dict(vocab_size=1000, hidden_size=192, num_hidden_layers=4, num_attention_heads=12, head_dim=16, q_lora_rank=48, num_key_value_heads=1,
                 moe_intermediate_size=96, n_routed_experts=6, num_experts_per_tok=2, o_groups=4, o_lora_rank=24, hc_mult=3, sliding_window=32,
                 max_position_embeddings=512, **INDEXER)
    return dict(sizes, **changes)


def nemotron(**changes):
    return plain(head_dim=24, mamba_num_heads=16, mamba_head_dim=24, n_groups=2, ssm_state_size=32, conv_kernel=3, time_step_limit=[0.0, 10.0],
                 **changes)


def without(sizes, *keys):
    return {key: value for key, value in sizes.items() if key not in keys}


CASES = [
    ("Llama", plain()),
    ("Llama", plain(attention_bias=True, mlp_bias=True, tie_word_embeddings=True, head_dim=24)),
    ("Mistral", plain()),
    ("Mistral", plain(head_dim=32)),
    ("Mixtral", mixtral()),
    ("Qwen2", plain()),
    ("Qwen2", plain(tie_word_embeddings=True)),
    ("Qwen2Moe", moe(num_experts=6, shared_expert_intermediate_size=224)),
    ("Qwen2Moe", moe(num_hidden_layers=6, num_experts=6, shared_expert_intermediate_size=224, decoder_sparse_step=2, mlp_only_layers=[1],
        qkv_bias=False)),
    ("Qwen3", plain()),
    ("Qwen3", plain(head_dim=24, attention_bias=True)),
    ("Qwen3Moe", moe(num_experts=6, head_dim=24)),
    ("Qwen3Moe", moe(num_hidden_layers=6, num_experts=6, decoder_sparse_step=3)),
    ("Gemma", plain()),
    ("Gemma", plain(head_dim=16, attention_bias=True)),
    ("Gemma2", plain()),
    ("Gemma3Text", plain()),
    ("GPT2", gpt()),
    ("GPT2", gpt(n_inner=500)),
    ("GPTJ", gpt(rotary_dim=8)),
    ("GPTNeoX", dict(NEOX_SIZES)),
    ("GPTNeoX", dict(NEOX_SIZES, attention_bias=False)),
    ("GPTBigCode", gpt()),
    ("GPTBigCode", gpt(multi_query=False)),
    ("Starcoder2", plain()),
    ("Starcoder2", plain(use_bias=False, tie_word_embeddings=False)),
    ("Phi", plain()),
    ("Phi3", plain(pad_token_id=0)),
    ("Phimoe", mixtral(attention_bias=True, lm_head_bias=True)),
    ("Phimoe", mixtral()),
    ("DeepseekV2", moe(q_lora_rank=None, n_routed_experts=6, n_shared_experts=2, first_k_dense_replace=1, **MLA)),
    ("DeepseekV3", moe(q_lora_rank=48, n_routed_experts=8, n_shared_experts=2, first_k_dense_replace=2, n_group=2, topk_group=1,
        num_nextn_predict_layers=1, **MLA)),
    ("GptOss", mixtral()),
    ("Glm", plain(pad_token_id=0)),
    ("Glm", plain(pad_token_id=0, attention_bias=False, head_dim=16)),
    ("Glm4", plain(pad_token_id=0)),
    ("Glm4Moe", moe(n_routed_experts=6, n_shared_experts=2, first_k_dense_replace=1, use_qk_norm=True, attention_bias=True, head_dim=24)),
    ("Glm4Moe", moe(n_routed_experts=6, n_shared_experts=1, first_k_dense_replace=2, head_dim=16)),
    ("Llama4Text", llama4(num_hidden_layers=6, interleave_moe_layer_step=2)),
    ("Llama4Text", llama4(moe_layers=[1, 2])),
    ("Olmo", plain()),
    ("Olmo2", plain()),
    ("Olmo3", plain()),
    ("Olmoe", plain(num_experts=6, num_experts_per_tok=2)),
    ("Cohere", plain()),
    ("Cohere", plain(use_qk_norm=True, attention_bias=True)),
    ("Cohere2", plain()),
    ("StableLm", plain()),
    ("StableLm", plain(use_qkv_bias=True, qk_layernorm=True, use_parallel_residual=True)),
    ("Nemotron", plain()),
    ("Nemotron", plain(attention_bias=True, mlp_bias=True, head_dim=24)),
    ("Granite", plain()),
    ("Granite", plain(attention_bias=True, mlp_bias=True, tie_word_embeddings=True)),
    ("GraniteMoe", mixtral()),
    ("GraniteMoeShared", mixtral(shared_intermediate_size=160)),
    ("SeedOss", plain(head_dim=24)),
    ("SeedOss", plain(attention_bias=False, attention_out_bias=True, mlp_bias=True)),
    ("SmolLM3", plain(pad_token_id=0)),
    ("Arcee", plain()),
    ("Ernie4_5", plain()),
    ("Ernie4_5", plain(use_bias=True, head_dim=16)),
    ("Ernie4_5_Moe", ernie_moe(moe_num_shared_experts=2)),
    ("Ernie4_5_Moe", ernie_moe(moe_num_shared_experts=0, moe_layer_interval=2, moe_layer_start_index=2, moe_layer_end_index=4,
        use_bias=False, tie_word_embeddings=False)),
    ("Dots1", moe(n_routed_experts=6, n_shared_experts=1, first_k_dense_replace=1, head_dim=16)),
    ("HunYuanDenseV1", plain(head_dim=16)),
    ("HunYuanMoEV1", plain(num_experts=6, moe_topk=2, head_dim=16)),
    ("Exaone4", plain(head_dim=16)),
    ("Falcon", dict(FALCON_SIZES)),
    ("Falcon", dict(FALCON_SIZES, num_kv_heads=4, new_decoder_architecture=True)),
    ("Falcon", dict(FALCON_SIZES, multi_query=False, parallel_attn=False, bias=True, alibi=True, ffn_hidden_size=500)),
    ("Falcon", dict(FALCON_SIZES, num_kv_heads=4, new_decoder_architecture=True, num_ln_in_parallel_attn=1, tie_word_embeddings=False)),
    ("Bloom", dict(vocab_size=1000, hidden_size=192, n_layer=3, n_head=12)),
    ("OPT", dict(OPT_SIZES)),
    ("OPT", dict(OPT_SIZES, enable_bias=False, layer_norm_elementwise_affine=False)),
    ("MiniMaxM2", mixtral(head_dim=24)),
    ("Mpt", dict(vocab_size=1000, d_model=192, n_layers=3, n_heads=12, max_seq_len=512)),
    ("Qwen3Next", hybrid(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=96, shared_expert_intermediate_size=224, **LINEAR)),
    ("Qwen3Next", hybrid(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=96, shared_expert_intermediate_size=224, attention_bias=True,
        decoder_sparse_step=2, mlp_only_layers=[1], layer_types=["full_attention", "linear_attention"] * 3, **LINEAR)),
    ("Qwen3_5Text", hybrid(**LINEAR)),
    ("Qwen3_5MoeText", without(hybrid(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=96, shared_expert_intermediate_size=224,
        attention_bias=True, **LINEAR), "intermediate_size")),
    ("DeepseekV32", moe(q_lora_rank=48, n_routed_experts=8, n_shared_experts=2, first_k_dense_replace=2, n_group=2, topk_group=1, **MLA, **INDEXER)),
    ("GlmMoeDsa", moe(q_lora_rank=48, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1, **MLA, **INDEXER)),
    ("GlmMoeDsa", moe(num_hidden_layers=6, q_lora_rank=48, n_routed_experts=8, n_shared_experts=1, first_k_dense_replace=1,
        indexer_types=["full", "full", "shared", "shared", "full", "shared"], **MLA, **INDEXER)),
    ("Mamba2", dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, num_heads=16, head_dim=24, n_groups=2, state_size=32, conv_kernel=3,
        time_step_limit=[0.0, 10.0])),
    ("Mamba2", dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, num_heads=12, head_dim=32, n_groups=4, state_size=48, conv_kernel=4,
        time_step_limit=[0.0, 10.0], use_conv_bias=False, tie_word_embeddings=True)),
    ("NemotronH", without(nemotron(layers_block_type=["mamba", "mlp", "attention", "mamba", "mlp"]), "num_hidden_layers")),
    ("NemotronH", without(nemotron(layers_block_type=["mamba", "moe", "attention", "moe"], n_routed_experts=6, num_experts_per_tok=2,
        moe_intermediate_size=96, moe_shared_expert_intermediate_size=224, use_conv_bias=False), "num_hidden_layers")),
    ("NemotronH", without(nemotron(layers_block_type=["mamba", "moe", "attention", "moe"], n_routed_experts=6, num_experts_per_tok=2,
        moe_intermediate_size=96, moe_shared_expert_intermediate_size=224, moe_latent_size=64), "num_hidden_layers")),
    ("KimiLinear", plain(num_hidden_layers=6, q_lora_rank=None, num_experts=8, num_shared_experts=2, num_experts_per_token=2, moe_intermediate_size=96,
        linear_head_dim=16, linear_num_heads=12, linear_conv_kernel_dim=3, pad_token_id=0, **MLA)),
    ("MiMoV2Flash", hybrid(num_key_value_heads=2, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=96)),
    ("Gemma4Text", hybrid(hidden_size_per_layer_input=0, global_head_dim=40)),
    ("Gemma4Text", hybrid(hidden_size_per_layer_input=0, global_head_dim=40, num_global_key_value_heads=2, attention_k_eq_v=True,
        enable_moe_block=True, num_experts=6, top_k_experts=2, moe_intermediate_size=96)),
    ("GraniteMoeHybrid", plain(num_local_experts=6, num_experts_per_tok=2, shared_intermediate_size=224,
        layer_types=["mamba", "attention", "mamba"], **MAMBA)),
    ("GraniteMoeHybrid", plain(num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=224, mamba_conv_bias=False,
        layer_types=["mamba", "mamba", "attention"], **MAMBA)),
    ("Bamba", plain(attn_layer_indices=[1], **MAMBA)),
    ("MiniMax", mixtral(head_dim=24)),
    ("Lfm2", plain(layer_types=["conv", "full_attention", "conv"], conv_L_cache=3, block_multiple_of=64, block_ffn_dim_multiplier=1.0)),
    ("OlmoHybrid", plain(num_hidden_layers=4, pad_token_id=0, **LINEAR)),
    ("Afmoe", moe(num_experts=6, head_dim=24, num_dense_layers=1, num_shared_experts=2)),
    ("Apertus", plain(pad_token_id=0)),
    ("ExaoneMoe", moe(num_experts=6, num_shared_experts=1, first_k_dense_replace=1, head_dim=24)),
    ("Glm4MoeLite", moe(q_lora_rank=48, n_routed_experts=6, n_shared_experts=1, **MLA)),
    ("Helium", plain(head_dim=16, pad_token_id=0)),
    ("HYV3", moe(num_experts=6, num_shared_experts=1, head_dim=24, pad_token_id=0)),
    ("MiniCPM3", plain(q_lora_rank=48, **MLA)),
    ("Ministral3", plain(head_dim=24, pad_token_id=0)),
    ("SolarOpen", without(moe(n_routed_experts=6, n_shared_experts=1, head_dim=24), "intermediate_size")),
    ("VaultGemma", plain(head_dim=24)),
    ("FalconH1", plain(**dict(MAMBA, mamba_n_heads=12, mamba_d_ssm=288))),
    ("FalconH1", plain(head_dim=24, mamba_d_ssm=None, mamba_rms_norm=True, mamba_conv_bias=False, tie_word_embeddings=True, **MAMBA)),
    ("LongcatFlash", longcat()),
    ("LongcatFlash", longcat(zero_expert_num=0, tie_word_embeddings=True)),
    ("Mamba", dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, state_size=8, conv_kernel=3, time_step_rank=10)),
    ("FalconMamba", dict(vocab_size=1000, hidden_size=192, num_hidden_layers=3, state_size=8, conv_kernel=3, use_conv_bias=False,
        tie_word_embeddings=False)),
    ("Jamba", plain(num_hidden_layers=6, attn_layer_period=3, attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, num_experts=6,
        num_experts_per_tok=2, mamba_d_state=8, mamba_d_conv=3)),
    ("Jamba", plain(num_hidden_layers=6, attn_layer_period=3, attn_layer_offset=0, expert_layer_period=3, expert_layer_offset=2, num_experts=6,
        num_experts_per_tok=1, mamba_d_state=8, mamba_d_conv=3, mamba_dt_rank=10, mamba_conv_bias=False, tie_word_embeddings=True)),
    ("Jamba", plain(num_experts=1, num_experts_per_tok=1, attn_layer_period=3, attn_layer_offset=1, mamba_d_state=8, mamba_d_conv=3)),
    ("DeepseekV4", deepseek_v4()),
    ("DeepseekV4", deepseek_v4(compress_ratios=[0, 4, 128, 4, 0], num_hash_layers=1, hc_mult=2, tie_word_embeddings=True)),
    ("CodeGen", gpt(rotary_dim=8)),
    ("FlexOlmo", plain(num_experts=6, num_experts_per_tok=2, pad_token_id=0)),
    ("Cwm", plain(head_dim=24)),
    ("Mellum", moe(num_local_experts=6, head_dim=24, mlp_layer_types=["dense", "sparse", "sparse"])),
    ("Jais2", plain(head_dim=24)),
    ("Jais2", plain(head_dim=16, attention_bias=False, mlp_bias=False, tie_word_embeddings=True)),
    ("AXK1", moe(q_lora_rank=48, n_routed_experts=6, n_shared_experts=1, mlp_layer_types=["dense", "sparse", "sparse"], **MLA)),
    ("Youtu", plain(q_lora_rank=48, **MLA)),
    ("HyperCLOVAX", plain(head_dim=24)),
    ("HyperCLOVAX", plain(use_post_norm=False, mlp_bias=True, tie_word_embeddings=True)),
    ("GraniteSWA", plain()),
    ("GraniteMoeSWA", mixtral(shared_intermediate_size=160)),
    ("GraniteMoeSWA", mixtral(shared_intermediate_size=0)),
]

# Classes that are not called NAMEConfig and NAMEForCausalLM.
CONFIGS = {"Gemma3Text": "Gemma3TextConfig", "Llama4Text": "Llama4TextConfig"}
MODELS = {"GPT2": "GPT2LMHeadModel", "Gemma3Text": "Gemma3ForCausalLM", "Llama4Text": "Llama4ForCausalLM", "Gemma4Text": "Gemma4ForCausalLM",
          "Qwen3_5Text": "Qwen3_5ForCausalLM", "Qwen3_5MoeText": "Qwen3_5MoeForCausalLM"}


# Keys that are added where a class's own file has none, to see whether the class reads them all the same.
ADDED = dict(attention_bias=True, mlp_bias=True, use_bias=True, qkv_bias=True, lm_head_bias=True, use_qk_norm=True, qk_layernorm=True,
             tie_word_embeddings=True, head_dim=40, kv_channels=40, num_key_value_heads=2, num_kv_heads=2, n_inner=300, intermediate_size=300,
             moe_intermediate_size=80, shared_intermediate_size=80, shared_expert_intermediate_size=80, n_shared_experts=1, num_experts=4,
             num_local_experts=4, n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, first_k_dense_replace=1, moe_layer_freq=2,
             decoder_sparse_step=2, mlp_only_layers=[0], moe_layers=[0], q_lora_rank=40, kv_lora_rank=40, num_nextn_predict_layers=1,
             num_mtp_layers=1, hidden_size=96, n_embd=96, num_hidden_layers=2, n_layer=2, num_attention_heads=8, n_head=8)

# What says which class it is, or is no key of it.
NAMES = {"architectures", "model_type", "transformers_version"}


def classes_of(name):
    config_class = getattr(transformers, CONFIGS.get(name, name + "Config"), None)
    return config_class, getattr(transformers, MODELS.get(name, name + "ForCausalLM"), None)


def unread(model):
    """Parameters that no forward of the class reads: transformers 5.24.0 gives LongCat-Flash's experts that compute nothing matrices all the
    same, which 4.57.6 and the published checkpoints do not have."""
    experts = [module for module in model.modules() if type(module).__name__ == "LongcatFlashExperts"]
    return sum(module.zero_expert_num * module.gate_up_proj[0].numel() for module in experts)


def count(name, config):
    """Parameters of the class with what config.json says, or None where the class refuses it."""
    config_class, model_class = classes_of(name)
    try:
        with torch.device("meta"):
            model = model_class(config_class.from_dict(copy.deepcopy(config)))
    except Exception:  # whatever the class says
        return None
    parameters = sum(parameter.numel() for parameter in model.parameters()) - unread(model)
    return parameters + sum(buffer.numel() for key, buffer in model.named_buffers() if "e_score_correction" in key)


def another(value):
    """A value of the same type, or None."""
    if value is None:
        return 24
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * 2 or 1
    if isinstance(value, list) and all(type(one) is int for one in value):
        return value[:-1] or [0]
    return None


def edits_of(name, config, parameters):
    """[[what was done, key, value, parameters or null]]: only edits that change the number."""
    edits = []
    for key in config:
        if key not in NAMES:
            edits.append(["drop", key, None, {other: config[other] for other in config if other != key}])
            if config[key] is not None:
                edits.append(["null", key, None, dict(config, **{key: None})])
            if another(config[key]) is not None:
                edits.append(["change", key, another(config[key]), dict(config, **{key: another(config[key])})])
    edits += [["add", key, value, dict(config, **{key: value})] for key, value in ADDED.items() if key not in config]
    counted = [edit[:3] + [count(name, edit[3])] for edit in edits]
    return [edit for edit in counted if edit[3] != parameters]


def case(name, sizes):
    config_class, model_class = classes_of(name)
    config = config_class(**sizes)
    config.architectures = [model_class.__name__]
    saved = json.loads(config.to_json_string())
    parameters = count(name, saved)
    given = dict(architectures=config.architectures, model_type=config.model_type, **sizes)
    return {"parameters": parameters, "given": given, "config": saved, "edits": edits_of(name, saved, parameters)}


def main():
    # Values do not matter, and some initialisers do not expect norms without biases.
    transformers.PreTrainedModel._initialize_weights = lambda *arguments, **options: None
    only = sys.argv[2:]
    lines = [json.dumps(case(name, sizes)) for name, sizes in CASES if all(classes_of(name)) and (not only or name in only)]
    with open(sys.argv[1], "w") as out:
        out.write('{ "source": "transformers %s, built on the meta device", "added": %s,\n  "cases": [\n    %s\n  ] }\n'
                  % (transformers.__version__, json.dumps(ADDED), ",\n    ".join(lines)))


main()
