/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_csv.h: reading a schedule program from PyTorch's compute-only CSV (torch/distributed/pipelining/schedules.py: _Action.from_str,
** _PipelineScheduleRuntime._dump_csv with format="compute_only"), the format that schedule:csv() writes.
**
** A line is a rank's list, the first that of rank 0; lines end in LF or CRLF and may differ in length. A cell is an action, "2F7", "0I3",
** "0W3", "1B2", or a pair "(0F7;7B3)OVERLAP_F_B" (in either order), or empty: a time step in which the rank waits, which is not kept. Blanks
** around a cell are ignored, as PyTorch does. Unlike PyTorch's, which matches beginnings only, the whole cell has to be an action.
*/
#ifndef PP_SCHEDULE_CSV_H
#define PP_SCHEDULE_CSV_H

#include <stddef.h>

#include "core/schedule.h"

/* Where in the text, from 1; 0: nowhere. A column is a cell, also an empty one. */
typedef struct {
  size_t line, column;
} pp_csv_place;

/*
** Reads a program of one pipeline, or with directions = 2 of two: then the upper half of the stages is direction 1, as in the CSV of a
** DualPipe of ours (a text cannot say so by itself: its stages lie on the ranks as those of a V do). M is one more than the largest
** microbatch, S one more than the largest stage, and a stage is on the rank that has more than half of its actions, if one has. What was
** read is verified: where something is missing or in the wrong place, `verified` is false, and pp_schedule_verify says what.
**
** PP_ILLEGAL when it cannot be read, with *place (may be NULL) where:
**   engine.csv_cell             not an action
**   engine.csv_old_dialect      BW, the full backward of PyTorch's files of 2024
**   engine.csv_communication    an action of the compute_comms format
**   engine.csv_row              an empty text, a line without actions
**   engine.csv_size             more than PP_MAX_STAGES stages or ranks, than PP_MAX_ACTIONS actions or microbatches
** or when no schedule can be made of it:
**   engine.missing_stage, engine.missing_microbatch      a number under the largest that occurs nowhere
**   engine.directions           two directions with an odd number of stages
** PP_INVALID when directions is neither 1 nor 2. On PP_OK the caller frees *out with pp_schedule_free; its kind is PP_CUSTOM, its traits are
** what its actions show. O(length) time: the text is read twice and the program verified once. Memory: some 20 bytes an action, and
** dozens a stage and rank, whatever numbers it claims.
*/
pp_status pp_schedule_read_csv(const char *text, size_t length, int directions, pp_schedule *out, pp_csv_place *place, pp_error *error);

#endif
