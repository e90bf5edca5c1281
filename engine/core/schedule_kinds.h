/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_kinds.h: the schedules there are, a row each: what they are called and what they are. Everything else that has to know them all is
** made from these rows: pp_schedule_kind and pp_schedule_traits (schedule.h), who writes the program (schedule.c), the closed form of the
** bubble (bubble.c), and through engine.schedule the vocabulary, titles and editor definitions of the standard library.
**
** A row that lacks a column does not compile, nor one whose constructor or closed form is not there. The columns:
**
**   kind         PP_<kind> of pp_schedule_kind
**   name         in specs, policies and plans
**   title        as its paper writes it
**   family       the name of a family that the decision table may want; its own name where there is none
**   shape        ONE_CHUNK, LOOPED (two or more chunks a rank, stage s on rank s mod P), V_SHAPE (two) or BOTH_WAYS (two chains, two copies)
**   backward     WHOLE, or SPLIT into I and W
**   pairs        NO_PAIRS; PAIRS of a forward and a backward, which hide a plain all-to-all; PAIRS_OF_KERNEL, which hide it only if a
**                kernel runs it beside compute
**   grouping     PP_UNGROUPED, PP_GROUPS_OF_RANKS or PP_GROUPS_BY_ROUNDS
**   least        microbatches per rank below which there is no such program; 0: runs for any M
**   holds        how a rank's most activations follow from M: pp_schedule_holds
**   periods      PERIODS: beyond warm-up its steps repeat, and a long one is computed from them (steady.h); NO_PERIODS
**   stand_in     the kind whose program stands for it where its own is not planned yet; itself, but for those that follow from times
**   constructor  of schedules.h
**   law          its closed form in bubble.c
*/
#ifndef PP_SCHEDULE_KINDS_H
#define PP_SCHEDULE_KINDS_H

#define PP_SCHEDULES(X)                                                                                                                        \
  X(GPIPE, "gpipe", "GPipe", "gpipe",                                                                                                          \
    ONE_CHUNK, WHOLE, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_ALL, NO_PERIODS, GPIPE, table, gpipe)                                                \
  X(LOOPED_BFS, "looped_bfs", "looped BFS", "looped_bfs",                                                                                      \
    LOOPED, WHOLE, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_ALL, NO_PERIODS, LOOPED_BFS, table, looped_bfs)                                         \
  X(1F1B, "1f1b", "1F1B", "1f1b",                                                                                                              \
    ONE_CHUNK, WHOLE, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_RANKS, PERIODS, 1F1B, table, 1f1b)                                                   \
  X(INTERLEAVED_1F1B, "interleaved_1f1b", "interleaved 1F1B", "interleaved_1f1b",                                                              \
    LOOPED, WHOLE, NO_PAIRS, PP_GROUPS_OF_RANKS, 0, PP_HOLDS_GROUPS, PERIODS, INTERLEAVED_1F1B, table, interleaved_1f1b)                       \
  X(INTERLEAVED_1F1B_OVERLAP, "interleaved_1f1b_overlap", "overlapped interleaved 1F1B", "interleaved_1f1b_overlap",                           \
    LOOPED, WHOLE, PAIRS, PP_GROUPS_OF_RANKS, 0, PP_HOLDS_GROUPS, PERIODS, INTERLEAVED_1F1B_OVERLAP, table, interleaved_1f1b_overlap)          \
  X(ZB_H1, "zb_h1", "ZB-H1", "zero_bubble",                                                                                                    \
    ONE_CHUNK, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, PERIODS, ZB_H1, table, zb_h1)                                               \
  X(ZB_H2, "zb_h2", "ZB-H2", "zero_bubble",                                                                                                    \
    ONE_CHUNK, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, PERIODS, ZB_H2, table, zb_h2)                                               \
  X(INTERLEAVED_ZERO_BUBBLE, "interleaved_zero_bubble", "interleaved zero bubble", "zero_bubble",                                              \
    LOOPED, SPLIT, NO_PAIRS, PP_GROUPS_BY_ROUNDS, 0, PP_HOLDS_GROUPS, PERIODS, INTERLEAVED_ZERO_BUBBLE, table, interleaved_zero_bubble)        \
  X(ZB_V, "zb_v", "ZB-V", "zero_bubble",                                                                                                       \
    V_SHAPE, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, PERIODS, ZB_V, v, zb_v)                                                       \
  X(ZB_AUTO, "zb_auto", "ZB auto", "zero_bubble",                                                                                              \
    ONE_CHUNK, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, NO_PERIODS, ZB_H2, greedy, zb_auto)                                         \
  X(V_HALF, "v_half", "V-Half", "v_half",                                                                                                      \
    V_SHAPE, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, NO_PERIODS, V_HALF, greedy, none_known)                                       \
  X(V_MIN, "v_min", "V-Min", "v_min",                                                                                                          \
    V_SHAPE, SPLIT, NO_PAIRS, PP_UNGROUPED, 0, PP_HOLDS_BOUNDED, NO_PERIODS, V_MIN, greedy, none_known)                                        \
  X(DUALPIPE, "dualpipe", "DualPipe", "dualpipe",                                                                                              \
    BOTH_WAYS, SPLIT, PAIRS_OF_KERNEL, PP_UNGROUPED, 2, PP_HOLDS_BOUNDED, PERIODS, DUALPIPE, eight_step, dualpipe)                             \
  X(DUALPIPEV, "dualpipev", "DualPipeV", "dualpipev",                                                                                          \
    V_SHAPE, SPLIT, PAIRS_OF_KERNEL, PP_UNGROUPED, 2, PP_HOLDS_BOUNDED, PERIODS, DUALPIPEV, eight_step, dualpipev)

#endif
