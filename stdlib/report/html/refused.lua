-- SPDX-License-Identifier: Apache-2.0
-- refused.lua: the page of a spec that is not planned: why, what instead as a whole plan, which changes would be planned, and what would
-- fit. The plan has its explanation.

local decided = require "pipeplan.report.html.decided"
local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local layout = require "pipeplan.base.layout"
local lists = require "pipeplan.base.lists"
local message = require "pipeplan.policy.message"
local said = require "pipeplan.report.html.said"
local tables = require "pipeplan.report.html.table"
local verdict = require "pipeplan.report.verdict"
local words = require "pipeplan.report.html.words"

local page = {}

local function sentence(text)
  text = text:gsub("^%l", string.upper)
  return text:find "[.!?]$" and text or text .. "."
end

local function reasons(plan)
  local rows = {}
  for i, reason in ipairs(plan.reasons) do
    rows[i] = { element.name(reason.id), sentence(reason.message), document.place(reason), decided.source(reason.source) }
  end
  return document.section("Why", tables.make({ { "rule" }, { "says", class = "because" }, { "where", class = "loc" },
                                               { "source", class = "src" } },
                                             rows, { class = "rules main" }), { id = "why" })
end

-- A plan as a list of its parts: { { name, value }, … }.
local function described(parts)
  local children = {}
  for _, part in ipairs(parts) do
    if part[2] then children[#children + 1] = { element("dt", nil, part[1]), element("dd", nil, part[2]) } end
  end
  return element("dl", { class = "plan" }, children)
end

local function with_fit(bytes, device, fit)
  if not bytes then return nil end
  return string.format("%s of %s on the fullest GPU%s", format.gib(bytes) .. " GiB", format.bytes(device), fit == "does_not_fit"
                       and ": does not fit"
                       or fit == "tight" and ": tightly" or "")
end

local function instead(plan)
  local other = plan.recommend
  if not other then
    return document.section("Instead", element("p", nil, "Nothing that was tried: no single fixed field, set free, leads to a plan."),
                            { id = "instead" })
  end
  return document.section("Instead", described {
    { "schedule", format.schedule(other.schedule) }, { "layout", layout.line(other.parallelism, nil, ", ") },
    { "microbatches", other.microbatches and format.integer(other.microbatches) }, { "microbatch size", other.micro_batch_size },
    { "step", other.step_seconds and format.seconds(other.step_seconds) },
    { "memory", with_fit(other.peak_bytes, plan.cluster.device_bytes, other.fit) },
    { "sharded", other.sharding and other.sharding ~= "none" and other.sharding }, { "recompute", other.recompute and #other.recompute > 0
      and (type(other.recompute) == "table" and table.concat(other.recompute, ", ") or other.recompute) },
    { "optimizer", other.optimizer_offload and other.optimizer_offload ~= 0 and "offloaded" or nil },
    { "framework", other.framework_flags and "also " .. table.concat(other.framework_flags, ", ") },
    { "why", other.why and sentence(other.why) },
  }, { id = "instead" })
end

local function ways(plan)
  if not plan.ways_to_fit then return nil end
  local rows = {}
  for i, way in ipairs(plan.ways_to_fit) do
    rows[i] = { way.change, { format.seconds(way.step_seconds), value = way.step_seconds },
                { format.gib(way.peak_bytes), value = way.peak_bytes },
                format.schedule(way.schedule) .. ", " .. layout.line(way.parallelism, way.microbatches, " ") }
  end
  local content = #rows > 0 and tables.make({ { "change" }, { "step" }, { "peak GiB" }, { "plan", class = "why" } }, rows,
                                            { class = "n sort ways", sortable = true })
    or element("p", nil, "Nothing that was tried fits: recompute, another layout, offload, narrower state.")
  local one = verdict.one_gpu(plan)
  return document.section("What would fit", element.list(content, one and element("p", { class = "sub" }, sentence(one)) or nil),
                          { id = "ways" })
end

local function dropped(plan)
  local rows = {}
  for i, entry in ipairs(plan.dropped) do
    rows[i] = { element.name(entry.rule), { format.integer(entry.count) .. (entry.at_least and "+" or ""), value = entry.count },
                entry.nearest and (message.legal(entry.nearest):gsub("^ ?%(", ""):gsub("%)$", "")) or "" }
  end
  if #rows == 0 then return nil end
  return document.section("What was dropped", tables.make({ { "rule" }, { "candidates" }, { "nearest", class = "why" } }, rows,
    { class = "n", caption = "Candidates that a rule held for" }), { id = "dropped" })
end

-- page.refused(plan, command)
function page.refused(plan, command)
  local warnings = words.warnings(plan)
  local first, other = plan.reasons[1], plan.recommend
  local line = { plan.model.name, " on ", format.integer(plan.cluster.gpus), " ", plan.cluster.accelerator, ", as asked, is ",
                 plan.status, ": ",
                 element("b", nil, first and first.message or "no candidate is left"), "." }
  if other then
    line[#line + 1] = { " Instead: ", element("b", nil, format.schedule(other.schedule)), ", ",
                        layout.line(other.parallelism, other.microbatches, ", "),
                        other.step_seconds and ", " .. format.seconds(other.step_seconds) .. " a step" or "", "." }
  elseif plan.gpus_needed then
    line[#line + 1] = { " It would take ", element("b", nil, format.integer(plan.gpus_needed) .. " GPUs"), "." }
  end
  local ids = lists.column(plan.reasons, "id")
  return document.write {
    title = plan.model.name .. ": " .. plan.status, class = "refused", kind = "pipeplan · " .. plan.status .. " on " .. plan.policy.date,
    heading = string.format("%s: %s (%s)", plan.model.name, plan.status, table.concat(ids, ", ")),
    verdict = element.list(line),
    sections = {
      reasons(plan), instead(plan), ways(plan) or false, decided.changes(plan, "What would be planned"),
      warnings and document.section("Warnings", warnings, { id = "warnings" }) or false, dropped(plan) or false,
      said.section(plan, { dropped = true }) or false,
      decided.section(plan), decided.assumptions(plan) or false, decided.again(plan, command),
    },
  }
end

return page
