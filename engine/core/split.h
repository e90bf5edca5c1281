/*
** split.h: how many layers each stage gets, so that no rank is the last to finish: embedding, head and MTP weigh as much time as they take.
*/
#ifndef PP_SPLIT_H
#define PP_SPLIT_H

#include "core/layout.h"

/* Seconds of one block for one microbatch, forward and backward. */
typedef struct {
  double seconds[PP_BLOCKS];
} pp_block_weights;

/* How a rank's stages share its layers: as equal in time as may be, or in number, which in a V or with two chains holds less memory. */
typedef enum { PP_SHARE_TIME, PP_SHARE_LAYERS } pp_split_share;

/*
** layers[stages], each at least 1, adding up to the model's: group_of[s] < groups says which stages one rank executes (in bidirectional
** schedules: a pair of ranks). Keeps the heaviest group as light as it can by moving single layers: within one layer of the least possible
** maximum, derived: layers of one kind cost the same and no group ends more than one layer above the mean unless its ends alone do. Of
** equals the last group or stage gets the layer. Group g gets at most most[g] layers (NULL: any number), which may cost time but saves
** memory. Needs layers ≥ stages, and Σ most ≥ layers. O(layers + stages × (groups + moves)).
*/
void pp_split_layers(const pp_model *model, const pp_block_weights *weights, int stages, const int *group_of, int groups,
                     pp_split_share share, const int *most, int *layers);

#endif
