/* SPDX-License-Identifier: Apache-2.0 */
/*
** plan_many.c: 100 specs, planned under one policy by a program in C:
**   cc -o plan_many examples/embed/plan_many.c $(pkg-config --cflags --libs pipeplan) && ./plan_many [OPTIONS as JSON]
** The plans are lines of JSON on standard output. Exit status: the first that is neither planned nor refused; 0.
*/
#include <pipeplan.h>
#include <stdio.h>

static const char spec_format[] =
  "{ \"cluster\": { \"gpus\": %d, \"accelerator\": \"H100-SXM\", \"network\": { \"fabric\": \"infiniband\", \"per_gpu\": \"400Gbps\" } },"
  "  \"model\": { \"architecture\": \"dense\", \"total\": \"70B\", \"layers\": 80 },"
  "  \"training\": { \"tokens\": \"1T\", \"global_batch_size\": %d },"
  "  \"parallelism\": { \"tensor\": 8, \"pipeline\": 4 } }";

static int plan_all(pipeplan *planner) {
  int planned = 0;
  for (int nodes = 4; nodes <= 40; nodes += 4)
    for (int batch = 256; batch <= 2560; batch += 256) {
      char spec[1024];
      int status;
      snprintf(spec, sizeof spec, spec_format, 8 * nodes, batch);
      status = pipeplan_plan(planner, spec);
      puts(pipeplan_answer(planner));
      if (status > PIPEPLAN_REFUSED) return status;  /* the answer says why there is no plan */
      planned += status == PIPEPLAN_OK;
    }
  fprintf(stderr, "%d planned\n", planned);
  return PIPEPLAN_OK;
}

int main(int argc, char **argv) {
  pipeplan *planner;
  int status = pipeplan_open(argc > 1 ? argv[1] : NULL, &planner);
  if (status == PIPEPLAN_OK) status = plan_all(planner);
  else fprintf(stderr, "%s\n", pipeplan_answer(planner));
  pipeplan_close(planner);
  return status;
}
