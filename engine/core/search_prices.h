/* SPDX-License-Identifier: Apache-2.0 */
/*
** search_prices.h: what a search's layouts cost. Internal to engine/core.
*/
#ifndef PP_SEARCH_PRICES_H
#define PP_SEARCH_PRICES_H

#include "core/search.h"

/* What the row's candidate is one of. */
static inline const pp_problem *pp_search_problem(const pp_search *search, size_t row) {
  return &search->problem[search->candidates.candidate[row].choice];
}

/* Of the column: false is 0, true 1, and only a name is a kernel. */
static inline bool pp_search_has_kernel(const pp_search *search, size_t row) {
  return search->column[PP_COLUMN_KERNEL][row] >= 2;
}

/*
** Fills costs and layout_of for the kernels that the rows have now; what a kernel's latency leaves of the prices of before is kept. O(rows), and
** a price for each layout, whose blocks' seconds are computed once for all that differ in depth and replicas alone. After a failure the prices are
** those of before: PP_NO_MEMORY, or as pp_price_layout.
*/
pp_status pp_search_price(pp_search *search, pp_error *error);

#endif
