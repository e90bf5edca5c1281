-- SPDX-License-Identifier: Apache-2.0
-- The sweep of examples/slurm as an array on a real Slurm: what its tasks wrote, one of them killed and requeued, is merged to the bytes of one
-- process. tests/slurm/sweep does it, by the commands of docs/slurm.md, with as many specs as it is told.

local slurm = require "slurm"

local missing = slurm.missing { "slurmctld", "slurmd", "munged", "sbatch" }

it("a sweep in shards, one killed and requeued, one done anew, merges to the bytes of one process", function()
  if missing then return pending(missing) end
  local handle = io.popen("env -u LD_PRELOAD tests/slurm/sweep 200 2>&1; echo \"status $?\"")
  local text = handle:read "a"
  handle:close()
  assert.matches("status 0\n$", text)
  assert.matches("killed and requeued: task 2", text, 1, true)
  assert.matches("200 plans, equal to those of one process", text, 1, true)
end)
