/* SPDX-License-Identifier: Apache-2.0 */
/*
** steady.h: what a step of many microbatches takes, simulated with a program of few.
**
** Most schedules repeat themselves between warm-up and cool-down: the program of M microbatches is that of fewer with a period inserted
** over and over. So a step's time needs neither the memory nor the time of its program: periods are simulated until they grow linearly,
** and those in between are left out. steady.c says why nothing is lost by that.
*/
#ifndef PP_STEADY_H
#define PP_STEADY_H

#include "core/simulate.h"

/*
** The request whose program stands for *whole: with fewer microbatches, and the group written out. False where the kind has no periods
** (GPipe and looped BFS run all forwards first; zb_auto, v_half and v_min are planned from times) or *whole has no more microbatches than
** that. For requests that are legal but for their size. O(1).
*/
bool pp_steady_shorten(const pp_schedule_request *whole, pp_schedule_request *out);

/*
** As pp_simulate of so many microbatches, without intervals; `shorter` is the program of pp_steady_shorten. Where sums of times do not round,
** the same numbers to the last bit; elsewhere apart by how long sums round, relative 1e-12 at thousands of microbatches and 1e-10 at
** hundreds of thousands (tests/unit/steady_test.c). Memory and time of the shorter program and of the periods that are run, whose number
** *run says (may be NULL): in a hundred thousand random steps of up to 10⁹ microbatches six thousand at most. PP_ILLEGAL
** "engine.no_steady_state" where they would be more than `most`. PP_INVALID as pp_times_check, and with hosts. On PP_OK the caller frees *out.
*/
pp_status pp_steady_simulate(const pp_schedule *shorter, int microbatches, const pp_times *times, int64_t most, pp_simulation *out,
                             int64_t *run, pp_error *error);

#endif
