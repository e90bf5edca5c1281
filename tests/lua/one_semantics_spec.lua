-- SPDX-License-Identifier: Apache-2.0
-- A rule means the same as a condition and as a function: of any spec the same plan, the same reasons, the same counts, byte for byte.

local planning = require "planning"  -- first: it loads the module
local failure = require "pipeplan.base.failure"
local files = require "policy_files"
local lists = require "pipeplan.base.lists"
local pipeplan = require "pipeplan"
local random_specs = require "random_specs"
local text = require "pipeplan.report.text"
local vocabulary = require "pipeplan.vocabulary"

-- Fields, each with where a limit comes from: values, or the figure of the plan that the default policy makes, of which a part is taken.
local early = {
  { "pipeline_parallel", { 1, 2, 4, 8 } }, { "tensor_parallel", { 1, 2, 4 } }, { "microbatches_per_rank", { 1.5, 4, 16 } }, { "gpus_used", { 8, 100 } },
  { "microbatches", { 8, 64 } }, { "virtual", { 1, 2 } }, { "micro_batch_size", { 1, 2 } }, { "data_parallel", { 4, 16 } },
}
local late = {
  { "step_seconds", "step_seconds" }, { "training_days", "training_days" }, { "gpu_hours", "gpu_hours" }, { "bubble_fraction", { 0.02, 0.1, 0.3 } },
  { "peak_bytes", { 20e9, 50e9 } }, { "pipeline_avoidable_fraction", { 0.01, 0.1 } },
}
local operators = { over = ">", at_least = ">=", under = "<", at_most = "<=" }

local function limit(r, field, base)
  if type(field[2]) == "table" then return r.pick(field[2]) end
  return base[field[2]] and tonumber(string.format("%.4g", base[field[2]] * r.pick { 0.7, 0.95, 1, 1.02, 1.3 }))
end

-- Comparisons { field, operator, number } as conditions, and as functions that pipeplan reads as such or has to call.
local function forms_of(comparisons)
  local written, plain, opaque = {}, {}, {}
  for i, comparison in ipairs(comparisons) do
    local field, op, number = table.unpack(comparison)
    written[i] = string.format("%s = %s(%s)", field, op, number)
    plain[i] = string.format("f.%s ~= nil and f.%s %s %s", field, field, operators[op], number)
    opaque[i] = string.format("has(f.%s) and f.%s %s %s", field, field, operators[op], number)
  end
  return { table.concat(written, ", "), "when = function(f) return " .. table.concat(plain, " and ") .. " end",
           "when = function(f) local function has(v) return v ~= nil end return " .. table.concat(opaque, " and ") .. " end" }
end

-- One or two comparisons.
local function random_rule(r, base, fields)
  local chosen, list = {}, {}
  for _ = 1, r.integer(2) do
    local field = r.pick(r.sometimes(60) and fields or early)
    local value, op = limit(r, field, base), r.pick(lists.sorted_keys(operators))
    if value and not chosen[field[1]] then
      chosen[field[1]] = true
      list[#list + 1] = { field[1], op, vocabulary.by_name[field[1]].type == "integer" and string.format("%d", value)
                          or string.format("%.17g", value) }
    end
  end
  return list[1] and forms_of(list)
end

-- Does it read what a preference within "any" may not?
local function reads_time(rule)
  for _, field in ipairs(late) do
    if field[1] ~= "peak_bytes" and rule[1]:find(field[1], 1, true) then return true end
  end
  return false
end

local statements = {
  reject = [[reject { id = "r", message = "m", %%s }]], refuse = [[refuse { id = "r", message = "m", recommend = "data_parallel", %%s }]],
  warn = [[warn { id = "r", message = "m", %%s }]], prefer = [[prefer { id = "r", within = "%s", %%s }]],
  row = [[row { id = "r", try = { "%s", "1f1b" }, %%s }]],
}

local directory = files.directory {}
teardown(files.remove)

-- What a policy of one statement (nil: none) makes of a spec: all that is printed but what names the policy's bytes.
local function outcome(statement, spec)
  local good, plan = pcall(function()
    local site = statement and files.write("site.lua", statement .. "\n", directory)
    return pipeplan.policy(site, { date = "2026-11-27", frontier = true }):plan_spec(lists.deep_copy(spec), ".")
  end)
  if not good then
    assert(failure.is(plan), plan)
    return plan.message, "answered"
  end
  plan.policy.digest, plan.policy.stack = "", ""
  return pipeplan.json(plan) .. text.render(plan), plan.status, plan
end

-- Around the first byte in which two texts differ.
local function difference(one, other)
  local at = 1
  while one:byte(at) == other:byte(at) do at = at + 1 end
  local from = math.max(1, at - 300)
  return one:sub(from, at + 200) .. "\n-- and as a function --\n" .. other:sub(from, at + 200)
end

-- All forms of a statement, in which %s is where the rule stands. → the status, and whether the rule dropped something.
local function compared(number, statement, rule, spec)
  local written, status, counted
  for form, words in ipairs(rule) do
    local said, what, plan = outcome(statement:format(words), spec)
    written, status = written or said, what
    if written ~= said then
      error(string.format("spec %d, form %d of %s\n%s", number, form, statement:format(words), difference(written, said)))
    end
    counted = plan and planning.entry(plan.dropped, "r")
  end
  return status, counted
end

local function random_spec(r)
  local spec = random_specs.any(r)
  spec.cluster.gpus = r.pick { 16, 32, 64 }
  return spec
end

-- With PIPEPLAN_LONG=1 of 400 specs each; else small ones, and of the second kind some where bounds drop candidates that a function is never
-- asked about.
local small, telling = { 2, 3, 5, 6, 7, 8, 14, 15, 16, 19, 21, 22 }, { 5005, 5010, 5011, 5029 }

local function numbers_of(short, first)
  if not require "long" then return short end
  local list = {}
  for i = 1, 400 do list[i] = first + i end
  return list
end

describe("a rule", function()
  it("gives the same bytes as a condition and as a function, counts among them", function()
    local seen, counted = {}, 0
    for _, number in ipairs(numbers_of(small, 0)) do
      local r = random_specs.generator(number)
      local spec = random_spec(r)
      local _, status, base = outcome(nil, spec)
      local verb = r.pick { "reject", "reject", "refuse", "warn", "prefer", "row" }
      local rule = status ~= "answered" and random_rule(r, base, verb == "row" and early or late)
      if rule then
        local other = r.pick(verb == "prefer" and { "any", "5%%" } or { "1f1b", "zb_h1", "dualpipev" })
        if other == "any" and reads_time(rule) then other = "5%%" end
        local statement = statements[verb]:format(other)
        local what, dropped = compared(number, statement, rule, spec)
        seen[what], counted = true, counted + (dropped and 1 or 0)
      end
    end
    assert.is_true(seen.planned and (seen.refused or seen.rejected), "the specs are all alike")
    assert.is_true(counted > 2, counted .. " counts were compared")
  end)

  it("about time counts what came up before the plan, however many its bounds drop", function()
    local planned = 0
    for _, number in ipairs(numbers_of(telling, 5000)) do
      local r = random_specs.generator(number)
      local spec = random_spec(r)
      local _, status, base = outcome(nil, spec)
      local field = r.pick { "gpu_hours", "step_seconds", "training_days", "cost", "pipeline_avoidable_seconds" }
      local value = status == "planned" and (field == "pipeline_avoidable_seconds" and 0.02 * base.step_seconds or base[field])
      if value then
        value = value * (field == "pipeline_avoidable_seconds" and 1 or r.pick { 0.9, 0.95, 0.98, 1.01, 1.05 })
        local what, dropped = compared(number, statements.reject:format(""), forms_of {
          r.pick { { "pipeline_parallel", "over", "2" }, { "tensor_parallel", "under", "4" } }, { field, "over", string.format("%.6g", value) },
        }, spec)
        if what == "planned" and dropped then planned = planned + 1 end
      end
    end
    assert.is_true(planned > 1, planned .. " plans are left")
  end)
end)
