-- layout.lua: the degrees of a layout as people write them: "P 16 · M 120 · TP 1 · EP 64 · DP 128".

local format = require "pipeplan.report.format"

local layout = {}

-- "TP 8 · CP 2 · EP 64 · DP 128": what is 1 and could not be otherwise is left out.
local function spread(parallelism, separator)
  local parts = {}
  local function add(name, degree, always)
    if degree and (always or degree > 1) then parts[#parts + 1] = name .. " " .. format.integer(degree) end
  end
  add("TP", parallelism.tensor, true)
  add("CP", parallelism.context)
  add("EP", parallelism.expert)
  add("ETP", parallelism.expert_tensor and parallelism.expert_tensor ~= parallelism.tensor and parallelism.expert_tensor or 1)
  add("DP", parallelism.data, true)
  return table.concat(parts, separator or " · ")
end

-- "P 16 · V 2 · M 120 · TP 1 · …"
function layout.line(parallelism, microbatches, separator)
  separator = separator or " · "
  local parts = {}
  if parallelism.pipeline > 1 then parts[#parts + 1] = "P " .. parallelism.pipeline end
  if parallelism.virtual > 1 then parts[#parts + 1] = "V " .. parallelism.virtual end
  if microbatches and parallelism.pipeline > 1 then parts[#parts + 1] = "M " .. format.integer(microbatches) end
  parts[#parts + 1] = spread(parallelism, separator)
  return table.concat(parts, separator)
end

local names = { { "pipeline", "P" }, { "tensor", "TP" }, { "context", "CP" }, { "expert", "EP" }, { "expert_tensor", "ETP" } }

-- What differs from the plan's layout: "P 8 TP 2", or "same". DP follows from the rest. Without a plan the whole layout.
function layout.difference(other, own)
  if not own then return layout.line(other, nil, " ") end
  local parts = {}
  for _, name in ipairs(names) do
    local degree = other[name[1]]
    local said = name[1] == "pipeline" and degree == 1  -- "no pipeline" stands beside it
    if degree ~= own[name[1]] and not said then parts[#parts + 1] = name[2] .. " " .. degree end
  end
  return #parts > 0 and table.concat(parts, " ") or "same"
end

return layout
