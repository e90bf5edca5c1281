-- SPDX-License-Identifier: Apache-2.0
-- phases.lua: the plans of one training's phases under each other, as text and as JSON, with what lies between them. See
-- stdlib/plan/phases.lua.

local documents = require "pipeplan.base.documents"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layout = require "pipeplan.base.layout"

local report = {}

local width, indent = 100, 10

local function hours(number) return format.count(math.floor(number + 0.5)) end

local function fullest(plan)
  local most = 0
  for _, rank in ipairs(plan.memory.ranks) do most = math.max(most, rank.total_bytes) end
  return most
end

local function described(phase)
  local plan = phase.plan
  if phase.status ~= "planned" then return { string.format("%s: %s", phase.status, table.concat(phase.reasons, "; ")) } end
  return {
    string.format("%s tokens in sequences of %s, batch %s: %s", format.count(plan.training.tokens),
                  format.integer(plan.training.sequence_length), format.integer(plan.global_batch_size), plan.cluster.accelerator),
    string.format("%s · %s", format.schedule(plan.schedule), layout.line(plan.parallelism, plan.microbatches)),
    string.format("step %s, MFU %s; fullest rank %s", format.seconds(plan.step_seconds), format.percent(plan.mfu_fraction),
                  format.bytes(fullest(plan))),
    string.format("%s days, %s GPU-hours (time ±%s)", format.digits(plan.training_days), hours(plan.gpu_hours),
                  format.percent(plan.expected_error.time_fraction)),
  }
end

local function value(of)
  if of == nil then return "–" end
  return math.type(of) == "integer" and format.integer(of) or tostring(of)
end

local function between(change)
  if change.moves == nil then return { "not known: there is no plan on one side" } end
  local parts, lines = {}, {}
  for i, row in ipairs(change.fields) do parts[i] = string.format("%s %s → %s", row.field, value(row.from), value(row.to)) end
  lines[1] = #parts > 0 and table.concat(parts, "; ") or "the same layout"
  if not change.moves then
    lines[2] = "every GPU holds what it held: nothing moves"
    return lines
  end
  lines[2] = string.format("a checkpoint of %s is written and read in the new layout%s; the fullest GPU then holds %s of it",
                           format.bytes(change.checkpoint_bytes),
                           change.seconds and ", " .. format.seconds(change.seconds) .. " both ways" or " (cluster.storage says how fast)",
                           format.bytes(change.most_bytes))
  return lines
end

function report.text(told)
  local lines = {}
  local function say(label, list)
    for i, words in ipairs(list) do
      for j, one in ipairs(format.wrap(words, width - indent)) do
        lines[#lines + 1] = (format.pad(i == 1 and j == 1 and label or "", indent) .. one):gsub("%s+$", "")
      end
    end
  end
  for i, phase in ipairs(told.phases) do
    say("phase " .. i, { phase.name })
    say("", described(phase))
    if told.changes[i] then
      lines[#lines + 1] = ""
      say(string.format("%d → %d", i, i + 1), between(told.changes[i]))
    end
    lines[#lines + 1] = ""
  end
  local total = told.total
  say("in all", { total and string.format("%s days, %s GPU-hours%s, without what lies between", format.digits(total.training_days),
                                          hours(total.gpu_hours), total.cost and ", " .. hours(total.cost) .. " in cost" or "")
                  or "not every phase is planned" })
  return format.page(lines)
end

-- shape(plan) → the plan as its document has it.
function report.json(told, shape)
  local list, changes = {}, {}
  for i, phase in ipairs(told.phases) do
    list[i] = { name = phase.name, plan = shape(phase.plan) }
    local change = told.changes[i]
    if change then
      local fields = {}
      for j, row in ipairs(change.fields) do
        fields[j] = { field = row.field, from = row.from == nil and json.null or row.from, to = row.to == nil and json.null or row.to }
      end
      changes[i] = { fields = json.array(fields), moves = change.moves == nil and json.null or change.moves,
                     checkpoint_bytes = change.checkpoint_bytes or json.null, most_bytes = change.most_bytes or json.null,
                     seconds = change.seconds or json.null }
    end
  end
  return documents.encode("phases", { phases = json.array(list), changes = json.array(changes), total = told.total or json.null },
                          { indent = 2 }) .. "\n"
end

return report
