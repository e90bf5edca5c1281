-- SPDX-License-Identifier: Apache-2.0
-- price.lua: what the seconds of a step are made of, by what a run could teach: the terms of a layout's price. They sum to the step.

local lists = require "pipeplan.base.lists"
local terms = require "pipeplan.plan.terms"

local price = {}

-- Each: key, and what a sentence calls it. compute: what no other term has: products, attention, element-wise kernels, waiting for the
-- host, and what stages differ by.
price.terms = {
  { "compute", "compute" }, { "recompute", "what is computed again" }, { "tensor", "TP's collectives" }, { "context", "CP's ring" },
  { "expert", "the all-to-all that nothing hides" }, { "pipeline", "hand-overs between stages" }, { "bubble", "the bubble" },
  { "data", "gradients and parameters on their way" }, { "optimizer", "the update" },
}

price.title = {}
for _, term in ipairs(price.terms) do price.title[term[1]] = term[2] end

-- Seconds of a step in which a rank computes again, on the mean of its ranks. A profile has its recipe's times whole.
local function recompute_seconds(request, evaluation, kernel)
  if request.profile or not next(request.training.recompute) then return 0 end
  local parallelism = { tensor = evaluation.tensor, context = evaluation.context, expert = evaluation.expert, data = evaluation.data,
                        expert_tensor = evaluation.expert_tensor, pipeline = evaluation.pipeline, virtual = evaluation.virtual }
  local of_block, sum = terms.of(request, { parallelism = parallelism, alltoall_kernel = kernel and { name = kernel } }), 0
  for _, stage in ipairs(evaluation.stages) do
    for _, name in ipairs(lists.sorted_keys(stage)) do sum = sum + stage[name] * of_block[name].input.recompute end
  end
  return sum * evaluation.microbatches / evaluation.pipeline
end

-- evaluation: candidates:evaluate's; request: with its recipe chosen; kernel: name of the all-to-all kernel, or false.
function price.of(request, evaluation, kernel)
  local step = evaluation.step
  local out = {
    recompute = recompute_seconds(request, evaluation, kernel),
    tensor = evaluation.tensor_seconds, context = evaluation.context_exposed_seconds,
    pipeline = evaluation.hop_exposed_seconds or 0,
    data = step.gradient_sync + step.parameter_sync + step.replicas + step.sharding + step.mirror, optimizer = step.optimizer,
  }
  -- a rank that waits for a hand-over is idle: of its idle time what hand-overs expose comes first, and the bubble is the rest
  local idle = evaluation.bubble_fraction * evaluation.makespan_seconds
  -- what the mean rank is busy with beyond its compute is the all-to-all that nothing hides
  out.expert = evaluation.expert > 1 and math.max(0, evaluation.makespan_seconds - idle - evaluation.ideal_step_seconds) or 0
  out.pipeline = math.min(out.pipeline, idle)
  out.bubble = idle - out.pipeline
  out.compute = evaluation.step_seconds
  for _, term in ipairs(price.terms) do
    if term[1] ~= "compute" then out.compute = out.compute - out[term[1]] end
  end
  return out
end

return price
