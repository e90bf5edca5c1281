-- SPDX-License-Identifier: Apache-2.0
-- difference.lua: changes between two policies as text and JSON.

local difference = require "pipeplan.analysis.difference"
local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"

local report = {}

local titles = { accepted = "newly accepted", dropped = "no longer planned", replanned = "planned differently",
                 reasoned = "same outcome, other reasons", failed = "without an answer" }

function report.count(changes, kind)
  local count = 0
  for _, change in ipairs(changes) do
    if change.kind == kind then count = count + 1 end
  end
  return count
end

local words = { gpus_used = "GPUs used", alltoall_kernel = "all-to-all kernel", step_seconds = "step", gpu_hours = "GPU-hours" }

local function shown(field, value)
  if value == nil then return "none" end
  if field == "schedule" then return format.schedule(value) end
  if field == "step_seconds" then return format.seconds(value) end
  if field == "gpu_hours" then return format.count(math.floor(value + 0.5)) end
  return math.type(value) == "integer" and format.integer(value) or tostring(value)
end

-- "recompute none → full; step 16.7 s → 21.9 s (+31.1 %)"
local function differences_of(change)
  local parts = {}
  for i, one in ipairs(change.differs) do
    parts[i] = string.format("%s %s → %s", words[one.field] or one.field:gsub("_", " "), shown(one.field, one.before),
                             shown(one.field, one.after))
    if one.field == "step_seconds" then
      local more = one.after / one.before - 1
      parts[i] = string.format("%s (%s%s)", parts[i], more < 0 and "−" or "+", format.percent(math.abs(more)))
    end
  end
  return table.concat(parts, "; ")
end

function report.text(changes, specs)
  local lines, last = {}, nil
  for _, change in ipairs(changes) do
    local heading = change.kind .. change.rule
    if heading ~= last then
      if last then lines[#lines + 1] = "" end
      lines[#lines + 1] = titles[change.kind] .. (change.rule ~= "none" and ": " .. change.rule or "")
      last = heading
    end
    lines[#lines + 1] = "  " .. change.name
    lines[#lines + 1] = "    before: " .. change.before.line
    lines[#lines + 1] = "    after:  " .. change.after.line
    if #change.differs > 0 then lines[#lines + 1] = "    differs: " .. differences_of(change) end
  end
  if last then lines[#lines + 1] = "" end
  local parts = {}
  for _, kind in ipairs(difference.kinds) do
    local count = report.count(changes, kind)
    if count > 0 and kind ~= "failed" then parts[#parts + 1] = count .. " " .. titles[kind] end
  end
  local failed = report.count(changes, "failed")
  lines[#lines + 1] = string.format("%d of %d specs change%s%s", #changes - failed, specs,
                                    #parts > 0 and ": " .. table.concat(parts, ", ") or "",
                                    failed > 0 and string.format("; %d %s", failed, titles.failed) or "")
  return format.page(lines)
end

local function side(outcome)
  return { status = outcome.status, outcome = outcome.line, reasons = json.array(outcome.reasons) }
end

function report.json(changes, specs)
  local list = json.array {}
  for i, change in ipairs(changes) do
    local differs = json.array {}
    for j, one in ipairs(change.differs) do
      local function said(value) return value == nil and json.null or value end
      differs[j] = { field = one.field, before = said(one.before), after = said(one.after) }
    end
    list[i] = { kind = change.kind, rule = change.rule, name = change.name, spec = change.spec, before = side(change.before),
                after = side(change.after), differs = differs }
  end
  return documents.encode("changes", { changes = list, specs = specs }, { indent = 2 }) .. "\n"
end

return report
