-- SPDX-License-Identifier: Apache-2.0
-- terms.lua: what the seconds of a plan's layer are made of, as the cost model has them: for --explain.

local blocks = require "pipeplan.base.blocks"
local engine = require "engine"
local format = require "pipeplan.base.format"
local recipe = require "pipeplan.input.recipe"

local terms = {}

-- Name of a term and what it is called, in the order of reading.
local names = { { "products", "products" }, { "grouped", "experts" }, { "attention", "attention" }, { "moved", "element-wise" },
                { "accumulated", "gradients added" }, { "tensor", "TP" }, { "ring", "CP" }, { "latency", "latency" },
                { "recompute", "again" }, { "host", "waiting for the host" } }

local function pass(name, parts)
  local words = {}
  for _, term in ipairs(names) do
    if parts[term[1]] > 0 then words[#words + 1] = term[2] .. " " .. format.ms(parts[term[1]]) end
  end
  return name .. " " .. (#words > 0 and table.concat(words, " + ") or "nothing")
end

-- { block = { forward, input, weight } } of the plan's layout, as engine.cost.terms has it.
function terms.of(request, plan)
  local at = plan.parallelism
  return engine.cost.terms {
    model = request.model.shape, training = recipe.training(request, at), network = recipe.network(request),
    device = recipe.device(request, plan.alltoall_kernel and plan.alltoall_kernel.name or false),
    layout = { tensor = at.tensor, context = at.context, expert = at.expert, expert_tensor = at.expert_tensor, data = at.data,
               pipeline = at.pipeline, chunks = at.virtual },
  }
end

-- Of the layer that the model has most of, in milliseconds.
function terms.text(request, plan)
  local block = blocks.most(request.model.shape, engine.model.stages(request.model.shape, 1)[1])
  local parts = terms.of(request, plan)[block]
  return string.format("ms of %s layer: %s; %s; %s", blocks.title(request.model.shape, block), pass("F", parts.forward),
                       pass("I", parts.input), pass("W", parts.weight))
end

return terms
