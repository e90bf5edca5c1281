/* SPDX-License-Identifier: Apache-2.0 */
/* candidate.c: which layouts and schedules are enumerated, and which of them cannot be built. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "searches.h"

static pp_candidates enumerate(const search_case *c) {
  pp_candidates out = { 0 };
  pp_error error;
  if (pp_candidates_enumerate(&c->space, &out, &error) != PP_OK) fail_msg("%s", error.message);
  return out;
}

/* The candidate of that depth, schedule and V (0: any), or NULL. */
static const pp_candidate *find(const pp_candidates *list, int pipeline, int kind, int chunks) {
  for (size_t i = 0; i < list->count; i++) {
    const pp_candidate *c = &list->candidate[i];
    if (c->layout.pipeline == pipeline && c->kind == kind && (!chunks || c->layout.chunks == chunks)) return c;
  }
  return NULL;
}

static void every_layout_uses_all_gpus_and_whole_microbatches(void **state) {
  search_case c;
  (void)state;
  set_case(&c, deepseek_v3(61, 3, 1), 2048, 15360);
  pp_candidates list = enumerate(&c);
  assert_true(list.count > 1000);
  for (size_t i = 0; i < list.count; i++) {
    const pp_layout *l = &list.candidate[i].layout;
    assert_int_equal(l->tensor * l->context * l->data * l->pipeline, 2048);
    assert_int_equal(2048 % (l->expert * l->expert_tensor * l->pipeline), 0);
    assert_int_equal(256 % l->expert, 0);
    assert_int_equal(128 % l->tensor, 0);
    assert_int_equal(list.candidate[i].microbatches * l->data, 15360);
    assert_true(l->pipeline * l->chunks <= 61);
  }
  pp_candidates_free(&list);
}

/* 15,360 / (2,048 / P) = 7.5 P, and P × 64 divides 2,048. */
static void deepseek_v3_has_120_microbatches_at_depth_16(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  pp_candidates list = enumerate(&c);
  assert_int_equal(find(&list, 16, PP_DUALPIPE, 0)->microbatches, 120);
  for (size_t i = 0; i < list.count; i++) assert_int_equal(2048 % (list.candidate[i].layout.pipeline * 64), 0);
  assert_null(find(&list, 12, PP_DUALPIPE, 0));
  assert_non_null(find(&list, 32, PP_1F1B, 0));
  assert_null(find(&list, 32, PP_ZB_V, 0));  /* 64 stages of 61 layers */
  pp_candidates_free(&list);
}

/* 15,361 sequences are prime to the GPUs: every layout would have a fraction of a microbatch, but for data parallelism of 1. */
static void a_batch_that_does_not_divide_has_no_candidate(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  c.space.global_batch = c.space.smallest_batch = 15361;
  pp_candidates list = enumerate(&c);
  assert_int_equal(list.count, 0);
  pp_candidates_free(&list);
}

/* The ramp begins at 3,072 sequences: 24 microbatches at depth 16, where DualPipe needs 32. */
static void legality_is_judged_at_the_smallest_batch(void **state) {
  search_case c;
  pp_error error;
  (void)state;
  set_deepseek(&c);
  c.space.smallest_batch = 3072;
  pp_candidates list = enumerate(&c);
  const pp_candidate *dualpipe = find(&list, 16, PP_DUALPIPE, 0);
  assert_int_equal(dualpipe->microbatches, 120);
  assert_int_equal(dualpipe->smallest_microbatches, 24);
  assert_int_equal(pp_candidate_check(dualpipe, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.too_few_microbatches");
  assert_int_equal(pp_candidate_check(find(&list, 16, PP_1F1B, 0), &c.model, &error), PP_OK);
  pp_candidates_free(&list);
}

/* Megatron-LM, get_schedule_table: N ≥ P with 120 mod N = 0 or ≥ 16. 16 leaves 8, 17 leaves 1, 18 leaves 12, 19 leaves 6, 20 leaves none. */
static void an_interleaved_schedule_takes_the_smallest_group_that_serves(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  pp_candidates list = enumerate(&c);
  const pp_candidate *interleaved = find(&list, 16, PP_INTERLEAVED_1F1B, 2);
  assert_int_equal(interleaved->group, 20);
  assert_int_equal(interleaved->configured_virtual, 2);
  assert_int_equal(pp_candidate_check(interleaved, &c.model, NULL), PP_OK);
  assert_non_null(find(&list, 16, PP_INTERLEAVED_1F1B, 3));
  assert_null(find(&list, 16, PP_INTERLEAVED_1F1B, 4));  /* 64 stages */
  pp_candidates_free(&list);
}

static void v_placements_are_configured_without_virtual_stages(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  pp_candidates list = enumerate(&c);
  assert_int_equal(find(&list, 16, PP_DUALPIPEV, 0)->layout.chunks, 2);
  assert_int_equal(find(&list, 16, PP_DUALPIPEV, 0)->configured_virtual, 1);
  pp_candidates_free(&list);
}

static void depth_1_stays_in_the_scale_up_domain_and_is_always_there(void **state) {
  search_case c;
  (void)state;
  set_case(&c, llama(126, 16384, 128, 8, 53248, 128256), 16384, 2048);
  c.space.fixed.pipeline = 16;
  pp_candidates list = enumerate(&c);
  int alone = 0;
  for (size_t i = 0; i < list.count; i++) {
    const pp_candidate *candidate = &list.candidate[i];
    assert_true(candidate->layout.pipeline == 1 || candidate->layout.pipeline == 16);
    if (candidate->layout.pipeline > 1) continue;
    alone++;
    assert_int_equal(candidate->kind, PP_NO_SCHEDULE);
    assert_true(candidate->layout.tensor <= 8);
  }
  assert_true(alone > 0);
  pp_candidates_free(&list);
}

static void only_what_is_fixed_at_depth_1_binds_there(void **state) {
  search_case c;
  (void)state;
  set_case(&c, llama(32, 4096, 32, 8, 14336, 128256), 64, 1024);
  c.space.fixed.data = 8;
  c.space.fixed.microbatches = 128;
  c.space.fixed.kind = PP_DUALPIPE;
  pp_candidates list = enumerate(&c);
  assert_non_null(find(&list, 1, PP_NO_SCHEDULE, 0));
  for (size_t i = 0; i < list.count; i++)
    if (list.candidate[i].layout.pipeline > 1) {
      assert_int_equal(list.candidate[i].layout.data, 8);
      assert_int_equal(list.candidate[i].kind, PP_DUALPIPE);
    }
  pp_candidates_free(&list);
}

/* pytorch/torchtitan #2574: two key-value heads at TP 8 only work where they are replicated, which Megatron-Core allows for multiples. */
static void tensor_parallelism_divides_heads_and_suits_key_value_heads(void **state) {
  search_case c;
  (void)state;
  set_case(&c, llama(36, 6144, 48, 6, 24576, 128256), 1024, 1024);
  pp_candidates list = enumerate(&c);
  bool seen[65] = { false };
  for (size_t i = 0; i < list.count; i++) seen[list.candidate[i].layout.tensor] = true;
  assert_true(seen[1] && seen[2]);
  assert_false(seen[4]);   /* neither divides 6 nor is a multiple of it */
  assert_false(seen[32]);  /* does not divide 48 */
  pp_candidates_free(&list);
}

static void a_fixed_value_is_enumerated_even_where_it_is_illegal(void **state) {
  search_case c;
  pp_error error;
  (void)state;
  set_deepseek(&c);
  c.space.fixed = (pp_fixed){ .tensor = 1, .expert = 8, .pipeline = 64, .kind = PP_SCHEDULE_KINDS };
  pp_candidates list = enumerate(&c);
  const pp_candidate *deep = find(&list, 64, PP_1F1B, 0);
  assert_non_null(deep);
  assert_int_equal(pp_candidate_check(deep, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.layers_below_stages");
  assert_int_equal((int)error.nearest, 61);
  pp_candidates_free(&list);
}

static void virtual_stages_that_are_fixed_reach_dualpipe(void **state) {  /* so that a rule can reject them */
  search_case c;
  pp_error error;
  (void)state;
  set_deepseek(&c);
  c.space.fixed.configured_virtual = 2;
  pp_candidates list = enumerate(&c);
  const pp_candidate *dualpipe = find(&list, 16, PP_DUALPIPE, 0);
  assert_int_equal(dualpipe->configured_virtual, 2);
  assert_int_equal(pp_candidate_check(dualpipe, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.chunks");
  assert_null(find(&list, 16, PP_INTERLEAVED_1F1B, 3));
  pp_candidates_free(&list);
}

static void a_given_split_decides_the_number_of_stages(void **state) {
  search_case c;
  (void)state;
  set_deepseek(&c);
  c.space.fixed.stages = 32;
  pp_candidates list = enumerate(&c);
  assert_non_null(find(&list, 16, PP_INTERLEAVED_1F1B, 2));
  assert_non_null(find(&list, 16, PP_DUALPIPEV, 2));
  assert_non_null(find(&list, 32, PP_1F1B, 1));
  assert_null(find(&list, 16, PP_1F1B, 1));
  pp_candidates_free(&list);
}

static void tensor_and_expert_degrees_are_checked_against_the_model(void **state) {
  search_case c;
  pp_error error;
  pp_candidate candidate = { .layout = { .tensor = 12, .context = 1, .expert = 1, .expert_tensor = 1, .data = 1, .pipeline = 1, .chunks = 1 },
                             .kind = PP_NO_SCHEDULE, .microbatches = 1, .smallest_microbatches = 1 };
  (void)state;
  set_deepseek(&c);
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.tensor_heads");
  assert_int_equal((int)error.nearest, 8);
  c.model.layer.heads = 96;   /* not of each layer that there is */
  c.model.kinds = 1;
  c.model.further[0].layer = c.model.layer;
  c.model.further[0].layer.heads = 128;
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "TP 12 does not divide the 128 attention heads");
  c.model.further[0].layer = (pp_layer){ .attention = PP_ATTENTION_MAMBA2, .key_heads = 8, .value_heads = 96 };
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "TP 12 does not divide the 8 groups of a mixer's heads");
  assert_int_equal((int)error.nearest, 8);
  c.model.further[0].layer = (pp_layer){ .attention = PP_ATTENTION_GQA, .heads = 96, .kv_heads = 8, .ffn = 4096 };
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "TP 12 does not divide the 8 key-value heads, nor they it");
  c.model.further[0].layer.kv_heads = 6;
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "TP 12 does not divide the 4096 columns of the MLP");
  c.model.kinds = 0;
  candidate.layout.tensor = 1;
  candidate.layout.expert_tensor = 3;
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.message, "ETP 3 does not divide the 2048 columns of an expert");
  assert_int_equal((int)error.nearest, 2);
  candidate.layout.expert_tensor = 1;
  candidate.layout.expert = 48;
  assert_int_equal(pp_candidate_check(&candidate, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.expert_count");
  assert_int_equal((int)error.nearest, 32);
}

/* P × V = 2^33, and EP × ETP × P beyond 2^63, are judged rather than wrapped. */
static void degrees_of_any_size_are_judged(void **state) {
  search_case c;
  pp_error error;
  (void)state;
  set_case(&c, deepseek_v3(61, 3, 0), 1 << 24, 1 << 24);
  c.space.fixed.pipeline = 1 << 23;
  c.space.fixed.configured_virtual = 1024;
  c.space.fixed.kind = PP_INTERLEAVED_1F1B;
  pp_candidates list = enumerate(&c);
  const pp_candidate *deep = find(&list, 1 << 23, PP_INTERLEAVED_1F1B, 1024);
  assert_non_null(deep);
  assert_int_equal(pp_candidate_check(deep, &c.model, &error), PP_ILLEGAL);
  assert_string_equal(error.id, "engine.layers_below_stages");
  assert_string_equal(error.message, "61 layers are too few for 8589934592 stages");
  pp_candidates_free(&list);
  c.space.fixed.expert = c.space.fixed.expert_tensor = 1 << 24;
  list = enumerate(&c);
  assert_null(find(&list, 1 << 23, PP_INTERLEAVED_1F1B, 1024));
  pp_candidates_free(&list);
}

static void the_order_is_total_and_has_no_twins(void **state) {
  search_case c;
  (void)state;
  set_case(&c, deepseek_v3(61, 3, 1), 2048, 15360);
  pp_candidates list = enumerate(&c);
  for (size_t i = 1; i < list.count; i++) {
    const pp_candidate *a = &list.candidate[i - 1], *b = &list.candidate[i];
    int keys[][2] = { { a->layout.pipeline, b->layout.pipeline }, { a->layout.tensor, b->layout.tensor },
                      { a->layout.context, b->layout.context },   { a->layout.expert, b->layout.expert },
                      { a->kind, b->kind },                       { a->layout.chunks, b->layout.chunks } };
    size_t k = 0;
    while (k < 5 && keys[k][0] == keys[k][1]) k++;
    assert_true(keys[k][0] < keys[k][1]);
  }
  pp_candidates_free(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_layout_uses_all_gpus_and_whole_microbatches),
    cmocka_unit_test(deepseek_v3_has_120_microbatches_at_depth_16),
    cmocka_unit_test(a_batch_that_does_not_divide_has_no_candidate),
    cmocka_unit_test(legality_is_judged_at_the_smallest_batch),
    cmocka_unit_test(an_interleaved_schedule_takes_the_smallest_group_that_serves),
    cmocka_unit_test(v_placements_are_configured_without_virtual_stages),
    cmocka_unit_test(depth_1_stays_in_the_scale_up_domain_and_is_always_there),
    cmocka_unit_test(only_what_is_fixed_at_depth_1_binds_there),
    cmocka_unit_test(tensor_parallelism_divides_heads_and_suits_key_value_heads),
    cmocka_unit_test(a_fixed_value_is_enumerated_even_where_it_is_illegal),
    cmocka_unit_test(virtual_stages_that_are_fixed_reach_dualpipe),
    cmocka_unit_test(a_given_split_decides_the_number_of_stages),
    cmocka_unit_test(tensor_and_expert_degrees_are_checked_against_the_model),
    cmocka_unit_test(degrees_of_any_size_are_judged),
    cmocka_unit_test(the_order_is_total_and_has_no_twins),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
