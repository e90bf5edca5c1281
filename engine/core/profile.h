/* SPDX-License-Identifier: Apache-2.0 */
/*
** profile.h: costs as measured: what stages of a pipeline took, turned into seconds and bytes of blocks, so that stages that hold other
** numbers of layers can be made of them.
**
** The rule, for each quantity apart:
**   layers  inner stages (no embedding, no head) are what their layers cost in the model (cost.c, memory.c) times one factor: all that was
**           measured over all that is computed. With layers of one kind that is seconds per layer. Without inner stages the factor is the
**           least of any stage, for ends only add.
**   kinds   layers of a kind that no inner stage holds, as the dense ones before layers with experts, take no more than leaves the stages that
**           hold them as measured, and no less than half of what is computed.
**   ends    what the first stage took beyond its layers is the embedding's, what the last took beyond its layers is the head's (with loss
**           and MTP), not less than nothing; over the same computed. Ends that no stage holds are as computed: their
**           kernels are others than a layer's.
**   others  a layout other than the one measured takes the computed costs there times the same factors.
**   hosts   what handing over a stage's actions takes its host, by its layers alike, whatever their kind; what the ends take beyond is theirs,
**           and nothing where no stage holds them. What an action takes beyond both on a card that has nothing else to do is the mean
**           of the stages', whatever they hold: it is what the host does before it hands over anything.
**           A host waits for its card in a kind of action where it did in any measured stage, in stages that hold such layers as that did: layers
**           with experts where the profile has any. The same in every layout: that TP or EP change what is launched is not measured here.
**
** Where only one of I and W was measured the other is B less it; without either B is split as computed. B itself is kept as measured: a
** split backward is not free (I + W exceeded B by 5 % in runs on H200).
*/
#ifndef PP_PROFILE_H
#define PP_PROFILE_H

#include "core/cost.h"
#include "core/memory.h"
#include "core/simulate.h"

/* What can be measured of a stage: seconds of one microbatch executed alone, all-to-all included, and bytes. */
typedef enum {
  PP_MEASURED_FORWARD, PP_MEASURED_FULL, PP_MEASURED_INPUT, PP_MEASURED_WEIGHT,
  PP_MEASURED_PARAMETERS, PP_MEASURED_GRADIENTS,
  PP_MEASURED_STORED, PP_MEASURED_PENDING,   /* of one microbatch from F to I, and from I to W */
  PP_MEASURED_TRANSIENT,                     /* the largest temporary */
  PP_MEASURED_QUANTITIES
} pp_measured_quantity;

typedef struct {
  pp_stage blocks;
  double of[PP_MEASURED_QUANTITIES];   /* NAN: not measured; F and B are always there */
  double pair;                         /* seconds of a forward and a backward of such stages at once; NAN: not measured */
  pp_host_times host;                  /* what handing them over takes the host; read where the profile has_hosts */
} pp_profile_stage;

typedef struct {
  int stages;
  pp_profile_stage stage[PP_MAX_LAYERS];
  bool has_hosts;     /* do the stages say what their actions take their hosts? */
  pp_layout layout;   /* TP, CP, EP, expert TP and DP that it was measured at */
} pp_profile;

/* What measured costs are of computed ones. pair_share: F&B over F + B; 0: not measured. */
typedef struct {
  double of[PP_MEASURED_QUANTITIES][PP_BLOCKS];
  double pair_share;
} pp_profile_factors;

/*
** `seconds` and `bytes`: as computed for the profile's layout (bytes of one copy). PP_INVALID when no stage holds a layer, when F or B of a
** stage is not positive, or when I or W, given alone, is more than B; the field is named. O(stages).
*/
pp_status pp_profile_factors_of(const pp_profile *profile, const pp_block_seconds seconds[PP_BLOCKS],
                                const pp_block_bytes bytes[PP_BLOCKS], pp_profile_factors *out, pp_error *error);

/* Scales computed costs. A computed cost of nothing stays nothing. */
void pp_profile_scale_seconds(const pp_profile_factors *factors, pp_block_seconds blocks[PP_BLOCKS]);
void pp_profile_scale_bytes(const pp_profile_factors *factors, pp_block_bytes blocks[PP_BLOCKS]);

/* What handing over the actions of a stage takes its host, from a profile that has_hosts. O(stages of the profile) to make, then O(1) a stage. */
typedef struct {
  double seconds[4][PP_BLOCKS];   /* of F, I, W and B, of a block */
  double beyond[4];               /* of an action, however many layers its stage holds */
  bool waits[4], experts_wait;    /* experts_wait: only stages that hold layers with experts */
} pp_profile_hosts;

void pp_profile_hosts_of(const pp_profile *profile, pp_profile_hosts *out);
void pp_profile_host_of_stage(const pp_profile_hosts *hosts, const pp_stage *blocks, pp_host_times *out);

#endif
