/* SPDX-License-Identifier: Apache-2.0 */
/*
** schedule_verify.h: can a program run, and does it do a training step's work? Asked of the programs that schedule.c builds and of any that
** comes from elsewhere, without times. What PyTorch's own check leaves out (_validate_schedule in torch/distributed/pipelining/schedules.py
** counts actions in sets) is looked at here: actions done twice, a B of one microbatch beside the I and W of another, and whether ranks
** wait for each other.
*/
#ifndef PP_SCHEDULE_VERIFY_H
#define PP_SCHEDULE_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/schedule.h"

/*
** How results travel between stages on different ranks; inside a rank a result is there when its action has run. `buffers` says which:
**
** 0, asynchronous: sending waits for nobody. PyTorch's lowering of a compute-only program succeeds exactly when this has no deadlock:
** _add_send_recv places each receive at the moment its send runs, and the runtime waits for sends only at the end of the step.
**
** n ≥ 1, blocking: before each action a rank posts one group, the sends of its previous action's results and its receives, and goes on when
** all those sends are matched and the action's inputs have come, as in isend/irecv batches that are waited for (PyTorch's Schedule1F1B,
** Megatron-LM without overlapped p2p, DeepSeek DualPipe's _commit_and_wait_comm). A stage has n receive buffers for its forward's input and
** n for its backward's; the receive into a free one is in the group. With one, the receive of a message is posted when the message before
** has been used: Schedule1F1B posts it right before use, Megatron-LM's interleaved 1F1B and DualPipe's step 2 one message earlier. Messages
** of a stage come in the order in which they are sent. What has no deadlock here can be given groups that never wait for each other.
*/
enum { PP_ASYNCHRONOUS = 0 };

/* One rank of a cycle: what keeps it from going on is the result of a stage's forward (PP_F) or backward (PP_B, or PP_I where W is split). */
typedef struct {
  int rank;
  int64_t position;     /* the rank's action that cannot run: index in its list; its length when all have run */
  int of;               /* the rank it waits for: */
  bool sends;           /* to take the result; else to make it */
  pp_action_kind kind;
  int stage;
  uint32_t microbatch;
} pp_wait;

enum { PP_FINDING_WAITS = 64 };

/* Where a program is wrong. */
typedef struct {
  int rank;             /* −1: nowhere */
  int64_t position;     /* index in the rank's list; −1: at no action, something is missing */
  int waits;            /* length of the cycle of a deadlock, else 0; the first PP_FINDING_WAITS are in wait[] */
  pp_wait wait[PP_FINDING_WAITS];
} pp_finding;

/*
** PP_OK, or PP_ILLEGAL with the first finding, in this order:
**   engine.unknown_action     no such kind, stage or microbatch        (first in the order of ranks and their lists)
**   engine.wrong_rank         its stage is on another rank
**   engine.duplicate_action   done before: F twice, a second backward, W after a full backward
**   engine.action_order       B or I before F, W before I
**   engine.missing_action     a (stage, microbatch) without its F, or without B or I + W
**   engine.deadlock           ranks wait for each other whatever the runtime
**   engine.blocking_deadlock  only where p2p blocks with so few buffers
** *finding (may be NULL) says where. The schedule's tables must be consistent, as pp_schedule_build and pp_schedule_read_csv make them; its
** actions may be anything. O(actions + stages + ranks) time; one allocation of at most a byte an action, of a program whose
** actions are fewer than its (stage, microbatch) pairs a byte a microbatch, and some dozens a stage and rank.
*/
pp_status pp_schedule_verify_p2p(const pp_schedule *schedule, int buffers, pp_finding *finding, pp_error *error);

/*
** The least number of receive buffers with which a program that pp_schedule_verify accepts runs where p2p blocks, in *buffers. 1 for most
** schedules; as many as its microbatches always suffice. O(actions × log of the result) time: at most 2 + 2 log₂ M times through all
** actions; memory as for verification.
*/
pp_status pp_schedule_receive_buffers(const pp_schedule *schedule, int *buffers, pp_error *error);

/* With asynchronous p2p, without the place. What it accepts, pp_simulate runs. */
pp_status pp_schedule_verify(const pp_schedule *schedule, pp_error *error);

#endif
