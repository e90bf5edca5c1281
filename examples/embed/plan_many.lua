-- SPDX-License-Identifier: Apache-2.0
-- plan_many.lua: 100 specs, planned under one policy by stock Lua:  lua5.4 examples/embed/plan_many.lua [POLICY.lua]
-- The plans are lines of JSON on standard output; which run takes the fewest GPU-hours is said at the end, on standard error.

local pipeplan = require "pipeplan"

local site = pipeplan.policy(arg[1], { date = "2026-12-01" })  -- loaded once; a policy that cannot be raises an error that says why
local planned, best = 0, nil

for nodes = 4, 40, 4 do
  for batch = 256, 2560, 256 do
    local plan = site:plan_spec {
      cluster = { gpus = 8 * nodes, accelerator = "H100-SXM", network = { fabric = "infiniband", per_gpu = "400Gbps" } },
      model = { architecture = "dense", total = "70B", layers = 80 },
      training = { tokens = "1T", global_batch_size = batch },
      parallelism = { tensor = 8, pipeline = 4 },
    }
    print(pipeplan.json(plan))
    if plan.status == "planned" then
      planned = planned + 1
      if not best or plan.gpu_hours < best.gpu_hours then best = plan end
    end
  end
end

io.stderr:write(string.format("%d planned; fewest GPU-hours: %.0f on %d GPUs, batch %d, %s\n", planned, best.gpu_hours, best.cluster.gpus,
                              best.global_batch_size, best.schedule))
