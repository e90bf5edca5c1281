/* SPDX-License-Identifier: Apache-2.0 */
/*
** runtime.h: what a framework's runtime makes of a schedule: in which order messages are posted, and what a step takes then.
**
** The ideal runtime of simulate.h sends at once and waits for nothing but data. A real one posts sends and receives in batches on
** in-order communication queues; both ends of a batch must have been posted before it moves anything, and a receive that waits blocks
** whatever was queued behind it. That, more than the bubble, decides the order of schedules on real machines.
**
** A schedule is first lowered: for each rank the steps that its host issues in order: run an action, post a batch, wait for a batch.
** Then it is simulated, with these rules:
**   1. A rank issues its steps in order. An action starts when the steps before it are done; posting takes no time.
**   2. A batch starts when the batches posted before it on its queue have ended.
**   3. A message of a batch is under way once the batch that holds its other end has started too. Messages that a batch sends share the
**      GPU's link out, those that it receives its link in: in each direction one moves after another, p2p seconds each, and the two
**      directions side by side. A batch ends when all of its own have moved; how many others the batch at the other end moves does not
**      count. So a batch of s sends and r receives whose other ends wait for it takes p2p × max(s, r), and one of PyTorch's, of at most one
**      each, p2p. Assumed: p2p is the time of bytes on the link, beside which a message's latency is nothing (of 32 MiB on NVLink some
**      0.01 of 0.16 ms). Measured on 4 × H200 in steps of DualPipe and DualPipeV with such messages, from when the last rank of a batch was
**      there, medians: one each way 0.16 ms, two each way 0.34, one whose other end's batch holds two 0.16.
**   4. While a batch of the rank has started and not ended, actions run slower by the contention factor; and by heat, see pp_hardware.
*/
#ifndef PP_RUNTIME_H
#define PP_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/error.h"
#include "core/schedule.h"
#include "core/simulate.h"

typedef enum { PP_RUNTIME_IDEAL, PP_RUNTIME_TORCH_SINGLE, PP_RUNTIME_TORCH_MULTI, PP_RUNTIME_DEEPSEEK, PP_RUNTIME_PIPEPLAN,
               PP_RUNTIME_MEGATRON, PP_RUNTIMES } pp_runtime_kind;

typedef enum {
  PP_QUEUE_ONE,       /* all batches of a rank run one after another */
  PP_QUEUE_PER_PEER,  /* a queue for each peer; batches that mix sends and receives share one more */
  PP_QUEUE_PER_WAY    /* one for sends and one for receives, which batches that mix them share */
} pp_queueing;

typedef enum {
  PP_RECEIVE_BEFORE_USE,  /* posted right before the action that needs it */
  PP_RECEIVE_EARLY        /* posted when the sender's action is planned, usually long before */
} pp_receiving;

/* What becomes of an FB, the pair of a forward and a backward. */
typedef enum {
  PP_PAIR_OVERLAPPED,   /* one action that waits for the inputs of both; the sends of both follow */
  PP_PAIR_IN_TURN,      /* F when its input is there, then B; the sends of both follow */
  PP_PAIR_SPLIT         /* an F and a B, each with messages of its own, as if the schedule had no pair */
} pp_pairing;

/* What a runtime keeps beside weights, see runtime_memory.c. */
typedef enum {
  PP_MEMORY_UNKNOWN,
  PP_MEMORY_TORCH,      /* messages of all microbatches are allocated up front; I frees no activations */
  PP_MEMORY_LEAN,       /* only what is still needed */
  PP_MEMORY_STORED      /* what F stored, with what it received, until the backward */
} pp_memory_rule;

/* A runtime as data: presets are rows of a table, and each field may be changed on its own. */
typedef struct {
  const char *name;       /* "torch-multi" */
  pp_runtime_kind kind;   /* whose order of posts: see runtime_lower.c; pipeplan, the executor in examples/torch, has deepseek's */
  pp_queueing queues;
  pp_receiving receives;  /* a choice in torch-multi only */
  pp_pairing pairs;       /* a choice in torch-multi only */
  bool first_skips_input; /* the first stage has no input gradient: its I takes nothing and its W is the whole backward */
  pp_memory_rule memory;  /* what pp_runtime_peaks counts */
} pp_runtime;

const pp_runtime *pp_runtime_preset(pp_runtime_kind kind);
/* The kind of that name, or -1. */
int pp_runtime_kind_of(const char *name);

/* -- lowering ------------------------------------------------------------------------------------------------------------------------- */

typedef enum {
  PP_STEP_ACTION,                      /* index: of schedule->action */
  PP_STEP_FORWARD, PP_STEP_BACKWARD,   /* half of an FB; index as above */
  PP_STEP_POST, PP_STEP_WAIT           /* index: of pp_lowered's batch */
} pp_step_kind;

typedef struct {
  uint32_t kind, index;
} pp_step;

/* One end of a message: stage's output of a microbatch, the forward's to stage + 1 or the backward's to stage − 1. */
typedef struct {
  uint32_t microbatch;
  uint16_t stage;      /* that sends */
  bool backward, receive;
  uint32_t other;      /* the batch that holds the other end */
} pp_message_end;

typedef struct {
  uint32_t first, count;   /* of pp_lowered's end */
  uint32_t queue;          /* 0 … queues − 1, of all ranks together */
  uint32_t rank;
} pp_batch;

enum { PP_NO_BATCH = UINT32_MAX };

typedef struct {
  int ranks;
  size_t *first, *last;    /* [ranks] rank r issues step[first[r]] … step[last[r] − 1] */
  pp_step *step;
  uint32_t batches, queues;
  bool syncs;              /* does the host wait with its card for messages? */
  pp_batch *batch;
  pp_message_end *end;
} pp_lowered;

/*
** Lowers a schedule, for a runtime other than ideal. O(actions) time and memory, torch-multi O(actions × log ranks).
** PP_ILLEGAL "engine.runtime" when that runtime cannot run that kind of schedule, "engine.too_many_actions" beyond PP_MAX_LOWERED; of a program that is not verified, what
** pp_schedule_verify says of it. A schedule whose kind is dualpipe or dualpipev must be as pp_schedule_build made it.
** On PP_OK the caller frees *out.
*/
pp_status pp_runtime_lower(const pp_schedule *schedule, const pp_runtime *runtime, pp_lowered *out, pp_error *error);
void pp_lowered_free(pp_lowered *lowered);

enum { PP_MAX_LOWERED = 1 << 21 };   /* actions of a schedule: some 200 bytes each */

/* A message end as PyTorch writes it, "2RECV_F0": the stage is that of the end's own rank. Returns what snprintf returns. */
int pp_message_end_print(char *buffer, size_t size, const pp_message_end *end);

/* -- simulation ----------------------------------------------------------------------------------------------------------------------- */

/*
** What the hardware adds. { .contention = 1 } is nothing.
** Heat: a card that works without pause runs into its power cap. With u the running average of busy (1 while an action runs, 0 while the
** rank waits) of time constant heat_tau, actions take 1 + heat_slope × max(0, u − heat_onset) / (1 − heat_onset) times as long.
** Two steps are simulated and the second is reported, whose u starts where the first ended.
*/
#define PP_MOST_SLOWING 1e24   /* what a profile may come to */

typedef struct {
  double contention;   /* 1 … PP_MOST_SLOWING */
  double heat_onset;   /* 0 ≤ onset < 1 */
  double heat_slope;   /* 0 … PP_MOST_SLOWING; 0: no heat */
  double heat_tau;     /* seconds > 0, where slope is not 0 */
  const double *rank_slope;  /* [slopes] as heat_slope, of each rank's card; used at that many ranks, where there is heat; NULL: all alike */
  int slopes;
} pp_hardware;

/* How many times as long actions take on a card that is busy for a share u of the time, 0 … 1. */
double pp_heat_factor(const pp_hardware *hardware, double u);

/*
** The step of a schedule. The ideal runtime is pp_simulate, and takes no contention or heat.
** O(actions × log(ranks)) beside lowering, with heat twice that. Intervals of actions include contention and heat, and so does busy; that
** of a pair is from the start of its F to the end of its B, where it may have waited in between: see pp_simulation's `between`.
** PP_INVALID for numbers outside their range; PP_ILLEGAL as pp_runtime_lower, and "engine.deadlock" when ranks wait for each other's
** batches (the message names the cycle). On PP_OK the caller frees *out with pp_simulation_free.
*/
pp_status pp_runtime_simulate(const pp_schedule *schedule, const pp_times *times, const pp_runtime *runtime, const pp_hardware *hardware,
                              bool with_intervals, pp_simulation *out, pp_error *error);

/* -- memory --------------------------------------------------------------------------------------------------------------------------- */

/* B is a whole backward, as in an FB. */
typedef enum { PP_TRANSIENT_F, PP_TRANSIENT_B, PP_TRANSIENT_I, PP_TRANSIENT_W, PP_TRANSIENTS } pp_transient;

/* Bytes that a stage holds for one microbatch. Each 0 … PP_MOST_BYTES, which the caller has checked. */
#define PP_MOST_BYTES 1e30

typedef struct {
  double stored;            /* from F until B, with its result; under torch until I or B; under megatron with what it received, not its result */
  double pending;           /* torch, from I until W: what F stored less what I frees, such as logits, and gradients of its layers' outputs */
  double deferred;          /* lean, from I until W: all that W needs */
  double after_weight;      /* lean, from W until gradients are dropped: 0 unless a weight's gradient keeps a history, see runtime_memory.c */
  double transient[PP_TRANSIENTS];  /* what an action needs while it runs, beside the more of what is held before and after it */
  double message;           /* what it sends, receives, and gets from the data loader */
  double output;            /* its result: of the last stage it may be larger than a message */
  double kept;              /* torch, of the last stage: the result as the caller gets it when the step ends; 0: it does not */
} pp_stage_bytes;

/*
** Fills peaks[ranks] with the most bytes that each rank holds at once beside weights, their gradients and the model's input: activations,
** with what the runtime keeps of messages. bytes: [stages]. Exact for a program; where the rules come from is told in runtime_memory.c.
** Of a step before which gradients were dropped. PP_ILLEGAL "engine.runtime" where PP_MEMORY_UNKNOWN: ideal (see pp_schedule_peak).
** O(actions + stages), no memory.
*/
pp_status pp_runtime_peaks(const pp_schedule *schedule, const pp_runtime *runtime, const pp_stage_bytes *bytes, double *peaks,
                           pp_error *error);

#endif
