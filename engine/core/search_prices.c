/* SPDX-License-Identifier: Apache-2.0 */
/*
** search_prices.c: prices of a search's layouts: one for all candidates of a layout. See search_prices.h.
*/
#include "core/search_prices.h"

#include "core/meter.h"

static bool same_layout(const pp_layout *a, const pp_layout *b) {
  return a->tensor == b->tensor && a->context == b->context && a->expert == b->expert && a->expert_tensor == b->expert_tensor &&
         a->data == b->data && a->pipeline == b->pipeline;
}

/* Seconds of a call of the row's kernel beside its transfers. */
static double latency_of(const pp_search *search, size_t row) {
  for (size_t i = 0; pp_search_has_kernel(search, row) && i < search->latencies; i++)
    if (search->latency[i].kernel == search->column[PP_COLUMN_KERNEL][row]) return search->latency[i].seconds;
  return pp_search_problem(search, row)->device->alltoall_latency;
}

/* Candidates of one layout stand together: V differs last. Those of one kernel nearly always do too, so that neighbours tell. */
static bool same_price(const pp_search *search, size_t row) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  return row > 0 && candidate->choice == candidate[-1].choice && same_layout(&candidate->layout, &candidate[-1].layout) &&
         latency_of(search, row) == latency_of(search, row - 1);
}

static bool priced(const pp_search *search) {
  bool all = search->costs != NULL;
  for (size_t row = 0; all && row < search->candidates.count; row++)
    all = search->costs[search->layout_of[row]].kernel_latency == latency_of(search, row);
  return all;
}

/* Layouts that are priced, found by what their blocks' seconds depend on: of each such kind the first one. */
typedef struct {
  struct { size_t row, price; } *slot;   /* price: its index and one, 0: the slot is free */
  size_t slots;                          /* a power of two, more than prices */
} seen_prices;

/* The slot of the row's kind: free, or that of the first layout of its kind. */
static size_t slot_of(const pp_search *search, const seen_prices *seen, size_t row) {
  const pp_candidate *candidate = &search->candidates.candidate[row];
  const pp_layout *layout = &candidate->layout;
  uint64_t hash = (uint64_t)candidate->choice;
  const int part[] = { layout->tensor, layout->context, layout->expert, layout->expert_tensor };
  for (int i = 0; i < 4; i++) hash = (hash ^ (uint64_t)part[i]) * 0x9E3779B97F4A7C15u;   /* 2^64 over the golden ratio: Knuth, TAOCP 3, §6.4 */
  for (size_t at = (size_t)(hash >> 32) & (seen->slots - 1);; at = (at + 1) & (seen->slots - 1)) {
    if (!seen->slot[at].price) return at;
    const pp_candidate *other = &search->candidates.candidate[seen->slot[at].row];
    if (other->choice == candidate->choice && pp_price_same_seconds(pp_search_problem(search, row)->training, &other->layout, layout)) return at;
  }
}

/* The row's prices: those of before, as far as the kernel's latency leaves them. */
static pp_status price_row(const pp_search *search, size_t row, const pp_layout_costs *alike, pp_layout_costs *out, pp_error *error) {
  const pp_problem *problem = pp_search_problem(search, row);
  const pp_layout *layout = &search->candidates.candidate[row].layout;
  const double latency = latency_of(search, row);
  if (!search->costs) return pp_price_layout(problem, layout, latency, alike, out, error);
  *out = search->costs[search->layout_of[row]];
  return out->kernel_latency == latency ? PP_OK : pp_price_kernel(problem, layout, latency, alike, out, error);
}

/* Prices of all layouts, in the order of the rows. */
static pp_status fill_prices(const pp_search *search, seen_prices *seen, pp_layout_costs *costs, pp_error *error) {
  size_t prices = 0;
  pp_status status = PP_OK;
  for (size_t row = 0; row < search->candidates.count && status == PP_OK; row++) {
    if (same_price(search, row)) continue;
    const size_t at = slot_of(search, seen, row), first = seen->slot[at].price;
    status = price_row(search, row, first ? &costs[first - 1] : NULL, &costs[prices++], error);
    if (!first) seen->slot[at].row = row, seen->slot[at].price = prices;
  }
  return status;
}

pp_status pp_search_price(pp_search *search, pp_error *error) {
  size_t rows = search->candidates.count, prices = 0;
  seen_prices seen = { NULL, 2 };
  if (priced(search)) return PP_OK;
  for (size_t row = 0; row < rows; row++) prices += !same_price(search, row);
  while (seen.slots <= 2 * prices) seen.slots *= 2;
  pp_layout_costs *costs = pp_allocate(prices * sizeof *costs);
  seen.slot = pp_allocate_zeros(seen.slots * sizeof *seen.slot);
  pp_status status = costs && seen.slot ? fill_prices(search, &seen, costs, error)
                                        : pp_fail(error, PP_NO_MEMORY, "not enough memory for %zu layouts", prices);
  pp_free(seen.slot);
  if (status != PP_OK) {
    pp_free(costs);
    return status;
  }
  pp_free(search->costs);
  search->costs = costs;
  prices = 0;
  for (size_t row = 0; row < rows; row++) {
    prices += !same_price(search, row);
    search->layout_of[row] = (uint32_t)(prices - 1);
  }
  return PP_OK;
}
