/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.h: the shape of a transformer: its parameters and its floating-point operations, counted exactly.
** A model is a sequence of blocks: embedding, `layers` decoder layers (dense, MoE or of a further kind), head (final norm, output weights,
** loss), and MTP modules. Everything later (memory, time) is a sum over the blocks that a stage holds, so cost and bytes are computed once per
** kind. An MTP module is one more layer of the kind of the last one, with its norms, its projection and its own pass through the head.
*/
#ifndef PP_MODEL_H
#define PP_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/error.h"

enum { PP_MAX_LAYERS = 1024 };

/* PP_BLOCK_FURTHER and those behind it: layers whose sizes are their own (pp_model.further). */
enum { PP_MOST_FURTHER = 11 };
typedef enum {
  PP_BLOCK_EMBEDDING, PP_BLOCK_DENSE, PP_BLOCK_MOE, PP_BLOCK_HEAD, PP_BLOCK_MTP, PP_BLOCK_FURTHER,
  PP_BLOCKS = PP_BLOCK_FURTHER + PP_MOST_FURTHER
} pp_block;

/*
** What mixes tokens in a layer. GQA covers MHA (kv_heads = heads) and MQA (1). Those behind NONE keep a state of fixed size in place of keys
** and values, CONV the last few tokens, COMPRESSED an entry for several tokens; mixers.h says what they hold.
*/
typedef enum {
  PP_ATTENTION_GQA, PP_ATTENTION_MLA, PP_ATTENTION_NONE, PP_ATTENTION_GATED_DELTA, PP_ATTENTION_KIMI_DELTA, PP_ATTENTION_MAMBA2,
  PP_ATTENTION_LIGHTNING, PP_ATTENTION_CONV, PP_ATTENTION_MAMBA1, PP_ATTENTION_COMPRESSED
} pp_attention;
typedef enum { PP_QK_NORM_NONE, PP_QK_NORM_HEAD, PP_QK_NORM_FULL } pp_qk_norm;  /* HEAD: 2·d weights; FULL: d·(heads + kv_heads) */

/* What a layer holds. All sizes in elements. What a family does not have is 0 or false. A macro: pp_model has these fields as its own. */
#define PP_LAYER_FIELDS                                                                                                                  \
  /* attention */                                                                                                                        \
  pp_attention attention;                                                                                                                \
  int64_t heads, kv_heads, head_dim;                                                                                                     \
  int64_t q_lora_rank, kv_lora_rank, qk_nope_dim, qk_rope_dim;  /* MLA; q_lora_rank 0: one full query projection */                      \
  int64_t v_dim;               /* of a head's values: MLA; GQA where it is not head_dim */                                               \
  int64_t index_heads, index_dim, index_topk;  /* scores of the tokens that a query attends to: MLA (DeepSeek-V3.2), GQA (MiniMax-M3) */    \
  int64_t window, chunk;       /* tokens that a query attends to at most, itself among them: the last so many, or those of its own chunk of so      \
                                  many (Llama 4); 0: all before it */                                                                    \
  int64_t compression;         /* COMPRESSED: tokens of an entry beside the window; 0: there are none */                                   \
  int64_t output_groups, output_rank;  /* COMPRESSED: groups of heads, each projected to so many columns before the output */               \
  int64_t output_gate;         /* columns of a product that gates attention's output: heads, or their width */                           \
  bool shared_kv;              /* values are the keys (Gemma 4): no product of their own */                                              \
  bool qkv_bias, output_bias;                                                                                                            \
  int64_t attention_sinks;     /* learned scalars per layer (gpt-oss: one per head) */                                                   \
  pp_qk_norm qk_norm;                                                                                                                    \
  /* mixers with a state: keys and values of a head, so many heads of each, and the taps of a convolution before them */                 \
  int64_t key_heads, key_dim, value_heads, value_dim, conv_kernel;                                                                       \
  int64_t step_rank;           /* Mamba-1: of the product that gives its steps */                                                       \
  bool conv_bias, mixer_norm;  /* mixer_norm: Mamba-2's norm over the whole output; those of Mamba-1's steps, B and C */                 \
  /* feed-forward of dense layers; 0: none */                                                                                            \
  int64_t ffn;                                                                                                                           \
  bool gated;                  /* SwiGLU, GeGLU: three matrices instead of two; experts follow it */                                     \
  bool mlp_bias;               /* of dense layers */                                                                                     \
  /* mixture of experts */                                                                                                               \
  int64_t experts, experts_per_token, expert_ffn;                                                                                        \
  int64_t zero_experts;        /* beside those, ones that a router may choose and that compute nothing (LongCat-Flash) */               \
  int64_t expert_hidden;       /* width that routed experts read and write, where it is not hidden: projections lead there and back */   \
  int64_t shared_ffn;          /* width of all shared experts together */                                                                \
  bool shared_gate;            /* Qwen2-MoE: one gate vector for the shared expert */                                                    \
  bool router_correction_bias; /* DeepSeek-V3: one non-trained bias per expert that checkpoints hold */                                  \
  bool router_bias, expert_bias;                                                                                                         \
  /* norms */                                                                                                                            \
  int64_t norms_per_layer;     /* 2 for most, 4 for Gemma-2/3, 1 for parallel blocks with a shared norm; 0: norms, the final one too,    \
                                  have no weights (OLMo) */                                                                              \
  bool norm_bias;              /* LayerNorm has weight and bias, RMSNorm only weight */                                                  \
  int64_t scales;              /* further weights that multiply element by element, on every TP rank */

typedef struct {
  PP_LAYER_FIELDS
} pp_layer;

typedef struct {
  int64_t layers, hidden, vocab;
  union {   /* of dense and MoE layers: by name, or all together */
    struct { PP_LAYER_FIELDS };
    pp_layer layer;
  };
  int64_t streams;             /* of width hidden, which layers read and write in place of one (DeepSeek-V4); 0: 1 */
  /* ends */
  bool embedding_norm;         /* one more norm behind the embedding (BLOOM) */
  int64_t learned_positions;   /* rows of a learned position table, 0 with rotary positions */
  bool tied_embeddings;
  bool head_bias;
  int64_t mtp_layers;          /* multi-token-prediction modules (DeepSeek-V3: 1) */
  int64_t tower;               /* parameters of a tower of images before the embedding: on the first stage, whole on each TP rank */
  bool tower_frozen;           /* it does not train: no gradient, no state */
  /* which decoder layers are MoE, and of which kind each is: 0, or 1 more than its place in `further` */
  bool moe[PP_MAX_LAYERS];
  uint8_t kind[PP_MAX_LAYERS];
  int kinds;
  /* beside: 0, or 1 more than the place of a kind that each layer of this one holds too: a second layer that is one with it (LongCat-Flash), or,
  ** without norms, a mixer that reads what this layer's attention reads (Falcon-H1). That kind has no experts and nothing beside it. */
  struct { pp_layer layer; bool moe; uint8_t beside; } further[PP_MOST_FURTHER];
} pp_model;

/* The block that a decoder layer is, from 0. */
pp_block pp_model_block_of(const pp_model *model, int64_t layer);
pp_block pp_model_last_block(const pp_model *model);
bool pp_model_block_is_moe(const pp_model *model, pp_block block);
/* Is it a decoder layer, and does the model have that kind? DENSE and MOE only where `layers` has them. */
bool pp_model_has_layers_of(const pp_model *model, pp_block block);
/* The block that each layer of a block's kind holds too, or PP_BLOCKS. */
pp_block pp_model_beside(const pp_model *model, pp_block block);
/* The model as if all its layers were of a block's kind, for what asks about one layer: the model, or a changed copy in `room`. */
const pp_model *pp_model_as(const pp_model *model, pp_block block, pp_model *room);
/* What a routed expert reads and writes. */
int64_t pp_model_expert_hidden(const pp_model *model);
/* What passes from layer to layer: hidden, for each of its streams. */
int64_t pp_model_stream_width(const pp_model *model);
/* Columns of the product that tells how a layer's part reads and writes streams; 0 where there is one. */
int64_t pp_model_stream_columns(const pp_model *model);
/* Experts of a token that compute: where some do not, as many as a router that spreads its choices evenly gives. */
double pp_model_experts_per_token(const pp_model *model);

/*
** Parameters of one block by how they are spread: `tensor` over TP, `replicated` on every TP rank, `expert` over EP × expert TP.
** EMBEDDING and HEAD both show tied weights, since a stage with either needs them; a stage that holds both ends holds them once.
** MTP is one module, without the embedding and head that it shares with the main model. A tower is in none.
*/
typedef struct {
  int64_t tensor, replicated, expert;
} pp_block_parameters;

/*
** Forward floating-point operations per token of one block (a multiply-add is 2); backward is twice as much, half for I, half for W.
** MTP is one module with its logits.
*/
typedef struct {
  double linear;     /* matrix products with dense weights: attention projections, dense MLP, shared experts, vocabulary */
  double expert;     /* routed experts: pp_model_experts_per_token of them */
  double attention;  /* core attention, causal (half of the mask), at the given sequence length, or a mixer's recurrence; it has no W */
  double router;     /* hidden × experts: work of the GPU that model FLOPs do not count */
} pp_block_flops;

/*
** The dense products of a layer's forward: out[tokens, n] = in[tokens, k] · weight. TP splits columns (n) or rows (k) of the weights, or
** repeats the product on each of its ranks. Routed experts, the router and output weights are apart. Their 2·n·k are pp_block_flops.linear,
** but for the norms of latents and of MTP, which that counts.
*/
typedef enum { PP_SPLIT_NOTHING, PP_SPLIT_COLUMNS, PP_SPLIT_ROWS } pp_product_split;

typedef struct {
  int64_t n, k;
  pp_product_split split;
} pp_product;

enum { PP_MOST_PRODUCTS = 16 };

typedef struct {
  int64_t total;                     /* main model without MTP; tied output weights counted once; router_correction_bias included */
  int64_t active;                    /* per token, embedding and head both counted (Qwen, Mixtral convention); with zero_experts on average */
  int64_t active_without_embedding;  /* without the input embedding (DeepSeek, gpt-oss convention); tied weights counted once, as head */
  int64_t tower;                     /* as the model has it; in none of the sums above */
  int64_t mtp;                       /* parameters of the MTP modules, without shared embedding and head */
  int64_t adapters;                  /* of adapters of rank 1 beside every linear weight of attention and feed-forward, experts too: n + k each
                                     ** (Hu et al., https://arxiv.org/abs/2106.09685, section 4.1) */
} pp_parameter_totals;

/*
** PP_INVALID with the field in error->field and its nearest legal value, if there is one, when a size is missing, negative, implausibly
** large or contradictory (kv_heads must divide heads, ...). All functions below want a model that passed it.
*/
pp_status pp_model_check(const pp_model *model, pp_error *error);

void pp_model_block_parameters(const pp_model *model, pp_block_parameters blocks[PP_BLOCKS]);
/* The same without what layers hold of a kind beside theirs. */
void pp_model_kind_parameters(const pp_model *model, pp_block_parameters blocks[PP_BLOCKS]);
/* Of a decoder layer, without a kind beside its own, or PP_BLOCK_MTP; of other blocks none. Returns how many. */
int pp_model_block_products(const pp_model *model, pp_block block, pp_product out[PP_MOST_PRODUCTS]);

/* Attention is within `length` tokens: a sequence, or a document of one (pp_training_attended). */
void pp_model_block_flops(const pp_model *model, double length, pp_block_flops blocks[PP_BLOCKS]);
void pp_model_kind_flops(const pp_model *model, double length, pp_block_flops blocks[PP_BLOCKS]);   /* as pp_model_kind_parameters */
pp_parameter_totals pp_model_parameters(const pp_model *model);

/*
** Model FLOPs per token of a training step (forward + backward, no recompute), MTP included: the numerator of MFU. Counts what
** Megatron-LM's num_floating_point_operations counts (megatron/training/training.py), so that utilisations compare: routed experts by
** experts_per_token, no router, vocabulary once more per MTP module; attention of packed sequences within each document. Where a layer has a
** window it counts what the window leaves, which that function does not.
*/
double pp_model_flops_per_token(const pp_model *model, double length);

#endif
