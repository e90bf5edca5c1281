/* SPDX-License-Identifier: Apache-2.0 */
/*
** training.h: what of a training recipe decides bytes and seconds. Filled by stdlib from the request.
*/
#ifndef PP_TRAINING_H
#define PP_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/loss.h"

typedef enum { PP_BF16, PP_FP8, PP_FP16, PP_FP32 } pp_precision;  /* of the matrix products */

/* Recompute by module: what is not stored but computed again at the start of I (or B). `full` implies all. */
typedef struct {
  bool full;              /* whole layers: only a layer's input is stored */
  bool core_attention;    /* "selective": softmax and dropout; with fused attention only an output that it keeps beside its consumer's */
  bool norm;              /* outputs of norms */
  bool mla_up_projection; /* what MLA expands from its latents */
  bool activation;        /* SwiGLU or GELU output: recomputed from its inputs ("swiglu", "gelu", "activation") */
  bool moe;               /* the whole expert MLP, dispatch included */
} pp_recompute;

typedef struct {
  pp_precision precision;
  int64_t sequence_length, micro_batch;  /* tokens of a microbatch = sequence_length × micro_batch */
  double document_length;   /* packed sequences: Σ length² / Σ length of the documents in one, within which attention stays; 0: one document */
  double parameter_bytes;   /* stored weights, per parameter (bf16: 2) */
  double gradient_bytes;    /* accumulated gradients (fp32: 4, bf16: 2) */
  double master_bytes;      /* fp32 master weights (4), 0 when the stored weights are the master */
  double moment_bytes;      /* both Adam moments together (fp32: 8, bf16: 4) */
  double frozen;            /* share of the parameters that do not train (LoRA: all but the adapters): no gradient, no state, no W; 0 … 1 */
  bool shard_optimizer;     /* ZeRO-1 / distributed optimizer: master and moments over the data-parallel group */
  double optimizer_offload; /* share of master and moments that lies in host memory and is updated there, 0 … 1 */
  bool shard_gradients, shard_parameters;  /* ZeRO-2, ZeRO-3 (FSDP): sharding.h says what of it holds in a pipeline */
  double sharded_gradient_bytes;  /* where gradients are sharded, of one as it is reduced and accumulated; 0: as gradient_bytes */
  double gathered_bytes;    /* of a sharded parameter as it is gathered (bf16: 2, fp8: 1); 0: 2 */
  bool shard_master;        /* sharded parameters are the master weights themselves, cast as they are gathered (PyTorch's FSDP) */
  bool shard_in_place;      /* gathers and reductions work in the buffers that compute uses (Megatron-FSDP); else there are copies between */
  bool reshard;             /* in a pipeline too, parameters are dropped after use and gathered again, for backward and for each microbatch */
  int64_t replicas;         /* HSDP: groups that each shard a whole state between their GPUs; 0 or 1: one */
  bool allreduce_gradients; /* although the optimizer is sharded, each rank gets all reduced gradients, not only those of its part */
  double reduced_bytes;     /* of a gradient as it is sent, if not gradient_bytes: it is cast before and after; 0: gradient_bytes */
  bool sequence_parallel;   /* with TP: norms and dropouts split over TP too */
  bool scatter_messages;    /* without that, what stages hand over is cut over TP on the way too, and gathered where it arrives (Narayanan et al.
                            ** 2104.04473 §4.1) */
  double bucket, bucket_per_rank;  /* parameters whose gradients are reduced at once: the larger of the one, and the other for each rank; 0: all.
                            ** As many are gathered at once (Megatron-LM core/distributed/distributed_data_parallel.py) */
  double data_overlap;      /* share of one microbatch's backward behind which gradients are reduced, and of its forward behind which
                            ** parameters are gathered, 0 … 1 */
  bool overlap_alone;       /* without a pipeline the all-to-all of a microbatch's forward runs beside the backward of the one before, and the
                            ** other way round, unless layers or their experts are recomputed whole: Megatron-LM core/pipeline_parallel/
                            ** combined_1f1b.py, combined_1f1b_schedule_for_no_pipelining; transformer_config.py refuses that recompute */
  double tensor_overlap;    /* share of TP's collectives that run beside the products around them (Transformer Engine's userbuffers), 0 … 1 */
  bool fused_attention;     /* flash attention: no s × s matrix is stored */
  pp_loss loss;             /* how the cross entropy is computed */
  bool unfused_norm;        /* a norm out of a framework's own operations: keeps an fp32 copy of its input and its output before the weight */
  bool unfused_rope;        /* rotary embedding in fp32: keeps a copy of queries and keys */
  bool unfused_activation;  /* SwiGLU in two kernels: keeps the gate's activation too */
  bool unfused_experts;     /* one product an expert, one after the other, in place of grouped ones */
  bool unfused_optimizer;   /* an update of PyTorch's operations on lists of tensors, with a temporary as large as a moment */
  bool dropout;             /* one-byte masks after attention, MLP and embedding, and on an unfused softmax */
  double activation_bytes;  /* of a stored linear input (bf16: 2; fp8 cache: 1), and of the output gradients that W reads */
  double attention_output_bytes;  /* of the attention output, which its own backward reads too (bf16: 2; fp8: DeepSeek-V3's 12 bits 1.5,
                                     Transformer Engine's bf16 beside the projection's fp8 3) */
  double activation_input_bytes;  /* of what an expert's SwiGLU or GELU reads (bf16: 2; fp8 cache: 1) */
  double weight_gradient_bytes;   /* of a weight's gradient before it is added to the accumulated one (Megatron with TE: 2; in place: 0) */
  bool weight_gradients_pass;     /* such a temporary is dropped once it is added, where Transformer Engine keeps one for each shape of weights */
  double dispatch_bytes;    /* per element of a dispatched token (fp8: 1 plus scales) */
  double combine_bytes;     /* per element of a combined token (bf16: 2) */
  double expert_imbalance;  /* tokens on the busiest expert rank / mean, ≥ 1 */
  int64_t max_domains;      /* node-limited routing: scale-up domains that one token may reach (DeepSeek-V3: topk_group 4); 0: no limit */
  bool rerun_per_weight;    /* where backward is split, W computes a recomputed layer again for each of its weights (PyTorch's autograd) */
  pp_recompute recompute;
} pp_training;

/* Fills what follows from precision and activation_bytes where a recipe says no more: the sizes from attention_output_bytes to combine_bytes. */
void pp_training_defaults(pp_training *training);

/* Tokens within which attention stays: of a document, or of the sequence. */
double pp_training_attended(const pp_training *training);

#endif
