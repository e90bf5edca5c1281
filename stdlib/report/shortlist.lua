-- SPDX-License-Identifier: Apache-2.0
-- shortlist.lua: the layouts that are worth measuring as text: what each takes, what a run of it tells, and the options that plan it.

local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"

local shortlist = {}

local width = 100
local margin = "    "

local function percent(fraction)
  if math.abs(fraction) < 0.0005 then return "as fast" end
  return format.percent(math.abs(fraction)) .. (fraction > 0 and " slower" or " faster")
end

-- "DualPipeV at P 8 · M 60 · … , microbatches of 2, recompute norm": a layout with its recipe.
function shortlist.label(entry)
  local words = format.schedule(entry.schedule) .. " at " .. layout.line(entry.parallelism, entry.microbatches, ", ")
  words = words .. ", microbatches of " .. entry.micro_batch_size
  words = words .. ", " .. (#entry.recompute > 0 and "recompute " .. table.concat(entry.recompute, " and ") or "no recompute")
  return words .. (entry.sharding ~= "optimizer" and ", sharding " .. entry.sharding or "")
end

local function entry_lines(i, entry)
  local takes = i == 1 and "the plan" or percent(entry.slower_fraction) .. string.format(" ± %.0f %%", 100 * entry.error_fraction)
  local lines = format.wrap(shortlist.label(entry), width, format.pad(tostring(i), #margin), margin)
  local function add(words)
    for _, line in ipairs(format.wrap(words, width, margin, margin .. "  ")) do lines[#lines + 1] = line end
  end
  add(string.format("%s a step, %s; %s on the fullest rank, %s", format.seconds(entry.step_seconds), takes, format.bytes(entry.peak_bytes),
                    entry.fit))
  add("teaches " .. entry.teaches)
  lines[#lines + 1] = margin .. (entry.options ~= "" and entry.options or "(the spec as it is)")   -- whole, to be copied
  return lines
end

-- plan: with a shortlist; wanted: how many layouts were asked for.
function shortlist.text(plan, wanted)
  local list = plan.shortlist
  local errors = plan.expected_error.comparisons
  local lines = format.wrap(string.format(
    "%s, %s tokens on %s %s: %s worth measuring. Nine of ten comparisons of schedules are within %.0f %%, of layouts within %.0f %%, of "
    .. "a pipeline with none within %.0f %%: within that only a run decides.", plan.model.name, format.count(plan.training.tokens),
    format.integer(plan.cluster.gpus), plan.cluster.accelerator, format.plural(#list, "layout"), 100 * errors.schedule,
    100 * errors.layout, 100 * errors.pipeline), width)
  if #list < wanted then
    lines[#lines + 1] = #list == 1 and "Nothing else lies within the error of its comparison: there is nothing to measure it against."
                        or "No more than these lie within the error of their comparison."
  end
  for i, entry in ipairs(list) do
    lines[#lines + 1] = ""
    for _, line in ipairs(entry_lines(i, entry)) do lines[#lines + 1] = line end
  end
  return format.page(lines)
end

return shortlist
