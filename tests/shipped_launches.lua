-- SPDX-License-Identifier: Apache-2.0
-- shipped_launches.lua: what the examples and README plan, as launches of every format: { title, object, base, ramp, launches = { { format,
-- text or problem, plan, request }, … } } each. Where there is no plan, of what is recommended instead.

require "planning"  -- first: it loads the module
local json = require "pipeplan.base.json"
local lists = require "pipeplan.base.lists"
local planner = require "pipeplan.plan.init"
local policy = require("pipeplan.policy.load").load { date = "2026-12-01" }
local spec = require "pipeplan.input.spec"
local launches = require "pipeplan.report.launch.formats"
local writer = require "pipeplan.report.launch.init"

local shipped = {}

local files = { "deepseek-v3", "deepseek-v3-ramp", "kimi-k2", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b", "7b-fits-one-gpu",
                "measured-4xH200", "two-ranks-on-a-cpu" }

-- README's command line as a spec.
local command = { cluster = { gpus = 256, accelerator = "H100-SXM", network = { per_gpu = "400Gbps" } },
                  model = "examples/models/llama-3-70b.json", training = { tokens = "2T" } }

-- The plan for a framework, or what is recommended where there is none, and its request.
local function planned(object, base, framework)
  local request = spec.from_table(lists.with(object, { framework = framework }), base)
  local plan, _, asked = planner.plan { request = request, policy = policy }
  for _, each in ipairs(plan.status ~= "planned" and plan.advice or {}) do
    if each.id == "recommend" then
      asked = spec.laid(asked, each.changes)
      return planner.plan { request = asked, policy = policy }, asked
    end
  end
  return plan, asked
end

local function of(title, object, base, formats)
  local made, list = {}, {}
  local function plan_for(framework)
    made[framework] = made[framework] or table.pack(planned(object, base, framework))
    return made[framework][1], made[framework][2]
  end
  for i, name in ipairs(formats) do
    local plan, request = plan_for(launches.framework[name])
    local text, problem = writer.write(name, plan, request, #formats > 1 and plan_for or nil)
    list[i] = { format = name, text = text, problem = problem, plan = plan, request = request }
  end
  return { title = title, object = object, base = base, launches = list, ramp = type(object.training.global_batch_size) == "table" }
end

local kept = {}

-- Of every format, or of one.
function shipped.list(format)
  local key, formats = format or "every", format and { format } or launches.names
  if kept[key] then return kept[key] end
  local list = { of("README's Llama-3-70B", command, ".", formats) }
  for _, name in ipairs(files) do list[#list + 1] = of(name, json.read("examples/specs/" .. name .. ".json"), "examples/specs", formats) end
  kept[key] = list
  return list
end

-- for _, title, plan, request in shipped.each(format): of those that are written.
function shipped.each(format)
  return coroutine.wrap(function()
    for i, each in ipairs(shipped.list(format)) do
      local launch = each.launches[1]
      if launch.text then coroutine.yield(i, each.title, launch.plan, launch.request) end
    end
  end)
end

return shipped
