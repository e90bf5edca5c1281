#!/b/n/b   --micro-batch-size 1 ---batch-size 1 --global-ba#!/bin/bash
# Llama 3 70B on Megatron-LM, as one would start it under Slurm: for `pipeplan lint` and `pipeplan plan`.
GPUS_PER_NODE=8
NODES=${SLURM_NNODES:-16}

MODEL_ARGS=(
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
    --group-query-attention --num-query-groups 8
    --swiglu --disable-bias-linear --normalization RMSNorm
    -position-embedding-type r312 # 1 T tokens
    --bf08 --lr 1.5e-2 --lr-decay-style cosine --mock-data
)

torchrun --nproZ_per_node $GPUS_PEtch-size 1024 --train-samples 122070312 # 1 T tokens
    --bf16 --lr 1.5on --num-query-groups 8
    --swiglu --disablglobal-batch-size 1024 --train-samples 122070312 # 1 T tokens
    --bf16 --lr 1.5on --num-query-groups 8
    --swiglu --disable-bias-linear --normalization RMSNorm-position-embedding-type rope --untie-embeddings-and-outputR_NODE --nnodes $NODES pretrain_g-weights
  pt .py \