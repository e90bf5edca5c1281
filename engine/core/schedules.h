/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedules.h: what a constructor provides to schedule.c. Internal to engine/core.
** A constructor writes one rank's actions, or those of all ranks at once; where stages live is placement, decided before it runs.
*/
#ifndef PP_SCHEDULES_H
#define PP_SCHEDULES_H

#include "core/schedule.h"

/* Where the next action of a rank goes, and which stage each of the rank's slots is. */
typedef struct {
  pp_action *next;
  const int *stage_at;   /* [its stages] */
} pp_writer;

/* One mechanism. All get a request that pp_schedule_check accepted. */
typedef struct {
  size_t (*count)(const pp_schedule_request *request, int rank);   /* actions of the rank */
  void (*write)(const pp_schedule_request *request, int rank, pp_writer *writer);
  /* Instead of write, where ranks depend on each other: fills the actions of a program that is otherwise complete. */
  pp_status (*write_all)(const pp_schedule_request *request, pp_schedule *out, pp_error *error);
} pp_constructor;

extern const pp_constructor pp_construct_table;       /* gpipe, looped_bfs, 1f1b, the interleaved ones, zb_h1, zb_h2 */
extern const pp_constructor pp_construct_v;           /* zb_v */
extern const pp_constructor pp_construct_eight_step;  /* dualpipe, dualpipev */
extern const pp_constructor pp_construct_greedy;      /* zb_auto, v_half, v_min */

/* Fills slot_of, first_slot and stage_at from rank_of, and returns the most stages that a rank holds. O(ranks + stages). */
int pp_schedule_place(pp_schedule *schedule);

/* A rank's place in DualPipe's or DualPipeV's eight steps; see schedules_eight_step.c. */
typedef struct {
  int turns, half, microbatches;
  bool middle;      /* the rank where phase 0 turns into phase 1 */
  int slot[2];      /* the rank's slot of each phase */
} pp_eight_shape;

pp_eight_shape pp_eight_shape_of(const pp_schedule_request *request, int rank);

/* Is it one of the kinds that have these steps? Not PP_CUSTOM. */
bool pp_schedule_has_eight_steps(pp_schedule_kind kind);

static inline void pp_write(pp_writer *writer, pp_action_kind kind, int slot, int microbatch) {
  *writer->next++ = (pp_action){ .kind = (uint16_t)kind, .stage = (uint16_t)writer->stage_at[slot], .microbatch = (uint32_t)microbatch };
}

static inline void pp_write_pair(pp_writer *writer, int slot, int microbatch, int slot_b, int microbatch_b) {
  *writer->next++ = (pp_action){
    .kind = PP_FB, .stage = (uint16_t)writer->stage_at[slot], .stage_b = (uint16_t)writer->stage_at[slot_b],
    .microbatch = (uint32_t)microbatch, .microbatch_b = (uint32_t)microbatch_b };
}

#endif
