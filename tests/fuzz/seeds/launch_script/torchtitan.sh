#!/bin/sh
# llama-3.1-8b in torchtitan, as planned, with the keys of 0.3.0: 1F1B · P 2 · M 16 · TP 1 · DP 2
# layers of each stage, first to last: 17 15
# Tokenizer, data and learning rate are the configuration function's; arguments of this script are added.
# torchtitan 0.3.0 beside PyTorch 2.14 or newer: with 2.13 its pipeline does not run.
set -eu
exec torchrun --nproc_per_node 4 --nnodes 1 -m torchtitan.train \
  --module llama3 \
  --config llama3_8b \
  --parallelism.pipeline_parallel_degree 2 \
  --parallelism.tensor_parallel_degree 1 \
  --parallelism.context_parallel_degree 1 \
  --parallelism.expert_parallel_degree 1 \
  --parallelism.data_parallel_replicate_degree 1 \
  --parallelism.data_parallel_shard_degree 2 \
  --parallelism.fsdp_reshard_after_forward never \
  --parallelism.pipeline_parallel_schedule 1F1B \
  --parallelism.pipeline_parallel_microbatch_size 1 \
  --parallelism.module_fqns_per_model_part tok_embeddings,layers.0,layers.1,layers.2,layers.3,layers.4,layers.5,layers.6,layers.7,layers.8,layers.9,layers.10,layers.11,layers.12,layers.13,layers.14,layers.15,layers.16 layers.17,layers.18,layers.19,layers.20,layers.21,layers.22,layers.23,layers.24,layers.25,layers.26,layers.27,layers.28,layers.29,layers.30,layers.31,norm,lm_head \
  --training.local_batch_size 16 \
  --training.global_batch_size 32 \
  --training.seq_len 4096 \
  --training.disable_cuda_graphs \
  --training.mixed_precision_param bfloat16 \
  --training.steps 7629 \
  --optimizer.implementation fused \
  --compile.enable \
  --compile.components model,loss \
  "$@" activation_checkpoint:none
