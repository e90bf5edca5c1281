-- SPDX-License-Identifier: Apache-2.0
-- megatron_flags.lua: every flag of Megatron-LM's trainers, by what argparse takes behind it: the actions of megatron.training.arguments in the
-- PyPI package megatron-core 0.19.2 and in NVIDIA/Megatron-LM @d98e8a64, core 0.20.0, whose word counts where they differ; and flags that other
-- programs of @d98e8a64 add (names alone). Without the two dashes.

return {
  -- nothing
  flags = [[
    account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32 add-qkv-bias
    adlr-autoresume allow-ambiguous-pad-tokens apply-layernorm-1p apply-query-key-layer-scaling apply-residual-connection-post-layernorm
    apply-wd-to-qk-layernorm async-ckpt-use-cpu-shm async-save attention-output-gate attention-softmax-in-fp32 auto-detect-ckpt-format
    batch-invariant-mode bert-no-binary-head bf16 biencoder-shared-query-context-model cache-mla-latents calc-ft-timeouts
    calculate-per-token-loss check-for-large-grads check-for-spiky-loss checkpoint-activations ckpt-assume-constant-structure
    ckpt-convert-update-legacy-dist-opt-format ckpt-drop-redundant-extra-state ckpt-fully-parallel-load
    ckpt-fully-parallel-load-per-rank-objects ckpt-fully-parallel-save ckpt-pg-tensors-cache-create
    cpu-offloading-retain-pinned-cpu-buffers create-all-gather-group cross-entropy-loss-fusion data-parallel-random-init
    dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-inter-document-masking ddp-average-in-collective
    ddp-pad-buckets-for-high-nccl-busbw ddp-reduce-scatter-with-fp32-accumulation decode-only-cuda-graphs decrease-batch-size-if-needed
    defer-embedding-wgrad-compute delay-offload-until-cuda-graph delay-wgrad-compute deterministic-mode dino-norm-last-layer
    disable-align-grad-reduce disable-bf16-reduced-precision-matmul disable-bias-linear disable-ckpt-load-validate-sharding-integrity
    disable-clone-scatter-output-in-embedding disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu
    disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec disable-flight-recorder-include-only-active
    disable-fp8-wgrad disable-gloo-process-groups disable-jit-fuser disable-log-loss-scale-to-tensorboard disable-mamba-mem-eff-path
    disable-manual-gc-eval disable-msc disable-pad-vocab-size disable-save-tokenizer-assets disable-straggler-on-startup
    disable-stream-ckpt-dequant disable-strict-fsdp-dtensor-load disable-symmetric-registration
    disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad
    disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs
    disable-use-tokenizer-model-from-checkpoint-args dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014
    distrib-optim-fully-reshardable-mem-efficient distribute-saved-activations dsa-indexer-k-norm-fp32 dsa-indexer-rope-interleaved
    dsa-indexer-use-sparse-loss enable-chunked-prefill enable-cuda-graph enable-experimental enable-ft-package
    enable-full-sharding-in-hsdp enable-mhc-connections enable-msc eod-mask-loss ep-overlap-early-attn-memory-release
    exit-on-missing-checkpoint exit-signal-handler exit-signal-handler-for-dataloader exit-signal-handler-for-training
    external-cuda-graph fake-process-group fim-data fine-grained-activation-offloading finetune first-last-layers-bf16 flash-decode
    flight-recorder-include-stack-trace fp16 fp16-lm-cross-entropy fp32-residual-connection fp4-param-gather fp8-output-proj
    fp8-param-gather freeze-all-layers fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer fsdp-manual-registration full-validation
    fused-residual-rmsnorm gdp-cutedsl-kernel grad-reduce-in-bf16 group-query-attention grpo-filter-groups-with-same-reward
    gtp-expert-remat-nccl-ub gtp-remat-nccl-ub gtp-remat-reduce-scatter-with-fp32-accumulation help high-priority-a2a-comm-stream
    hybrid-context-parallel inference-cuda-graph-all-prefills inference-disable-ep-consensus inference-disable-triton-nvls-kernels
    inference-dynamic-batching inference-dynamic-batching-prefix-caching inference-dynamic-batching-track-generated-token-events
    inference-dynamic-batching-track-paused-request-events inference-fuse-tp-communication inference-moe-disable-fused-quant-kernels
    inference-rng-tracker inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging
    init-method-xavier-uniform init-model-with-meta-device inprocess-empty-cuda-cache inprocess-restart is-hybrid-model
    keep-fp8-transpose-cache lazy-mpu-init load-main-params-from-ckpt log-device-memory-used log-energy log-max-attention-logit
    log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard
    log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logits-load-ignore-errors manual-gc
    megatron-fsdp-enable-fine-grained-param-gather megatron-fsdp-max-pool-double-buffer mla-down-proj-fusion mock-data
    moe-apply-probs-on-input moe-enable-deepep moe-enable-routing-replay moe-grouped-gemm moe-hybridep-pad-uneven-dispatch-inputs
    moe-layer-recompute moe-ncclep-static-shape moe-ncclep-zero-copy moe-pad-expert-input-to-capacity
    moe-pad-experts-for-cuda-graph-inference moe-paged-stash moe-per-layer-logging moe-permute-fusion moe-permute-fusion-into-hybridep
    moe-router-enable-expert-bias moe-router-force-load-balancing moe-router-fusion moe-router-padding-for-fp8
    moe-router-padding-for-quantization moe-router-pre-softmax moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits
    moe-routing-trace-dump-weights moe-shared-expert-gate moe-shared-expert-overlap moe-single-grouped-bias moe-single-grouped-weight
    moe-use-grouped-tensor moe-use-upcycling mtp-detach-heads mtp-hsm mtp-standalone mtp-use-repeated-layer multi-latent-attention
    multiple-validation-sets muon-nesterov muon-no-split-qkv muon-use-syrk nccl-all-reduce-for-prefill no-align-grad-reduce
    no-align-param-gather no-barrier-with-level-1-timing no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
    no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity
    no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding no-dsa-indexer-rotate-activation
    no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout no-flight-recorder-extra-dump-on-exec
    no-flight-recorder-include-only-active no-fp8-wgrad no-gradient-accumulation-fusion no-gradient-reduce-div-fusion
    no-inference-disable-ep-consensus no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
    no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization no-load-optim no-load-rng
    no-log-loss-scale-to-tensorboard no-manual-gc-eval no-masked-softmax-fusion no-mmap-bin-files no-one-logger
    no-overlap-p2p-communication no-pad-vocab-size no-persist-layer-norm no-pin-cpu-grads no-pin-cpu-params no-position-embedding
    no-rl-inference-logprobs-is-correction no-rl-offload-inference-model-weights-when-idle no-rl-partial-rollouts
    no-rl-persist-cuda-graphs no-rl-skip-bos-token no-rl-training-cuda-graphs no-rl-use-sequence-packing no-rl-verify-model-weights-swap
    no-rope-fusion no-save-optim no-save-rng no-save-tokenizer-assets no-stream-ckpt-dequant no-strict-fsdp-dtensor-load
    no-tokenizer-sentencepiece-ignore-extra-whitespaces no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad no-tp-comm-overlap-ag
    no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout
    no-use-tokenizer-model-from-checkpoint-args no-yarn-correction-range-round-to-int nvtx-ranges one-logger-async openai-gelu
    optimizer-cpu-offload optimizer-cuda-graph otel-enabled output-bert-embeddings overlap-cpu-optimizer-d2h-h2d
    overlap-dispatch-backward-with-experts-wgrad overlap-grad-reduce overlap-moe-expert-parallel-comm
    overlap-p2p-communication-warmup-flush overlap-param-gather overlap-param-gather-with-optimizer-step override-opt-param-scheduler
    override-opt_param-scheduler perform-rl-step profile pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra
    pytorch-profiler-collect-shapes qk-clip qk-l2-norm qk-layernorm quick-geglu recompute-activations record-memory-history
    record-shapes replication reset-attention-mask reset-position-ids retriever-score-scaling reuse-grad-buf-for-mxfp8-param-ag
    rl-durable-rollout-bank rl-inference-logprobs-is-correction rl-offload-inference-model-weights-when-idle
    rl-offload-optimizer-during-inference rl-partial-rollouts rl-persist-cuda-graphs rl-profile rl-skip-bos-token
    rl-training-cuda-graphs rl-use-sequence-packing rl-verify-model-weights-swap rotary-interleaved run-workload-inspector-server
    sequence-parallel sft skip-train squared-relu swiglu te-rng-tracker test-mode tokenizer-hf-no-include-special-tokens
    tokenizer-hf-no-use-fast tokenizer-sentencepiece-legacy torch-fsdp2-no-reshard-after-forward tp-comm-overlap
    tp-comm-overlap-rs-dgrad trust-remote-code untie-embeddings-and-output-weights use-checkpoint-args
    use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler use-cpu-initialization use-dist-ckpt use-distributed-optimizer
    use-flash-attn use-fused-weighted-squared-relu use-gigatoken use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert
    use-kitchen-attention use-legacy-static-engine use-mcore-models use-megatron-fsdp use-mp-args-from-checkpoint-args use-mup
    use-nccl-ub use-one-sent-docs use-persistent-ckpt-worker use-precision-aware-optimizer use-pytorch-profiler use-ring-exchange-p2p
    use-rope-scaling use-rotary-position-embeddings use-same-sampling-seed-across-dp-ranks use-sharp use-te-activation-func
    use-torch-fsdp2 use-torch-optimizer-for-cpu-offload use-tp-pp-dp-mapping use-transformer-engine-op-fuser verify-integrity
    vision-pretraining yarn-correction-range-round-to-int
  ]],
  -- one integer
  integers = [[
    adlr-autoresume-interval async-ckpt-cpu-priority async-ckpt-io-priority batch-size biencoder-projection-dim
    check-weight-hash-across-dp-replicas-interval ckpt-step context-parallel-size cpu-offloading-num-layers cuda-graph-warmup-steps
    ddp-bucket-size ddp-num-buckets decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers decoder-num-layers
    decoder-seq-length delta-offload-bytes-across-pp-ranks dino-bottleneck-size dino-head-hidden-size dino-local-crops-number
    dino-local-img-size dino-warmup-teacher-temp-epochs dist-ckpt-workers distributed-timeout-minutes
    distributed-timeout-seconds-after-init dsa-indexer-head-dim dsa-indexer-n-heads dsa-indexer-skip-topk-offset dsa-indexer-topk
    dsa-indexer-topk-freq encoder-num-layers encoder-seq-length error-injection-rate eval-global-batch-size eval-interval eval-iters
    eval-micro-batch-size exit-duration-in-mins exit-interval expert-model-parallel-size expert-tensor-parallel-num-weight-shards
    expert-tensor-parallel-size fault-injector-delay-start-iteration fault-injector-num-ranks fault-injector-seed ffn-hidden-size
    fine-grained-offloading-max-inflight-offloads flight-recorder-trace-buffer-size fp8-amax-history-len fp8-interval fp8-margin
    ft-num-warmup-iters gdp-num-chunk-states-to-recompute gdp-num-householder global-batch-size gpu-sniff-test-interval grpo-group-size
    grpo-iterations grpo-prompts-per-step hidden-size hysteresis ict-head-size img-h img-w indexer-batch-size indexer-log-interval
    inference-batch-times-seqlen-threshold inference-coordinator-port inference-cuda-graph-max-tokens
    inference-dynamic-batching-block-size inference-dynamic-batching-cuda-graph-mixed-prefill-count
    inference-dynamic-batching-max-requests inference-dynamic-batching-max-tokens inference-dynamic-batching-num-cuda-graphs
    inference-logging-step-interval inference-max-requests inference-max-seq-length inprocess-active-world-size inprocess-max-iterations
    iter-per-epoch kv-channels kv-lora-rank linear-conv-kernel-dim linear-key-head-dim linear-num-key-heads linear-num-value-heads
    linear-value-head-dim local-rank log-interval log-memory-interval logging-level logits-load-decode-threads
    logits-load-msc-prefetch-depth logits-load-prefetch-factor logits-save-top-k logits-save-top-p-min-k lr-decay-iters lr-decay-samples
    lr-warmup-iters lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples make-vocab-size-divisible-by mamba-head-dim
    mamba-num-groups mamba-num-heads mamba-state-dim manual-gc-interval max-position-embeddings max-seqlen-per-dp-cp-rank
    max-tokens-to-oom mhc-num-residual-streams mhc-recompute-layer-num mhc-sinkhorn-iterations micro-batch-size
    microbatch-group-size-per-virtual-pipeline-stage min-offloaded-tensor-size mlp-chunks-for-prefill mlp-chunks-for-training
    model-parallel-size moe-deepep-num-sms moe-ffn-hidden-size moe-flex-dispatcher-num-sms moe-hybridep-num-blocks-permute
    moe-hybridep-num-blocks-unpermute moe-hybridep-num-sms moe-hybridep-num-sms-preprocessing moe-latent-size
    moe-mlp-glu-interleave-size moe-paged-stash-page-size moe-router-group-topk moe-router-num-groups moe-router-topk
    moe-routing-trace-max-training-iters moe-shared-expert-glu-interleave-size moe-shared-expert-intermediate-size
    moe-upcycling-granularity mtp-num-layers muon-num-ns-steps mup-base-hidden-size non-persistent-save-interval null-tokenizer-eod-id
    null-tokenizer-pad-id num-attention-heads num-channels num-classes num-dataset-builder-threads num-distributed-optimizer-instances
    num-experts num-layers num-layers-at-end-in-bf16 num-layers-at-start-in-bf16 num-layers-per-virtual-pipeline-stage num-query-groups
    num-speculative-tokens num-virtual-stages-per-pipeline-rank num-workers override-ckpt-iteration padded-vocab-size patch-dim
    persistent-save-interval pipeline-model-parallel-size profile-step-end profile-step-start q-lora-rank qk-head-dim
    qk-pos-emb-head-dim recompute-num-layers relative-attention-max-distance relative-attention-num-buckets replication-factor
    replication-jump rl-default-top-k rl-inference-expert-model-parallel-size rl-inference-expert-tensor-model-parallel-size
    rl-inference-pipeline-model-parallel-size rl-inference-tensor-model-parallel-size rl-max-inflight-requests rl-prompts-per-eval
    rl-rollout-bank-max-bytes rl-sequence-packing-max-sequences-per-bin rotary-base rotary-seq-len-interpolation-factor
    save-activations-interval save-dgrads-interval save-interval save-params-interval save-retain-interval
    save-tokens-per-expert-interval save-wgrads-interval seed seq-length start-eval-at-iter straggler-ctrlr-port straggler-minmax-count
    suggested-communication-unit-size tensor-model-parallel-size tensor-parallel-num-weight-shards tensorboard-log-interval
    tensorboard-queue-size tiktoken-num-special-tokens train-iters train-samples train-sync-interval v-head-dim vocab-extra-ids
    vocab-size warmup wgrad-deferral-limit yarn-original-max-position-embeddings
  ]],
  -- one number
  numbers = [[
    activation-func-clamp-value activation-offload-fraction adam-beta1 adam-beta2 adam-eps attention-dropout classes-fraction clip-grad
    data-per-class-fraction decoupled-lr decoupled-min-lr dino-freeze-last-layer dino-teacher-temp dino-warmup-teacher-temp
    dsa-indexer-k-norm-epsilon dsa-indexer-loss-coeff embedding-init-method-std end-weight-decay fault-injector-fault-delay
    fault-injector-mtti-seconds fault-injector-offset-seconds fim-fragment-rate fim-rate fim-spm-rate glu-linear-offset
    grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-entropy-term-weight grpo-kl-beta head-lr-mult hidden-dropout
    inference-dynamic-batching-buffer-size-gb inference-dynamic-batching-mamba-memory-ratio
    inference-dynamic-batching-paused-buffer-size-gb inference-dynamic-batching-prefix-caching-mamba-gb
    inference-dynamic-batching-prefix-caching-routing-alpha init-method-std initial-loss-scale inprocess-barrier-timeout
    inprocess-completion-timeout inprocess-hard-timeout inprocess-heartbeat-interval inprocess-heartbeat-timeout
    inprocess-last-call-wait inprocess-monitor-process-interval inprocess-monitor-thread-interval inprocess-progress-watchdog-interval
    inprocess-soft-timeout inprocess-termination-grace-time lion-beta1 lion-beta2 logits-load-kd-loss-alpha logits-save-top-p loss-scale
    loss-scale-window lr lr-warmup-fraction lr-warmup-init mask-factor mask-prob mhc-init-gating-factor mid-level-dataset-surplus
    min-loss-scale min-lr moe-expert-capacity-factor moe-expert-rank-capacity-factor moe-input-jitter-eps
    moe-paged-stash-buffer-size-factor-cpu moe-paged-stash-buffer-size-factor-cuda moe-router-bias-update-rate moe-router-force-biased
    moe-router-quantile-balancing-ema moe-router-topk-scaling-factor moe-z-loss-coeff mscale mscale-all-dim mtp-loss-scaling-factor
    muon-extra-scale-factor muon-momentum mup-attn-scale-power mup-base-head-dim mup-embedding-mult mup-output-mult mup-width-mult
    norm-epsilon optimizer-offload-fraction qk-clip-alpha qk-clip-threshold query-in-block-prob rl-default-temperature rl-default-top-p
    rl-generation-lag rl-importance-sampling-truncation-coef rope-scaling-factor rotary-percent rotary-scaling-factor sample-rate
    sgd-momentum short-seq-prob start-weight-decay weight-decay yarn-beta-fast yarn-beta-slow
  ]],
  -- one word
  strings = [[
    app-tag-run-name app-tag-run-version bert-load block-data-path chat-template ckpt-convert-save ckpt-pg-tensors-cache-path
    config-logger-dir data-args-path data-cache-path dist-ckpt-format dump-param-to-param-group-map embedding-path evidence-data-path
    exit-signal fault-injector-fault-probabilities fault-injector-fault-types fault-injector-ranks fim-eod-token fim-middle-token
    fim-no-prefix fim-pad-token fim-prefix-token fim-split-sample fim-suffix-token flight-recorder-dump-path fp4-quantizer-factory
    fp8-quantizer-factory heterogeneous-layers-config-encoded-json heterogeneous-layers-config-path hybrid-layer-pattern
    hybrid-override-pattern ict-load inference-shards langrl-env-config linear-attention-freq load logits-load-dir logits-save-dir
    memory-snapshot-path merge-file moe-layer-freq moe-routing-trace-path mtp-hybrid-override-pattern muon-coefficient-type
    nccl-communicator-config-path no-rope-freq non-persistent-global-ckpt-dir non-persistent-local-ckpt-dir object-storage-cache-path
    one-logger-project one-logger-run-name onnx-safe otel-service-name otel-span-groups per-dataset-sequences-path
    per-split-data-args-path phase-transition-iterations pipeline-model-parallel-layout pretrained-checkpoint
    result-rejected-tracker-filename rl-profile-dir rl-rollout-bank-dir save sft-tokenizer-prompt-format split step-batch-size-schedule
    te-precision-config-file tensorboard-dir titles-data-path tokenizer-metadata tokenizer-model tp-comm-overlap-cfg vocab-file
    wandb-entity wandb-exp-name wandb-project wandb-save-dir window-attn-skip-freq window-size yaml-cfg
  ]],
  -- words
  lists = [[
    cp-comm-type cuda-graph-modules cuda-graph-scope data-path ddp-param-name-patterns-for-fp32-local-accumulation
    gtp-remat-opt-in-modules hierarchical-context-parallel-sizes high-priority-stream-groups iterations-to-skip moe-aux-loss-coeff
    moe-router-load-balancing-type mrope-section offload-modules profile-ranks rampup-batch-size recompute-modules
    retriever-report-topk-accuracies rl-inference-parsers spec test-data-path tokenizer-special-tokens train-data-path valid-data-path
    validation-set-names
  ]],
  -- one of these
  choices = [[
    async-strategy=nvrx|mcore attention-backend=flash|fused|unfused|local|auto batch-invariant-backend=te_native|deepgemm|triton
    bert-embedder-type=megatron|huggingface ckpt-convert-format=torch|torch_dist ckpt-format=torch|torch_dist|torch_dcp|fsdp_dtensor
    ckpt-fully-parallel-load-exchange-algo=broadcast|gather_rounds|gather_object ckpt-fully-parallel-load-process-group=dp|ep_dp
    ckpt-fully-parallel-save-process-group=dp|ep_dp cross-entropy-fusion-impl=native|te
    cuda-graph-impl=none|local|transformer_engine|full_iteration
    data-parallel-sharding-strategy=no_shard|optim|optim_grads|optim_grads_params dataloader-type=single|cyclic|external
    dist-ckpt-strictness=assume_ok_unexpected|log_unexpected|log_all|raise_unexpected|raise_all|return_unexpected|return_all|ignore_all
    distributed-backend=nccl|gloo dsa-kernel-backend=none|tilelang|cudnn empty-unused-memory-level=0|1|2
    error-injection-type=correct_result|transient_error|persistent_error exp-avg-dtype=fp32|fp16|bf16|fp8
    exp-avg-sq-dtype=fp32|fp16|bf16|fp8 experimental-attention-variant=gdn|gdn2|dsa|gated_delta_net flash-attention-version=2|3|4
    fp4-format=e2m1 fp4-recipe=nvfp4|custom fp8-amax-compute-algo=most_recent|max fp8-format=e4m3|hybrid
    fp8-recipe=tensorwise|delayed|mxfp8|blockwise|custom inference-cuda-graph-scope=none|layer|block
    inference-dynamic-batching-async-sched-mode=legacy|async
    inference-dynamic-batching-cuda-graph-sizing-distribution=exponential|linear
    inference-dynamic-batching-logprobs-mode=raw_logprobs|processed_logprobs
    inference-dynamic-batching-prefix-caching-coordinator-policy=longest_prefix|first_prefix_block|load_balanced
    inference-dynamic-batching-prefix-caching-eviction-policy=ref_zero|lru inference-dynamic-batching-sampling-backend=torch|flashinfer
    inference-dynamic-batching-unified-memory-level=0|1 inference-grouped-gemm-backend=flashinfer|torch|vllm
    inference-moe-token-dispatcher-type=nccl|nvls inprocess-granularity=node|rank kitchen-attention-backend=sdpa|fa
    logits-save-dtype=fp16|bf16|fp32 lr-decay-style=constant|linear|cosine|inverse-square-root|WSD
    lr-wsd-decay-style=exponential|linear|cosine|minus_sqrt main-grads-dtype=fp32|bf16 main-params-dtype=fp32|fp16
    mamba-inference-conv-states-dtype=bf16|fp16|fp32 mamba-inference-ssm-states-dtype=bf16|fp16|fp32
    mamba-training-ssm-states-dtype=fp32|bf16 mask-type=random|row megatron-fsdp-grad-comm-dtype=fp32|fp16|bf16|auto
    megatron-fsdp-main-grads-dtype=fp32|bf16|fp16|auto megatron-fsdp-main-params-dtype=fp32|bf16|fp16|auto megatron-fsdp-version=1|2
    moe-combine-bwd-dtype=bf16|mxfp8 moe-dispatch-fwd-dtype=bf16|mxfp8 moe-flex-dispatcher-backend=deepep|hybridep|ncclep
    moe-router-dtype=fp32|fp64 moe-router-score-function=softmax|sigmoid|sqrtsoftplus moe-token-dispatcher-type=allgather|alltoall|flex
    moe-token-drop-policy=probs|position muon-fp32-matmul-prec=low|medium|high muon-scalar-optimizer=adam|lion
    muon-scale-mode=spectral|unit_rms_norm|shape_scaling muon-tp-mode=blockwise|duplicated|distributed
    no-weight-decay-cond-type=apply_wd_to_qk_layernorm non-persistent-ckpt-type=global|local|in_memory
    non-persistent-local-ckpt-algo=fully_parallel|atomic normalization=LayerNorm|RMSNorm
    optimizer=adam|sgd|muon|dist_muon|lion|soap|adaptive_muon outer-dp-sharding-strategy=no_shard|optim output-logit-dtype=bf16|fp32
    pipeline-model-parallel-comm-backend=nccl|ucc position-embedding-type=learned_absolute|rope|yarn|mrope|relative|none
    recompute-granularity=full|selective recompute-method=uniform|block refit-method=nccl|gloo|nvshmem
    rerun-mode=disabled|validate_results|report_stats rl-consumption-granularity=R|G|B rl-inference-model-unified-memory-level=0|1
    rl-kv-cache-management-mode=persist|offload|recompute rl-sequence-packing-algo=fifo|round-robin rl-submission-granularity=R|G|B
    rope-type=rope|yarn sharp-enabled-group=dp|dp_replica softmax-type=vanilla|off-by-one|learnable swin-backbone-type=tiny|base|h3
    symmetric-ar-type=two_shot|one_shot|multimem_all_reduce tiktoken-pattern=v1|v2 timing-log-level=0|1|2
    timing-log-option=max|minmax|all
    tokenizer-type=BertWordPieceLowerCase|BertWordPieceCase|GPT2BPETokenizer|SentencePieceTokenizer|GPTSentencePieceTokenizer|HuggingFaceTokenizer|Llama2Tokenizer|TikTokenizer|MultimodalTokenizer|NullTokenizer|NullMultimodalTokenizer|SFTTokenizer
    tp-comm-bootstrap-backend=nccl|mpi|gloo transformer-impl=local|transformer_engine|inference_optimized
    vision-backbone-type=vit|mit|swin vision-pretraining-type=classify|inpaint|dino weight-decay-incr-style=constant|linear|cosine
  ]],
  -- what the resolved value is called, in a log or in another program, where that is not the flag with _ for -
  destinations = [[
    apply-layernorm-1p=layernorm_zero_centered_gamma bert-no-binary-head=bert_binary_head
    ckpt-fully-parallel-save=ckpt_fully_parallel_save_deprecated cuda-graph-scope=cuda_graph_scope_deprecated
    disable-bias-linear=add_bias_linear disable-gloo-process-groups=use_gloo_process_groups
    disable-mamba-mem-eff-path=use_mamba_mem_eff_path disable-msc=disable_msc_deprecated dist-ckpt-format=dist_ckpt_format_deprecated
    fp4-format=fp4 fp8-format=fp8 inference-dynamic-batching-prefix-caching=inference_dynamic_batching_enable_prefix_caching
    microbatch-group-size-per-virtual-pipeline-stage=microbatch_group_size_per_vp_stage muon-no-split-qkv=muon_split_qkv
    no-align-grad-reduce=align_grad_reduce no-align-param-gather=align_param_gather no-barrier-with-level-1-timing=barrier_with_L1_time
    no-bias-dropout-fusion=bias_dropout_fusion no-bias-gelu-fusion=bias_gelu_fusion no-bias-swiglu-fusion=bias_swiglu_fusion
    no-check-for-nan-in-loss-and-grad=check_for_nan_in_loss_and_grad no-ckpt-fully-parallel-save=ckpt_fully_parallel_save
    no-ckpt-load-validate-sharding-integrity=ckpt_load_validate_sharding_integrity
    no-clone-scatter-output-in-embedding=clone_scatter_output_in_embedding
    no-create-attention-mask-in-dataloader=create_attention_mask_in_dataloader no-data-sharding=data_sharding
    no-dsa-indexer-rotate-activation=dsa_indexer_rotate_activation no-dsa-indexer-scoring-relu=dsa_indexer_scoring_relu
    no-flight-recorder-dump-on-timeout=flight_recorder_dump_on_timeout
    no-flight-recorder-extra-dump-on-exec=flight_recorder_extra_dump_on_exec
    no-flight-recorder-include-only-active=flight_recorder_include_only_active no-fp8-wgrad=fp8_wgrad
    no-gradient-accumulation-fusion=gradient_accumulation_fusion no-gradient-reduce-div-fusion=gradient_reduce_div_fusion
    no-initialization=perform_initialization no-log-loss-scale-to-tensorboard=log_loss_scale_to_tensorboard
    no-manual-gc-eval=manual_gc_eval no-masked-softmax-fusion=masked_softmax_fusion no-mmap-bin-files=mmap_bin_files
    no-one-logger=enable_one_logger no-overlap-p2p-communication=overlap_p2p_comm no-pad-vocab-size=pad_vocab_size
    no-pin-cpu-grads=pin_cpu_grads no-pin-cpu-params=pin_cpu_params no-position-embedding=add_position_embedding
    no-rope-fusion=apply_rope_fusion no-save-tokenizer-assets=save_tokenizer_assets no-stream-ckpt-dequant=stream_ckpt_dequant
    no-strict-fsdp-dtensor-load=strict_fsdp_dtensor_load
    no-tokenizer-sentencepiece-ignore-extra-whitespaces=tokenizer_sentencepiece_ignore_extra_whitespaces
    no-tp-comm-bulk-dgrad=tp_comm_bulk_dgrad no-tp-comm-bulk-wgrad=tp_comm_bulk_wgrad no-tp-comm-overlap-ag=tp_comm_overlap_ag
    no-tp-comm-overlap-rs=tp_comm_overlap_rs no-tp-comm-split-ag=tp_comm_split_ag no-tp-comm-split-rs=tp_comm_split_rs
    no-use-layer-wise-param-layout=use_layer_wise_param_layout
    no-use-tokenizer-model-from-checkpoint-args=use_tokenizer_model_from_checkpoint_args
    no-yarn-correction-range-round-to-int=yarn_correction_range_round_to_int norm-epsilon=layernorm_epsilon
    output-logit-dtype=logit_dtype overlap-p2p-communication-warmup-flush=overlap_p2p_comm_warmup_flush tokenizer-metadata=metadata_path
    tokenizer-special-tokens=special_tokens torch-fsdp2-no-reshard-after-forward=torch_fsdp2_reshard_after_forward
    use-dist-ckpt=use_dist_ckpt_deprecated use-mcore-models=deprecated_use_mcore_models use-nccl-ub=nccl_ub
    use-same-sampling-seed-across-dp-ranks=offset_sampling_seed_by_dp_rank
  ]],
  -- of programs beside the trainers: inference, conversion, tools
  elsewhere = [[
    access-token add-skipping algorithm allow-checkpoint-without-temporal-compression allow-cross-sample-attention allow-large-videos
    allow-missing-conv-merge-checkpoint allow-missing-slack allow-missing-sound-model-checkpoint
    allow-missing-sound-projection-checkpoint allow-missing-vision-projection-checkpoint append-eod apply-data-augment async-mode
    audio-encoder-model audio-path auto-quantize-bits auto-quantize-checkpoint auto-quantize-formats auto-quantize-method
    auto-quantize-score-size baseline basemodel-type batch-boundaries benchmark-profile binary-mask bpe-kv-cache bpe-max-buffer
    bpe-params bpe-ssm-cache budget-list budget-probs budget-type bulk-download calib-batch-size calib-dataset
    calib-dataset-path-or-name calib-max-sequence-length calib-size calib-use-random-offset checkpoint-dir ckpt class-token-len
    cluster-a100 cluster-gb200 cluster-h100 compress confidence-multiplier config config-path conv-merging coordinator-host
    coordinator-port coordinator-schedule-output-path copy-vocab-from curr-iteration current d-conv d-model data-parallel-size data_path
    dataloader-save dataloader-seed dataloader-seq-length dataset dataset-config dataset-name dataset-provider decode-only
    decoder-tp-comm-overlap direction disable-budget disable-qkv-quant disable-tqdm disable-vision-class-token distill-coeff
    distill-only distillation download-root download-vocab draft-length draft-topk drain-between-batches drop-vision-class-token dry-run
    dynamic-resolution dynamic-resolution-max-patches dynamic-resolution-min-patches dynamic-resolution-min-side
    dynamic-resolution-no-truncate eagle-config efficient-video-sampling-variant elements emb-int-list emb-per-list enable-fusions
    enable-gpt-oss enable-router encoder-ddp-overlap encoder-dp encoder-prompts encoder-tp engine-type env-config eos-id ep ep-size
    existing-jsonl export-default-te-spec export-dir export-extra-modules export-force-local-attention export-kd-cfg
    export-kd-teacher-ckpt-format export-kd-teacher-load export-kd-teacher-model-config export-kv-cache-quant export-legacy-megatron
    export-model-type export-moe-apply-probs-on-input export-offline-model export-qk-l2-norm export-quant-cfg export-real-quant-cfg
    export-te-mcore-model export-vllm-fq extra-model-path few-shots find-optimal-num-workers finetune-data-files finetune-data-split
    finetune-hf-dataset flex-hetero-ffn flex-hetero-mamba flex-hetero-moe-expert flex-strict flextron flextron-config-file force-emb
    force-mamba force-mlp force-router-skip force-system-message fraction freeze-LM freeze-ViT freeze-base-for-mtp freeze-lm
    freeze-model freeze-projection freeze-router freeze-sound-model freeze-sound-projection freeze-vision-projection freeze-vit
    frontend-replicas fsdp functional-test-cases functional-test-name functional-test-repeat functional-test-scope
    functional-test-time-limit gemm-shapes generate-output-len genfile gitlab-origin greedy ground-truth-path groundtruth-path gt-path
    hard-sample-th hf-assign-unused-tokens hf-model host image-break-token image-path image-seq-length image-size image-tag-type
    image-token-id incoming-requests-duration incoming-requests-per-sec incoming-requests-per-step inference-ckpt-non-strict
    inference-repeat-n input input-format input-image input-image-path input-path input-pipeline-parallel input-prompts-json
    is-flex-eval iteration json-keys keep-jsonl keep-newlines keep-sequential-samples kitchen-config-file kitchen-recipe-number label
    lang language-model-checkpoint language-model-type last layer-ranking-list layers linear-scaler-end linear-scaler-start list llm-cp
    llm-dp llm-ep llm-expt-tp llm-offset llm-only llm-pp llm-tp load-dir loader loader-transformer-impl local_rank log-budgets
    log-model-act-norms log-model-grad-norms loss-alpha lower-bound lr-data-range-end lr-data-range-start lr-mult-router mamba-d-state
    mamba-int-list mamba-per-list mamba-version mamba2-head-dim mamba2-n-groups masked-tiling-dynamic-resolution
    match-tiling-dynamic-resolution max-batch-size max-documents max-num-tiles max-queue-size mcore-model megatron-dir megatron-model
    megatron-path mem-batch-size mem-infer-seq-len memory-profile memory-profile-path metadata-path mimo-encoder-prefetch
    mimo-encoder-prefetch-debug mimo-encoder-prefetch-depth min-samples mix-hidden-states mlp-int-list mlp-per-list mmlu-batch-size
    mmlu-dataset mock-dataset-size model model-name model-provider model-type modelopt-enabled moe-expert-int-list moe-expert-per-list
    moe-routing-trace-max-inference-steps multimodal n-values names no-attn-skip no-calculate-per-token-loss no-checking
    no-record-throughput normalize-router-logits num-benchmark-iterations num-benchmark-warmup num-documents num-frames num-gpt-layers
    num-input-tokens num-iters num-layers-per-pp-rank num-moe-experts num-output-tokens num-partitions num-samples
    num-samples-per-partition num-tokens-from-file num-tokens-to-generate num-tokens-to-prompt num-warmup-iters
    offline-distillation-data online-evaluation-config only-keep-samples-with-img optimize-broadcast original-model-sample-prob osl
    out-path out-seq-length output output-dir output-every-n-results output-format output-json output-path output-pipeline-parallel
    output-prefix output-request-events output-root override-selected-budget package packing-buffer-size packing-knapsack-algorithm
    packing-seq-length pad-length pad-token-id pad-vocab-size param-budget-target parent-team parsers partition-id partitions pattern
    pixel-shuffle platform port pp pr prefill-chunk-size prefixes prepare-cache-world-size pretrained-model-name pretrained-model-path
    prompt prompt-file prompt-file-num-truncate prompt-path prompts prompts-path prune-export-config prune-intermediate-ckpt
    qad-train-target radio-cpe-aspect-ratio-select radio-disable-cpe radio-force-cpe-eval-mode radio-force-eval-mode
    radio-interpolate-only-cpe recipe recommend-tolerances recompute-granularity-vision recompute-method-vision recompute-sound
    recompute-sound-projection recompute-vision recompute-vision-num-layers recompute-vision-projection references refit-mode
    relax-sender-check relax-thinking-trace-check reset-iterations result-files results results-dir return-log-probs router-beta
    router-gbs router-inter-dim router-state-dir router-std sample-input-file sample-output-file save-dir save-ground-truth-path
    save-path saver saver-transformer-impl schedule-file separate-video-embedder server-log-dir server-url skip-allreduce skip-alltoall
    skip-gemm skip-generate skip-num-attn-layer-constraint skip-prompt-log-probs skip-reducescatter skip-sendrecv
    skip-total-layer-constraint slice soft-mask sound-batch-split sound-clip-duration sound-embedding-size sound-min-duration
    sound-model-type sound-pad-to-clip-duration sound-target-rate special-tokens split-sentences start-step steps stop-words stream
    suspend-resume-interval suspend-timeout sync-expert-weight-amax target-expert-parallel-size target-pipeline-parallel-size
    target-pp-size target-tensor-parallel-size target-tp-size task tau-decay tau-init team temperature tensor-parallel
    tensor-parallel-size termination-id throughput-check-only thumbnail-area-threshold tokenizer-keep-history-thinking
    tokenizer-prompt-format top top-k top-n-logprobs top_k top_p total total-seq-length tp tp-size true-vocab-size unfreeze-router
    use-area-weighted-aspect-ratio use-coordinator use-flashinfer-fused-rope use-loss-scaling use-mcore-inference
    use-new-dataloader-path use-packed-sequence use-te use-thumbnail use-tile-tags use-tiling use-vision-backbone-fp8-arch verbose
    version video-aug-scale-frames-up video-aug-scale-resolution-only video-aug-scale-resolution-up video-default-fps
    video-frame-temporal-jitter video-maintain-aspect-ratio video-max-num-frames video-min-num-frames video-prompt-version
    video-target-img-size video-target-num-patches video-temporal-patch-size vision-model-type vision-projection-type
    vit-dummy-head-count weight-only workers workers-to-check workspace-root
  ]],
}
