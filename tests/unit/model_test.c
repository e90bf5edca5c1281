/* SPDX-License-Identifier: Apache-2.0 */
/*
** model.c: exact parameters and FLOPs.
** Totals of shapes whose config.json is public are tested in tests/lua/hf_config_spec.lua too; here every family stands as a shape.
*/
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/model.h"

static void all_moe_from(pp_model *model, int first) {
  for (int i = first; i < (int)model->layers; i++) model->moe[i] = true;
}

/* Llama, Mistral, Phi-3, Qwen3 …: gated, two RMSNorms, rotary positions. */
static pp_model plain(int64_t layers, int64_t hidden, int64_t vocab, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t ffn) {
  return (pp_model){ .layers = layers, .hidden = hidden, .vocab = vocab, .heads = heads, .kv_heads = kv_heads, .head_dim = head_dim,
                     .ffn = ffn, .gated = true, .norms_per_layer = 2 };
}

static pp_model mixture(pp_model model, int64_t experts, int64_t top, int64_t expert_ffn, int64_t shared_ffn, int first_moe) {
  model.experts = experts;
  model.experts_per_token = top;
  model.expert_ffn = expert_ffn;
  model.shared_ffn = shared_ffn;
  all_moe_from(&model, first_moe);
  return model;
}

static pp_model mla(pp_model model, int64_t q_lora_rank) {
  model.attention = PP_ATTENTION_MLA;
  model.q_lora_rank = q_lora_rank;
  model.kv_lora_rank = 512;
  model.qk_nope_dim = 128;
  model.qk_rope_dim = 64;
  model.v_dim = 128;
  return model;
}

static pp_model llama_3_8b(void) { return plain(32, 4096, 128256, 32, 8, 128, 14336); }
static pp_model llama_3_70b(void) { return plain(80, 8192, 128256, 64, 8, 128, 28672); }
static pp_model llama_3_405b(void) { return plain(126, 16384, 128256, 128, 8, 128, 53248); }

static pp_model mixtral_8x7b(void) { return mixture(plain(32, 4096, 32000, 32, 8, 128, 0), 8, 2, 14336, 0, 0); }

static pp_model deepseek_v3(void) {
  pp_model model = mixture(mla(plain(61, 7168, 129280, 128, 128, 0, 18432), 1536), 256, 8, 2048, 2048, 3);
  model.router_correction_bias = true;
  model.mtp_layers = 1;
  return model;
}

static pp_model qwen3_moe(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t experts, int64_t expert_ffn) {
  pp_model model = mixture(plain(layers, hidden, 151936, heads, kv_heads, 128, 0), experts, 8, expert_ffn, 0, 0);
  model.qk_norm = PP_QK_NORM_HEAD;
  return model;
}

static pp_model gpt_oss(int64_t layers, int64_t experts) {
  pp_model model = mixture(plain(layers, 2880, 201088, 64, 8, 64, 0), experts, 4, 2880, 0, 0);
  model.qkv_bias = model.output_bias = model.router_bias = model.expert_bias = true;
  model.attention_sinks = 64;
  return model;
}

/* GPT-2 and what followed it: plain MLP, LayerNorm, biases everywhere. */
static pp_model with_biases(pp_model model) {
  model.gated = false;
  model.qkv_bias = model.output_bias = model.mlp_bias = model.norm_bias = true;
  return model;
}

static pp_model gpt2(int64_t layers, int64_t hidden, int64_t heads) {
  pp_model model = with_biases(plain(layers, hidden, 50257, heads, heads, 64, 4 * hidden));
  model.learned_positions = 1024;
  model.tied_embeddings = true;
  return model;
}

static pp_model one_norm(pp_model model) {
  model.norms_per_layer = 1;
  model.head_bias = true;
  return model;
}

static pp_model gpt_j(void) {
  pp_model model = one_norm(with_biases(plain(28, 4096, 50400, 16, 16, 256, 16384)));
  model.qkv_bias = model.output_bias = false;
  return model;
}

static pp_model tied(pp_model model) {
  model.tied_embeddings = true;
  return model;
}

static pp_model gemma_2(int64_t layers, int64_t hidden, int64_t heads, int64_t kv_heads, int64_t head_dim, int64_t ffn) {
  pp_model model = tied(plain(layers, hidden, 256000, heads, kv_heads, head_dim, ffn));
  model.norms_per_layer = 4;
  return model;
}

static pp_model qk_norm(pp_model model, pp_qk_norm kind) {
  model.qk_norm = kind;
  return model;
}

static pp_model qkv_bias(pp_model model) {
  model.qkv_bias = true;
  return model;
}

static pp_model correction_bias(pp_model model) {
  model.router_correction_bias = true;
  return model;
}

static pp_model shared_gate(pp_model model) {
  model.shared_gate = true;
  return model;
}

/* Totals of the main model as the models' checkpoints hold them (sizes: their config.json; totals cross-checked with the model cards:
** meta-llama/llama-models, deepseek-ai/DeepSeek-V3, openai/gpt-oss, zai-org/GLM-4.5, Qwen3, MoonshotAI/Kimi-K2 READMEs). */
static void totals_are_those_of_the_checkpoints(void **state) {
  (void)state;
  const struct {
    const char *name;
    pp_model model;
    int64_t total;
  } cases[] = {
    { "llama-2-7b", plain(32, 4096, 32000, 32, 32, 128, 11008), 6738415616 },
    { "llama-2-70b", plain(80, 8192, 32000, 64, 8, 128, 28672), 68976648192 },
    { "llama-3.1-8b", llama_3_8b(), 8030261248 },
    { "llama-3.1-70b", llama_3_70b(), 70553706496 },
    { "llama-3.1-405b", llama_3_405b(), 405853388800 },
    { "mixtral-8x7b", mixtral_8x7b(), 46702792704 },
    { "mixtral-8x22b", mixture(plain(56, 6144, 32000, 48, 8, 128, 0), 8, 2, 16384, 0, 0), 140620634112 },
    { "deepseek-v3", deepseek_v3(), 671026419200 },
    { "deepseek-v2-lite", mixture(mla(plain(27, 2048, 102400, 16, 16, 0, 10944), 0), 64, 6, 1408, 2816, 1), 15706484224 },
    { "deepseek-moe-16b", mixture(plain(28, 2048, 102400, 16, 16, 128, 10944), 64, 6, 1408, 2816, 1), 16375728128 },
    { "kimi-k2", correction_bias(mixture(mla(plain(61, 7168, 163840, 64, 64, 0, 18432), 1536), 384, 8, 2048, 2048, 1)), 1026408232448 },
    { "qwen3-0.6b", tied(qk_norm(plain(28, 1024, 151936, 16, 8, 128, 3072), PP_QK_NORM_HEAD)), 596049920 },
    { "qwen3-8b", qk_norm(plain(36, 4096, 151936, 32, 8, 128, 12288), PP_QK_NORM_HEAD), 8190735360 },
    { "qwen3-32b", qk_norm(plain(64, 5120, 151936, 64, 8, 128, 25600), PP_QK_NORM_HEAD), 32762123264 },
    { "qwen3-30b-a3b", qwen3_moe(48, 2048, 32, 4, 128, 768), 30532122624 },
    { "qwen3-235b-a22b", qwen3_moe(94, 4096, 64, 4, 128, 1536), 235093634560 },
    { "qwen3-coder-480b-a35b", qwen3_moe(62, 6144, 96, 8, 160, 2560), 480154875392 },
    { "qwen1.5-moe-a2.7b", shared_gate(qkv_bias(mixture(plain(24, 2048, 151936, 16, 16, 128, 0), 60, 4, 1408, 5632, 0))), 14315784192 },
    { "gpt-oss-120b", gpt_oss(36, 128), 116829156672 },
    { "gpt-oss-20b", gpt_oss(24, 32), 20914757184 },
    { "glm-4.5", correction_bias(qk_norm(qkv_bias(mixture(plain(92, 5120, 151552, 96, 8, 128, 12288), 160, 8, 1536, 1536, 3)),
                                         PP_QK_NORM_HEAD)), 352797829024 },
    { "glm-4.5-air", correction_bias(qkv_bias(mixture(plain(46, 4096, 151552, 96, 8, 128, 10944), 128, 8, 1408, 1408, 1))), 106852251264 },
    { "minimax-m2.5", correction_bias(qk_norm(mixture(plain(62, 3072, 200064, 48, 8, 128, 0), 256, 8, 1536, 0, 0), PP_QK_NORM_FULL)),
      228689764864 },
    { "gpt2", gpt2(12, 768, 12), 124439808 },
    { "gpt2-medium", gpt2(24, 1024, 16), 354823168 },
    { "gpt-j", gpt_j(), 6050882784 },
    { "phi-2", one_norm(with_biases(plain(32, 2560, 51200, 32, 32, 80, 10240))), 2779683840 },
    { "phi-4-mini", tied(plain(32, 3072, 200064, 24, 8, 128, 8192)), 3836021760 },
    { "gemma-2-9b", gemma_2(42, 3584, 16, 8, 256, 14336), 9241705984 },
    { "gemma-2-27b", gemma_2(46, 4608, 32, 16, 128, 36864), 27227128320 },
    { "starcoder2-7b", tied(with_biases(plain(32, 4608, 49152, 36, 4, 128, 18432))), 7173923840 },
    { "olmo-2-32b", qk_norm(plain(64, 5120, 100352, 40, 8, 128, 27648), PP_QK_NORM_FULL), 32234279936 },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pp_error error = { 0 };
    assert_int_equal(pp_model_check(&cases[i].model, &error), PP_OK);
    const int64_t total = pp_model_parameters(&cases[i].model).total;
    if (total != cases[i].total) print_error("%s: %" PRId64 ", expected %" PRId64 "\n", cases[i].name, total, cases[i].total);
    assert_true(total == cases[i].total);
  }
}

/* In billions, to the digits that the sources print. */
static void expect_billions(int64_t parameters, double billions, double precision) {
  if (fabs((double)parameters / 1e9 - billions) > precision / 2)
    print_error("%.4f billion, expected %.4f\n", (double)parameters / 1e9, billions);
  assert_true(fabs((double)parameters / 1e9 - billions) <= precision / 2);
}

/* Sources: gpt-oss model card (5.13 B, 3.61 B active: no embedding), DeepSeek-V3 report (37 B), Qwen3 technical report's counts with
** embeddings (22.19 B, 3.35 B), Mistral's announcement (12.9 B active of 46.7 B). */
static void active_parameters_come_in_both_conventions(void **state) {
  (void)state;
  pp_model model = gpt_oss(36, 128);
  expect_billions(pp_model_parameters(&model).active_without_embedding, 5.13, 0.01);
  expect_billions(pp_model_parameters(&model).active, 5.712, 0.001);
  model = gpt_oss(24, 32);
  expect_billions(pp_model_parameters(&model).active_without_embedding, 3.61, 0.01);
  model = deepseek_v3();
  expect_billions(pp_model_parameters(&model).active_without_embedding, 37, 1);
  expect_billions(pp_model_parameters(&model).active, 37.55, 0.01);
  model = qwen3_moe(94, 4096, 64, 4, 128, 1536);
  expect_billions(pp_model_parameters(&model).active, 22.19, 0.01);
  model = qwen3_moe(48, 2048, 32, 4, 128, 768);
  expect_billions(pp_model_parameters(&model).active, 3.35, 0.01);
  model = mixtral_8x7b();
  expect_billions(pp_model_parameters(&model).active, 12.88, 0.01);
}

static void a_dense_model_uses_all_its_parameters(void **state) {
  pp_model model = llama_3_8b();
  pp_parameter_totals totals = pp_model_parameters(&model);
  (void)state;
  assert_true(totals.active == totals.total);
  assert_true(totals.total - totals.active_without_embedding == 128256 * 4096);
  model.tied_embeddings = true;  /* the table is the head's then, counted once */
  totals = pp_model_parameters(&model);
  assert_true(totals.active_without_embedding == totals.total);
}

/* DeepSeek-V3's README: 685 B on disk = 671 B + 14 B of MTP, of which embedding and head copies are 1.85 B: 11.61 B of its own. */
static void the_mtp_module_is_counted_apart_without_what_it_shares(void **state) {
  const pp_model model = deepseek_v3();
  const int64_t mtp = pp_model_parameters(&model).mtp;
  (void)state;
  expect_billions(mtp, 11.61, 0.01);
  expect_billions(mtp + 2 * (int64_t)129280 * 7168, 13.46, 0.01);
}

/* Megatron-LM, multi_token_prediction.py: beside its layer a module has two norms, a norm at its end, and a column-parallel projection of 2h to h. */
static void the_projection_of_an_mtp_module_is_split_over_tensor_ranks(void **state) {
  const pp_model model = deepseek_v3();
  pp_block_parameters blocks[PP_BLOCKS];
  (void)state;
  pp_model_block_parameters(&model, blocks);
  assert_int_equal(blocks[PP_BLOCK_MTP].tensor - blocks[PP_BLOCK_MOE].tensor, 2 * 7168 * 7168);
  assert_int_equal(blocks[PP_BLOCK_MTP].replicated - blocks[PP_BLOCK_MOE].replicated, 3 * 7168);
}

static void blocks_add_up_to_the_total(void **state) {
  const pp_model model = deepseek_v3();
  pp_block_parameters blocks[PP_BLOCKS];
  const int count[PP_BLOCKS] = { 1, 3, 58, 1, 0 };
  int64_t sum = 0;
  (void)state;
  pp_model_block_parameters(&model, blocks);
  for (int i = 0; i < PP_BLOCKS; i++) sum += count[i] * (blocks[i].tensor + blocks[i].replicated + blocks[i].expert);
  assert_true(sum == pp_model_parameters(&model).total);
  /* 256 experts of 3 × 7168 × 2048 */
  assert_true(blocks[PP_BLOCK_MOE].expert == (int64_t)256 * 3 * 7168 * 2048);
}

/* Training FLOPs per token, values of Megatron-LM's num_floating_point_operations (megatron/training/training.py, commit d98e8a6) executed
** for these shapes; seven digits. Megatron-Bridge's published table agrees: DeepSeek-V3 1635 TFLOP/s at 6288 tokens/s = 2.600e11. */
static void flops_are_those_of_megatron(void **state) {
  (void)state;
  pp_model gpt3 = plain(96, 12288, 51200, 96, 96, 128, 4 * 12288);
  gpt3.gated = false;
  const struct {
    pp_model model;
    int64_t sequence_length;
    const char *flops;
  } cases[] = {
    { llama_3_8b(), 8192, "5.147040e+10" },   { llama_3_70b(), 8192, "4.492225e+11" },
    { llama_3_405b(), 8192, "2.523956e+12" }, { gpt3, 2048, "1.061947e+12" },
    { mixtral_8x7b(), 4096, "7.970646e+10" }, { deepseek_v3(), 4096, "2.599930e+11" },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[32];
    snprintf(text, sizeof text, "%.6e", pp_model_flops_per_token(&cases[i].model, (double)cases[i].sequence_length));
    assert_string_equal(text, cases[i].flops);
  }
}

/* Korthikanti et al. 2205.05198, equation 7: 72 L h² (1 + s/6h + V/12hL) per token without the causal half: s/(6h) becomes s/(12h). */
static void flops_of_a_gpt_follow_the_closed_form(void **state) {
  pp_model model = plain(48, 6144, 51200, 64, 64, 96, 4 * 6144);
  const double h = 6144, L = 48, s = 2048, V = 51200;
  (void)state;
  model.gated = false;
  const double expected = 72 * L * h * h * (1 + s / (12 * h) + V / (12 * h * L));
  assert_true(fabs(pp_model_flops_per_token(&model, 2048) / expected - 1) < 1e-12);
}

/* Returns the nearest legal value. */
static double expect_refusal(pp_model model, const char *field) {
  pp_error error = { 0 };
  if (pp_model_check(&model, &error) != PP_INVALID) fail_msg("%s %s", field, "is not refused");
  assert_string_equal(error.field, field);
  assert_non_null(strstr(error.message, field));
  return error.nearest;
}

static void an_impossible_shape_is_refused_by_field(void **state) {
  (void)state;
  pp_model model = llama_3_8b();
  model.layers = 0;
  expect_refusal(model, "layers");
  model = llama_3_8b();
  model.heads = -1;
  expect_refusal(model, "heads");
  model = llama_3_8b();
  model.kv_heads = 12;
  expect_refusal(model, "kv_heads");
  model = llama_3_8b();
  model.ffn = 0;
  expect_refusal(model, "ffn");
  model = mixtral_8x7b();
  model.experts_per_token = 9;
  expect_refusal(model, "experts_per_token");
  model = mixtral_8x7b();
  memset(model.moe, 0, sizeof model.moe);
  expect_refusal(model, "experts");
  model = deepseek_v3();
  model.kv_lora_rank = 0;
  expect_refusal(model, "kv_lora_rank");
  model = deepseek_v3();
  model.experts = 60000;
  model.expert_ffn = 4000000;
  expect_refusal(model, "experts");
}

typedef struct { const char *name; size_t offset; int64_t limit; } layer_size;
#define SIZE(field, limit) { #field, offsetof(pp_layer, field), limit }

static int64_t *size_in(pp_model *model, const layer_size *size) {
  return (int64_t *)(void *)((char *)&model->layer + size->offset);
}

/* 2^30 tokens, 2^14 heads or columns of a head, 2^16 experts, 2^20 of a latent, 2^22 of an MLP: on any layer, asked for or not. */
static void every_size_of_a_layer_has_a_most(void **state) {
  static const layer_size sizes[] = {
    SIZE(window, 1 << 30), SIZE(chunk, 1 << 30), SIZE(norms_per_layer, 8), SIZE(scales, 1 << 24), SIZE(attention_sinks, 1 << 14),
    SIZE(output_gate, 1 << 20), SIZE(compression, 1 << 20), SIZE(output_groups, 1 << 14), SIZE(output_rank, 1 << 20), SIZE(head_dim, 1 << 14),
    SIZE(v_dim, 1 << 14), SIZE(q_lora_rank, 1 << 20), SIZE(kv_lora_rank, 1 << 20), SIZE(qk_nope_dim, 1 << 14), SIZE(qk_rope_dim, 1 << 14),
    SIZE(index_heads, 1 << 14), SIZE(index_dim, 1 << 14), SIZE(ffn, 1 << 22), SIZE(shared_ffn, 1 << 22), SIZE(expert_ffn, 1 << 22),
    SIZE(expert_hidden, 1 << 20), SIZE(zero_experts, 1 << 16), SIZE(key_heads, 1 << 14), SIZE(key_dim, 1 << 14), SIZE(value_heads, 1 << 14),
    SIZE(value_dim, 1 << 14), SIZE(step_rank, 1 << 14), SIZE(conv_kernel, 1 << 10),
  };
  const pp_model models[] = { llama_3_8b(), deepseek_v3() };
  (void)state;
  for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
    const layer_size *size = &sizes[i / 2];
    pp_model model = models[i % 2];
    pp_error error = { 0 };
    model.index_dim = 128;
    *size_in(&model, size) = size->limit;
    if (pp_model_check(&model, &error) != PP_OK) fail_msg("%s", error.message);
    ++*size_in(&model, size);
    assert_true(expect_refusal(model, size->name) == (double)size->limit);
  }
}

/* Of DeepSeek-V3 with the indexer of its V3.2. */
static void what_a_layer_asks_for_is_not_left_out(void **state) {
  static const layer_size sizes[2][8] = {
    { SIZE(heads, 1), SIZE(kv_heads, 1), SIZE(head_dim, 1), SIZE(ffn, 1) },
    { SIZE(heads, 1), SIZE(kv_lora_rank, 1), SIZE(qk_nope_dim, 1), SIZE(v_dim, 1), SIZE(index_dim, 1), SIZE(experts, 1), SIZE(experts_per_token, 1),
      SIZE(expert_ffn, 1) },
  };
  (void)state;
  for (int i = 0; i < 12; i++) {
    const layer_size *size = i < 4 ? &sizes[0][i] : &sizes[1][i - 4];
    pp_model model = i < 4 ? llama_3_8b() : deepseek_v3();
    if (i >= 4) model.index_heads = 64, model.index_dim = 128;
    assert_int_equal(pp_model_check(&model, NULL), PP_OK);
    *size_in(&model, size) = 0;
    assert_true(expect_refusal(model, size->name) == 1);
  }
}

static void the_nearest_legal_value_is_offered(void **state) {
  pp_error error;
  pp_model model = llama_3_8b();
  (void)state;
  model.kv_heads = 12;
  pp_model_check(&model, &error);
  assert_true(error.nearest > 7.5 && error.nearest < 8.5);
}

/* A layer of two kinds (LongCat-Flash: two attentions, of which one stands beside the other) holds one of another kind, which holds none. */
static void a_kind_stands_beside_another_that_has_none_itself(void **state) {
  (void)state;
  static const struct { uint8_t first, second, third; bool good; } cases[] = {
    { 0, 0, 0, true }, { 2, 0, 0, true }, { 3, 3, 0, true }, { 0, 0, 1, true },
    { 1, 0, 0, false }, { 4, 0, 0, false }, { 2, 1, 0, false }, { 2, 3, 0, false }, { 3, 0, 2, false }, { 0, 3, 2, false },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    pp_model model = llama_3_8b();
    pp_error error;
    model.kinds = 3;
    for (int kind = 0; kind < 3; kind++) model.further[kind].layer = model.layer;
    model.further[0].beside = cases[i].first;
    model.further[1].beside = cases[i].second;
    model.further[2].beside = cases[i].third;
    const pp_status status = pp_model_check(&model, &error);
    if (cases[i].good) assert_int_equal(status, PP_OK);
    else {
      assert_int_equal(status, PP_INVALID);
      assert_string_equal(error.field, "beside");
    }
  }
}

/*
** Llama 3.1 8B at rank 16: 41,943,040, as its trainers print (tests/lua/frozen_spec.lua). A layer of DeepSeek-V3: q 7,168 → 1,536 → 24,576,
** keys and values 7,168 → 512 + 64, 512 → 32,768, output 16,384 → 7,168: 8,704 + 26,112 + 7,744 + 33,280 + 23,552; a dense MLP 3 (18,432 +
** 7,168); 256 experts and a shared one of 3 (2,048 + 7,168).
*/
static void adapters_stand_beside_every_linear_weight(void **state) {
  const pp_model llama = llama_3_8b(), deepseek = deepseek_v3();
  (void)state;
  assert_true(16 * pp_model_parameters(&llama).adapters == 41943040);
  assert_true(pp_model_parameters(&deepseek).adapters == 61 * 99392LL + 3 * 76800LL + 58 * 257 * 27648LL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(totals_are_those_of_the_checkpoints),
    cmocka_unit_test(active_parameters_come_in_both_conventions),
    cmocka_unit_test(a_dense_model_uses_all_its_parameters),
    cmocka_unit_test(the_mtp_module_is_counted_apart_without_what_it_shares),
    cmocka_unit_test(the_projection_of_an_mtp_module_is_split_over_tensor_ranks),
    cmocka_unit_test(blocks_add_up_to_the_total),
    cmocka_unit_test(a_kind_stands_beside_another_that_has_none_itself),
    cmocka_unit_test(adapters_stand_beside_every_linear_weight),
    cmocka_unit_test(flops_are_those_of_megatron),
    cmocka_unit_test(flops_of_a_gpt_follow_the_closed_form),
    cmocka_unit_test(an_impossible_shape_is_refused_by_field),
    cmocka_unit_test(every_size_of_a_layer_has_a_most),
    cmocka_unit_test(what_a_layer_asks_for_is_not_left_out),
    cmocka_unit_test(the_nearest_legal_value_is_offered),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
