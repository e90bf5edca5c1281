-- campus.lua: an academic cluster of A100 nodes. Runs are small and have an allocation; exceptions end with the term that they are for.

site "campus"

set     { small_run_gpus = 32, owner = "hpc office", why = "allocations of more than four nodes are rare" }
reject  { id = "over_allocation", gpu_hours = over(200000), owner = "hpc office",
          why = "an allocation has 200,000 GPU-hours a year", message = "{gpu_hours} GPU-hours: an allocation has 200,000" }
reject  { id = "too_long", training_days = over(60), owner = "hpc office",
          why = "the machine is down for maintenance every two months", message = "{training_days} days: nothing runs longer than 60 here" }
disable { id = "short_run", reason = "course projects train on less than 1 B tokens", expires = "2027-03-31", owner = "teaching" }
set     { memory_headroom = "5%", reason = "the new driver keeps less for itself", expires = "2027-06-30", owner = "hpc office" }

-- SPDX-License-Identifier: Apache-2.0
