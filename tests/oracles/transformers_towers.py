# SPDX-License-Identifier: Apache-2.0
"""Writes what the classes of the installed Hugging Face transformers count of the towers of multimodal models: for each family the file that
the release saves for a small one, its parameters, those outside the text model, and the latter
with each key of vision_config, and each key beside it, left out or changed.

    pip install torch transformers==5.24.0 && python3 tests/oracles/transformers_towers.py tests/oracles/transformers_towers.json
"""
import copy
import json
import sys

import torch
import transformers

TEXT = dict(vocab_size=1000, hidden_size=192, num_hidden_layers=2, num_attention_heads=12, num_key_value_heads=4, intermediate_size=416,
            max_position_embeddings=512)
MOE = dict(TEXT, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=96)
LINEAR = dict(linear_num_key_heads=4, linear_num_value_heads=8, linear_key_head_dim=16, linear_value_head_dim=24, linear_conv_kernel_dim=3)
VIT = dict(hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=4)
QWEN3 = dict(depth=3, hidden_size=96, intermediate_size=160, num_heads=4, out_hidden_size=192, num_position_embeddings=64)

# class, text model, vision_config, what stands beside
CASES = [
    ("Gemma3", dict(TEXT, head_dim=16), dict(VIT, image_size=56, patch_size=8, vision_use_head=False), dict(mm_tokens_per_image=49)),
    ("Gemma3", dict(TEXT, head_dim=16), dict(VIT, image_size=56, patch_size=8), {}),
    ("Gemma4", dict(TEXT, head_dim=16, global_head_dim=24, hidden_size_per_layer_input=0), dict(VIT, num_key_value_heads=2, head_dim=20, position_embedding_size=50), {}),
    ("Llama4", dict(TEXT, head_dim=16, num_local_experts=4, num_experts_per_tok=1, intermediate_size_mlp=200),
     dict(VIT, vision_output_dim=128, projector_input_dim=72, projector_output_dim=72, image_size=56, patch_size=8), {}),
    ("Qwen2VL", TEXT, dict(depth=3, embed_dim=96, hidden_size=192, num_heads=4, mlp_ratio=3), {}),
    ("Qwen2_5_VL", TEXT, dict(depth=3, hidden_size=96, intermediate_size=160, num_heads=4, out_hidden_size=192), {}),
    ("Qwen3VL", dict(TEXT, head_dim=24), dict(QWEN3, deepstack_visual_indexes=[0, 2]), {}),
    ("Qwen3VLMoe", dict(MOE, head_dim=24), dict(QWEN3, deepstack_visual_indexes=[1]), {}),
    ("Qwen3_5", dict(TEXT, head_dim=24, **LINEAR), QWEN3, {}),
    ("Qwen3_5Moe", dict(MOE, head_dim=24, shared_expert_intermediate_size=80, **LINEAR), dict(QWEN3, spatial_merge_size=3), {}),
    ("Mistral3", dict(TEXT, model_type="mistral", head_dim=24), dict(VIT, model_type="pixtral", image_size=56, patch_size=14), {}),
    ("Mistral3", dict(TEXT, model_type="mistral", head_dim=24), dict(VIT, model_type="pixtral", image_size=56, patch_size=14),
     dict(multimodal_projector_bias=True, spatial_merge_size=3, vision_feature_layer=[-1, -2])),
    ("Kimi_K25", dict(TEXT, model_type="deepseek_v3", q_lora_rank=48, kv_lora_rank=64, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24,
                      n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=96, first_k_dense_replace=1, n_group=2, topk_group=1),
     dict(VIT, pos_emb_height=8, pos_emb_width=6, merge_kernel_size=[2, 3]), {}),
    ("MiniMaxM3Sparse", dict(TEXT, head_dim=16, num_local_experts=4, num_experts_per_tok=2, dense_intermediate_size=200, shared_intermediate_size=80,
                             index_n_heads=4, index_head_dim=16, index_block_size=8, index_topk_blocks=2,
                             layer_types=["full_attention", "minimax_m3_sparse"], mlp_layer_types=["dense", "sparse"]), dict(VIT, image_size=56), dict(projector_hidden_size=88)),
    ("Step3p7", dict(TEXT, head_dim=16, num_attention_groups=4, layer_types=["full_attention", "sliding_attention"], mlp_layer_types=["dense", "sparse"],
                     moe_num_experts=4, moe_top_k=2, moe_intermediate_size=96, share_expert_dim=80, use_moe_router_bias=True),
     dict(hidden_size=96, mlp_ratio=2.5, num_hidden_layers=3, num_attention_heads=4, image_size=56), dict(projector_bias=True)),
]

# What a configuration of any class has, and what says what it is.
GENERAL = set(transformers.PreTrainedConfig().to_dict()) | {"architectures", "model_type", "dtype", "rope_parameters", "hidden_act", "hidden_activation",
                                                            "initializer_range", "transformers_version"}


def counts(name, config):
    """All parameters, with the buffers that checkpoints hold, and those outside the text model."""
    model_class = getattr(transformers, name + "ForConditionalGeneration")
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(copy.deepcopy(config)))
    tower = sum(p.numel() for n, p in model.named_parameters() if "language_model" not in n and not n.startswith("lm_head"))
    if config.get("tie_word_embeddings") or config["text_config"].get("tie_word_embeddings"):
        model.tie_weights()
    buffers = sum(b.numel() for n, b in model.named_buffers() if "e_score_correction" in n)
    return sum(p.numel() for p in model.parameters()) + buffers, tower


def attempt(name, config):
    try:
        return counts(name, config)[1]
    except Exception:  # what the class refuses, whatever it raises
        return None


def another(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and value > 0:
        return value * 2
    if isinstance(value, float):
        return value * 2
    if isinstance(value, list) and value:
        return value[:-1] or [value[0], value[0]]
    return None


def edits(name, config):
    found = []
    places = [("vision_config", config["vision_config"]), (None, config)]
    for place, owner in places:
        for key, value in owner.items():
            if key in GENERAL or isinstance(value, dict) or value is None or key.endswith("_token_id") or key.endswith("_token_index"):
                continue
            for what, changed in (("drop", None), ("change", another(value))):
                if what == "change" and changed is None:
                    continue
                edited = copy.deepcopy(config)
                target = edited[place] if place else edited
                if what == "drop":
                    del target[key]
                else:
                    target[key] = changed
                found.append({"what": what, "place": place, "key": key, "value": changed, "tower": attempt(name, edited)})
    return found


def slim(config):
    """Without what stands in every configuration."""
    general = transformers.PreTrainedConfig().to_dict()
    return {key: slim(value) if key in ("text_config", "vision_config") else value for key, value in config.items()
            if key in ("model_type", "tie_word_embeddings", "transformers_version") or key not in ("id2label", "label2id") and not (key in general and general[key] == value)}


def main():
    transformers.PreTrainedModel._initialize_weights = lambda *arguments, **options: None
    transformers.utils.logging.set_verbosity_error()
    cases = []
    for name, text, vision, beside in CASES:
        model_class = getattr(transformers, name + "ForConditionalGeneration")
        config = model_class.config_class(text_config=dict(text), vision_config=dict(vision), **beside)
        saved = slim(json.loads(config.to_json_string(use_diff=False)))
        saved["architectures"] = [model_class.__name__]
        parameters, tower = counts(name, saved)
        cases.append({"config": saved, "parameters": parameters, "tower": tower, "edits": edits(name, saved)})
    source = "transformers %s, built on the meta device" % transformers.__version__
    with open(sys.argv[1], "w") as out:
        out.write('{ "source": %s,\n  "cases": [\n' % json.dumps(source))
        out.write(",\n".join("    " + json.dumps(case) for case in cases))
        out.write("\n  ] }\n")


main()
