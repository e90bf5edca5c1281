#!/bin/bash
# Llama 3 70B on Megatron-LM, as one would start it under Slurm: for `pipeplan lint` and `pipeplan plan`.
GPUS_PER_NODE=8
NODES=${SLURM_NNODES:-16}

MODEL_ARGS=(
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
    --group-query-attention --num-query-groups 8
    --swiglu --disable-bias-linear --normalization RMSNorm
    --position-embedding-type rope --untie-embeddings-and-output-weights
    --seq-length 8192 --max-position-embeddings 8192
    --tokenizer-type NullTokenizer --vocab-size 128256
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size 4 --sequence-parallel
    --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 5
    --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
)
TRAINING_ARGS=(
    --micro-batch-size 1 --global-batch-size 1024 --train-samples 122070312 # 1 T tokens
    --bf16 --hidden-dropout 0 --attention-dropout 0 --lr 1.5e-4 --lr-decay-style cosine --mock-data
)

torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NODES pretrain_gpt.py \
    "${MODEL_ARGS[@]}" "${PARALLEL_ARGS[@]}" "${TRAINING_ARGS[@]}"
