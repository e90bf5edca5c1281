-- SPDX-License-Identifier: Apache-2.0
-- ramp.lua: a batch that grows: each batch with its microbatches, step and bubble, and the step over which to roll back.

local document = require "pipeplan.report.html.document"
local element = require "pipeplan.report.html.element"
local format = require "pipeplan.base.format"
local run = require "pipeplan.report.run"
local tables = require "pipeplan.report.html.table"

local ramp = {}

local columns = { { "from token" }, { "batch" }, { "M" }, { "step" }, { "bubble" }, { "roll back over" } }

local function cell(value, show) return value and show(value) or "–" end

-- nil: the batch is constant.
function ramp.section(plan)
  local segments = plan.training.batch_ramp
  if not segments then return nil end
  local limits, rows = {}, {}
  for _, batch in ipairs(plan.rollback and plan.rollback.batches or {}) do limits[batch.global_batch_size] = batch.threshold_seconds end
  for i, segment in ipairs(segments) do
    rows[i] = { format.count(segment.first_token), format.integer(segment.global_batch_size), cell(segment.microbatches, format.integer),
                cell(segment.step_seconds, format.seconds), cell(segment.bubble_fraction, format.percent),
                cell(limits[segment.global_batch_size], format.seconds) }
  end
  local cost = run.ramp_cost(plan)
  return document.section("The batch grows", element.list(
    element("p", nil, cost and cost:gsub("^%l", string.upper) .. ". " or "", "Rules are judged at the smallest batch; days and GPU-hours "
            .. "are of the whole run; step, memory and the timeline are of " .. format.integer(plan.global_batch_size) .. " sequences."),
    tables.make(columns, rows, { class = "n" })), { id = "ramp" })
end

return ramp
