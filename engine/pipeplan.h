/* SPDX-License-Identifier: Apache-2.0 */
/*
** pipeplan.h: plans from a program of one's own: specs in, plans out, both as JSON text. Link with `pkg-config --cflags --libs pipeplan`.
**
** A planner is a policy that is loaded once and plans any number of specs: each with the whole budget, each the same bytes whatever came
** before it. Two threads may use a planner each at the same time, not one together. No call prints, ends the process or leaves a file open.
** The caller's locale is left alone, and changes nothing. Where its stack has less than 2 MiB, a call runs in a thread of its own.
*/
#ifndef PIPEPLAN_H
#define PIPEPLAN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pipeplan pipeplan;

/* The exit statuses of the program. */
enum {
  PIPEPLAN_OK = 0,               /* planned; or, of pipeplan_open, loaded */
  PIPEPLAN_REFUSED = 1,          /* refused or rejected: the plan says why, and what to do instead */
  PIPEPLAN_USAGE = 2,            /* the spec, or the options, cannot be read */
  PIPEPLAN_POLICY_ERROR = 3,     /* a rule raised an error */
  PIPEPLAN_OVER_BUDGET = 4,      /* of a policy, or no memory */
  PIPEPLAN_NOTHING = 5,          /* a policy that states nothing */
  PIPEPLAN_UNLOADABLE = 6,       /* a policy that cannot be loaded */
  PIPEPLAN_BUG = 70
};

/*
** options: NULL, or JSON text such as {"policy": ["company.lua", "hall.lua"], "set": {"tie_fraction": "2%"}, "date": "2026-12-01",
** "in_force": true}: policies laid over the default one, in order; parameters; the day at which loosened rules expire (default: today in
** UTC); whether the policies of this machine hold too, as for the program (default: no).
** *planner: for pipeplan_close, whatever the status; NULL where there is no memory for it.
*/
int pipeplan_open(const char *options, pipeplan **planner);

/* spec: JSON text, what a spec file holds; paths in it are relative to the current folder. Without a planner, NULL, there is no memory. */
int pipeplan_plan(pipeplan *planner, const char *spec);

/*
** What came of the last call, as a line of JSON without its end: the plan, as `pipeplan plan --jsonl` prints it, or
** {"error":{"message":…,"status":…}}; "" after a pipeplan_open that went well. It is there until the next call on this planner. Of NULL: that there is no memory.
*/
const char *pipeplan_answer(const pipeplan *planner);

/* NULL is as good. */
void pipeplan_close(pipeplan *planner);

/* "0.1.0" */
const char *pipeplan_version(void);

#ifdef __cplusplus
}
#endif
#endif
