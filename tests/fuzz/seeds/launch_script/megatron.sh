#!/bin/sh
# llama-3.1-8b in Megatron-LM, as planned, with the keys of core 0.20.0: 1F1B · P 2 · M 16 · TP 1 · DP 2
# layers of each stage, first to last: 17 15
# Data, tokenizer and learning rate behind it.
set -eu
exec torchrun --nproc_per_node 4 --nnodes 1 pretrain_gpt.py \
  --pipeline-model-parallel-size 2 \
  --pipeline-model-parallel-layout 'Et*17|t*15,L' \
  --micro-batch-size 1 \
  --global-batch-size 32 \
  --seq-length 4096 \
  --max-position-embeddings 4096 \
  --num-layers 32 \
  --hidden-size 4096 \
  --num-attention-heads 32 \
  --ffn-hidden-size 14336 \
  --group-query-attention \
  --num-query-groups 8 \
  --swiglu \
  --untie-embeddings-and-output-weights \
  --normalization RMSNorm \
  --disable-bias-linear \
  --bf16 \
  --use-distributed-optimizer \
  --vocab-size 128256 \
  --train-samples 244141 \
  --position-embedding-type rope \
  "$@"
