-- SPDX-License-Identifier: Apache-2.0
-- impossible.lua: what no candidate can be, whatever the policy: it follows from what the fields mean. Analysis leaves it out, or says so
-- where it names it. Each is conditions that cannot hold together, in the shape of a rule, and why.

local conditions = require "pipeplan.policy.conditions"

local function never(why, ...)
  return { id = why, why = why, conditions = conditions.sort { ... } }
end

local function over(field, value) return { field = field, op = "over", value = value } end
local function at_most(field, value) return { field = field, op = "at_most", value = value } end
local function is(field, value) return { field = field, op = "equal", value = value } end
local function none_of(field, values) return { field = field, op = "none_of", values = values } end

return {
  never("a dense model has no experts to spread", is("architecture", "dense"), over("expert_parallel", 1)),
  never("a dense model has no experts", is("architecture", "dense"), over("experts", 0)),
  never("without expert parallelism there is no all-to-all", at_most("expert_parallel", 1), over("alltoall_fraction", 0)),
  never("without a pipeline there is no schedule", at_most("pipeline_parallel", 1), none_of("schedule", { "none" })),
  never("a pipeline has a schedule", over("pipeline_parallel", 1), is("schedule", "none")),
}
