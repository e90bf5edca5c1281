# SPDX-License-Identifier: Apache-2.0
"""Megatron's model of a job: this rank's chunks, wrapped as Megatron-LM's training wraps them, and the optimizer. After shim.load alone.

A weight's first values depend on its name in the whole model alone, so that however the model is cut it is the same one.
"""
from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_block_spec
from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.module import Float16Module, MegatronModule

from pipeline.program import Mismatch

if TYPE_CHECKING:
    from typing import Any
    from torch import nn
    from job import Job

DTYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def dtype_of(job: Job, source: str) -> torch.dtype:
    """Of weights and activations; Mismatch where a plan has another."""
    if job.precision not in DTYPES:
        raise Mismatch(f"{source}: training.precision is {job.precision}: expected {' or '.join(DTYPES)}")
    return DTYPES[job.precision]


def transformer_engine() -> bool:
    try:
        import transformer_engine.pytorch  # noqa: F401
        return True
    except ImportError:
        return False


def start(job: Job) -> None:
    """Megatron's process groups. Its ranks lie as Grid's: pipeline outermost, replicas and experts side by side."""
    plan = job.plan
    parallel_state.initialize_model_parallel(plan.tensor, plan.pipeline, plan.virtual if plan.virtual > 1 else None,
                                             expert_model_parallel_size=plan.expert, create_gloo_process_groups=False)
    model_parallel_cuda_manual_seed(1)


def config_of(job: Job, dtype: torch.dtype, engine: bool = False) -> TransformerConfig:
    """As Megatron-LM makes it of its arguments (argument_utils.py: core_transformer_config_from_args), of an unpipelined model where there is one
    pipeline rank. engine: with Transformer Engine's layers."""
    given, plan, shape, flags = job.given, job.plan, job.shape, job.flags
    piped = plan.pipeline > 1
    if flags.get("--sequence-parallel") and plan.tensor > 1 and not engine:
        raise Mismatch(f"{plan.source} wants --sequence-parallel, which Megatron's norms have with Transformer Engine alone: expected "
                       "parallelism.sequence false")
    modules = flags.get("--recompute-modules")
    recompute = {"recompute_granularity": flags.get("--recompute-granularity"), "recompute_method": flags.get("--recompute-method"),
                 "recompute_num_layers": int(flags["--recompute-num-layers"]) if "--recompute-num-layers" in flags else None,
                 **({"recompute_modules": [modules] if isinstance(modules, str) else modules} if modules else {})}
    experts = {"num_moe_experts": shape.experts, "moe_ffn_hidden_size": shape.ffn, "moe_router_topk": shape.experts_per_token,
               "moe_token_dispatcher_type": "alltoall", "moe_grouped_gemm": engine} if shape.experts else {}
    return TransformerConfig(
        num_layers=shape.layers, hidden_size=shape.hidden, ffn_hidden_size=shape.ffn, num_attention_heads=shape.heads,
        num_query_groups=shape.kv_heads, kv_channels=shape.head_dim, normalization="LayerNorm" if given.get("norm_bias") else "RMSNorm",
        add_bias_linear=bool(given.get("mlp_bias")), add_qkv_bias=bool(given.get("qkv_bias")), qk_layernorm=given.get("qk_norm", "none") != "none",
        gated_linear_unit=shape.gated, activation_func=F.silu if shape.gated else F.gelu, bias_activation_fusion=True, bias_dropout_fusion=True,
        hidden_dropout=0.0, attention_dropout=0.0, perform_initialization=False, use_cpu_initialization=not torch.cuda.is_available(),
        params_dtype=dtype, pipeline_dtype=dtype, bf16=dtype == torch.bfloat16,
        tensor_model_parallel_size=plan.tensor, pipeline_model_parallel_size=plan.pipeline, expert_model_parallel_size=plan.expert,
        virtual_pipeline_model_parallel_size=plan.virtual if plan.virtual > 1 else None, sequence_parallel=bool(flags.get("--sequence-parallel")),
        pipeline_model_parallel_layout=(flags.get("--pipeline-model-parallel-layout") or layout(plan.layers_per_stage)) if piped else None,
        microbatch_group_size_per_vp_stage=job.group, overlap_p2p_comm=plan.virtual > 1, batch_p2p_comm=plan.virtual == 1,
        deallocate_pipeline_outputs=True, persist_layer_norm=False, gradient_accumulation_fusion=False, **recompute, **experts)


def layout(layers: tuple[int, ...]) -> str:
    """(2, 3) → "Ett|tttL" """
    return "E" + "|".join("t" * count for count in layers) + "L"


class Attention(MegatronModule):
    """PyTorch's, in place of Megatron's own local one, whose scores take memory of the square of the sequence."""

    def __init__(self, config: TransformerConfig, **_: Any) -> None:
        super().__init__(config=config)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        q, k, v = (x.permute(1, 2, 0, 3) for x in (query, key, value))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return out.permute(2, 0, 1, 3).flatten(2)


class Chunk(GPTModel):
    """A stage of the model. number: which."""

    def __init__(self, job: Job, config: TransformerConfig, number: int, device: torch.device, engine: bool = False) -> None:
        vp_stage = number // config.pipeline_model_parallel_size if config.virtual_pipeline_model_parallel_size else None
        spec = get_gpt_decoder_block_spec(config, use_transformer_engine=engine, normalization=config.normalization, vp_stage=vp_stage)
        if not engine:
            for layer in spec.layer_specs:
                layer.submodules.self_attention.submodules.core_attention = Attention
        stages = config.pipeline_model_parallel_size * (config.virtual_pipeline_model_parallel_size or 1)
        super().__init__(config, spec, job.shape.vocab, job.shape.sequence_length, pre_process=number == 0, post_process=number == stages - 1,
                         share_embeddings_and_output_weights=bool(job.given.get("tied_embeddings")), position_embedding_type="rope",
                         vp_stage=vp_stage)
        self.number = number
        self.to(device)
        self.initialize()

    def key(self, name: str) -> str:
        """Where a weight is in the whole model: "decoder.layers.0.…" of a stage → "decoder.layers.6.…"; experts alike."""
        if name == "output_layer.weight" and self.share_embeddings_and_output_weights:
            return "embedding.word_embeddings.weight"
        part = name.split(".")
        if part[:2] == ["decoder", "layers"]:
            layer = self.decoder.layers[int(part[2])]
            if "local_experts" in part:
                at = part.index("local_experts") + 1
                part[at] = str(int(part[at]) + parallel_state.get_expert_model_parallel_rank() * layer.mlp.num_local_experts)
            part[2] = str(layer.layer_number - 1)
        return ".".join(part)

    @torch.no_grad()
    def initialize(self) -> None:
        for name, weight in self.named_parameters():
            if weight.dim() == 1:
                weight.fill_(0 if name.endswith("bias") else 1)
                continue
            key = self.key(name)
            generator = torch.Generator(weight.device).manual_seed(sum(31**i * b for i, b in enumerate(key.encode())) % 2**40)
            scale = 0.02 if "embedding" in key else 1 / math.sqrt(weight.shape[1])
            weight.copy_(torch.randn(weight.shape, generator=generator, device=weight.device) * scale)


def wrapped(job: Job, config: TransformerConfig, chunk: nn.Module, first: bool = True) -> DistributedDataParallel:
    """As Megatron-LM's get_model: precision, then data parallelism, whose buffers hold weights and gradients. first: of this rank's chunks."""
    flags = job.flags
    settings = DistributedDataParallelConfig(
        grad_reduce_in_fp32=True, check_for_nan_in_grad=True, use_distributed_optimizer=bool(flags.get("--use-distributed-optimizer")),
        overlap_grad_reduce=bool(flags.get("--overlap-grad-reduce")), overlap_param_gather=bool(flags.get("--overlap-param-gather")),
        bucket_size=max(40_000_000, 1_000_000 * job.plan.data) if flags.get("--overlap-grad-reduce") else None)
    module = Float16Module(config, chunk) if config.bf16 else chunk
    return DistributedDataParallel(config, settings, module, disable_bucketing=not first)


def build(job: Job, dtype: torch.dtype, device: torch.device, engine: bool = False) -> tuple[TransformerConfig, list[DistributedDataParallel]]:
    """All chunks of this rank."""
    config, rank = config_of(job, dtype, engine), parallel_state.get_pipeline_model_parallel_rank()
    numbers = range(rank, job.stages, job.plan.pipeline)
    chunks = [wrapped(job, config, Chunk(job, config, number, device, engine), number == rank) for number in numbers]
    config.finalize_model_grads_func = finalize_model_grads
    if job.flags.get("--overlap-grad-reduce"):
        config.no_sync_func = [chunk.no_sync for chunk in chunks] if len(chunks) > 1 else chunks[0].no_sync
    return config, chunks


def optimizer_of(job: Job, config: TransformerConfig, chunks: list, rate: float) -> Any:
    settings = OptimizerConfig(optimizer="adam", lr=rate, bf16=config.bf16, params_dtype=config.params_dtype, clip_grad=1.0,
                               use_distributed_optimizer=bool(job.flags.get("--use-distributed-optimizer")))
    made = get_megatron_optimizer(settings, chunks, use_gloo_process_groups=False)
    config.grad_scale_func = made.scale_loss
    return made
