#!/bin/sh
# llama-3.1-8b in Megatron-Bridge, as planned, with the keys of 0.6.2: 1F1B · P 2 · M 16 · TP 1 · DP 2
# layers of each stage, first to last: 17 15
# In a checkout of Megatron-Bridge; data, tokenizer and learning rate behind it, as overrides too.
# Was tried: megatron-bridge 0.6.2 beside megatron-core 0.19.2.
set -eu
exec torchrun --nproc_per_node 4 --nnodes 1 scripts/training/run_recipe.py \
  --recipe vanilla_gpt_pretrain_config --mode pretrain \
  model.pipeline_model_parallel_size=2 \
  'model.pipeline_model_parallel_layout="Et*17|t*15,L"' \
  train.micro_batch_size=1 \
  train.global_batch_size=32 \
  model.seq_length=4096 \
  model.num_layers=32 \
  model.hidden_size=4096 \
  model.num_attention_heads=32 \
  model.ffn_hidden_size=14336 \
  model.num_query_groups=8 \
  model.gated_linear_unit=true \
  model.normalization=RMSNorm \
  ddp.use_distributed_optimizer=true \
  model.vocab_size=128256 \
  model.position_embedding_type=rope \
  model.share_embeddings_and_output_weights=false \
  model.add_bias_linear=false \
  mixed_precision=bf16_mixed \
  optimizer.use_distributed_optimizer=true \
  train.train_iters=7629 \
  dataset.seq_length=4096 \
  'model.activation_func={_target_:torch.nn.functional.silu,_call_:false}' \
  model.bias_activation_fusion=true \
  model.bias_dropout_fusion=true \
  "$@"
