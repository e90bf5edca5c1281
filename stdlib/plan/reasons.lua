-- SPDX-License-Identifier: Apache-2.0
-- reasons.lua: why a candidate was dropped, in words: { id, kind, message, source, layer, file, line, recommend, nearest }.

local conditions = require "pipeplan.policy.conditions"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local lists = require "pipeplan.base.lists"
local message = require "pipeplan.policy.message"
local vocabulary = require "pipeplan.vocabulary"

local reasons = {}

local function of_fields(policy, kind, rule, fields)
  return {
    id = rule.id, kind = kind, message = message.fill(rule.message or rule.id, fields, policy), source = rule.source or rule.link,
    layer = rule.layer, file = rule.file, line = rule.line, recommend = rule.recommend, nearest = conditions.nearest(rule, policy, fields),
  }
end

local function of_rule(set, entry, row)
  set.c:simulate(row)  -- messages may show what only a simulation says; where nothing can be built they say "unknown"
  return of_fields(set.policy, entry.kind, entry.rule, set.c:row(row))
end

-- What only a candidate says is known for none of these rules' conditions.
local function reads_unknown(rule, fields)
  for _, condition in ipairs(rule.conditions) do
    if fields[condition.field] == nil and vocabulary.by_name[condition.field].scope ~= "request" then return true end
  end
  return false
end

-- Rejects and refusals that hold for what the spec says, whatever a candidate of those depths would be: for where there is none.
function reasons.without_candidate(set, depths)
  local fields, fixed, list = lists.with(set.context.record), set.context.fixed, {}
  fields.schedule, fields.tensor_parallel, fields.expert_parallel = fixed.schedule, fixed.tensor, fixed.expert
  local late = {}
  for _, field in ipairs(vocabulary.fields) do
    if field.scope ~= "request" and fields[field.name] == nil and field.name ~= "pipeline_parallel" then late[field.name] = true end
  end
  for _, kind in ipairs { "reject", "refuse" } do
    for _, rule in ipairs(set.policy[kind .. "s"]) do
      local holds = true
      for _, depth in ipairs(depths) do
        fields.pipeline_parallel = depth
        holds = holds and not reads_unknown(rule, fields) and conditions.holds(rule, set.policy, fields, late)
      end
      if holds then list[#list + 1] = of_fields(set.policy, kind, rule, fields) end
    end
  end
  return list
end

-- The engine names P and V after the schedule's request.
local engine_fields = { ranks = "pipeline", group = "microbatch_group" }

local function of_engine(set, entry, row)
  local _, illegal = set.c:check(row)
  if not illegal then return { id = entry.id, kind = "engine", message = entry.id } end
  local nearest = illegal.nearest and illegal.nearest == illegal.nearest and
                  { field = engine_fields[illegal.field] or illegal.field, value = math.tointeger(illegal.nearest) or illegal.nearest }
  return { id = illegal.id, kind = "engine", message = illegal.message, nearest = nearest or nil }
end

local function of_framework(set, entry, row)
  local schedule, title = set.c:get("schedule", row), entry.framework and entry.framework.title
  if entry.fact then
    local words, nearest = framework.told(entry.fact, entry.framework, set.c:row(row))
    return { id = entry.id, kind = "framework", message = words, source = entry.fact.source, nearest = nearest }
  end
  local words
  if entry.layers then
    words = framework.uneven(set, entry, row)
  elseif entry.planned then
    local names = {}
    for i, name in ipairs(entry.planned) do names[i] = format.schedule(name) end
    words = string.format("the policy plans no %s, only %s", format.schedule(schedule), table.concat(names, ", "))
  elseif entry.tied then
    words = string.format("%s has no pipeline for tied embedding and output weights", title)
  else
    words = string.format("%s does not run %s", title, format.schedule(schedule))
  end
  return { id = entry.id, kind = "framework", message = words, source = entry.layers and entry.layers.source or nil }
end

-- "ZB-H1 at P 8, TP 1, EP 64: rank 7 takes 103 GiB of 73.3 GiB usable, 29.7 GiB too much"; `detail` is what follows the colon.
local function of_memory(set, entry, row)
  local c, usable, peak = set.c, set.context.arguments.usable_bytes, set.c:get("peak_bytes", row)
  local rank = c:fullest(row)
  local where = string.format("%s at P %d, TP %d, EP %d", format.schedule(c:get("schedule", row)), c:get("pipeline_parallel", row),
                              c:get("tensor_parallel", row), c:get("expert_parallel", row))
  local twice = entry.id == "replication_does_not_fit"
  local detail = string.format("rank %d takes %s of %s usable", rank, format.bytes(peak), format.bytes(usable))
  if twice then
    detail = detail .. string.format(" with two copies of its stages, %s with one", format.bytes(c:get("one_copy_bytes", row)))
  end
  detail = detail .. string.format(", %s too much", format.bytes(peak - usable))
  return { id = entry.id, kind = "memory", message = where .. ": " .. detail, detail = detail, missing_bytes = peak - usable, rank = rank }
end

-- The same for a row that other rules drop already.
function reasons.memory(set, row)
  local one_copy = set.c:get("one_copy_bytes", row)
  local replicated = one_copy and one_copy <= set.context.arguments.usable_bytes
  return of_memory(set, { id = replicated and "replication_does_not_fit" or "does_not_fit" }, row)
end

-- What the bytes of a row's fullest rank are: ": weights 39.1, gradients 78.1, optimizer 58, activations 12.3, buffers 4.9 GiB". They add
-- up to what the row was judged by: zb_auto by the most activations that its limit allows.
function reasons.bytes(c, row)
  local evaluation = c:evaluate(row)
  local rank = evaluation and evaluation.memory[c:fullest(row) + 1]
  if not rank then return "" end
  local activations = rank.activations + c:get("peak_bytes", row) - rank.total
  return string.format(": weights %s, gradients %s, optimizer %s, activations %s, buffers %s GiB", format.gib(rank.parameters),
                       format.gib(rank.gradients), format.gib(rank.optimizer), format.gib(activations),
                       format.gib(rank.transient + rank.overhead))
end

-- What framework.forbidden answers, in words.
function reasons.forbidden(found)
  return (framework.told(found.rule, found.entry, found.record))
end

-- No layout at all has that schedule; `found`: what framework.forbidden answers for it, or nil.
function reasons.no_candidates(name, found)
  return { id = "no_candidates", kind = "engine",
           message = found and reasons.forbidden(found)
                     or string.format("%s has no candidate: no layout has enough layers for its stages", format.schedule(name)) }
end

local makers = { reject = of_rule, refuse = of_rule, engine = of_engine, framework = of_framework, memory = of_memory }

-- One entry of a set, told for a row that it holds for.
function reasons.of(set, entry, row)
  return makers[entry.kind](set, entry, row)
end

-- All that holds for a row, once each: an engine rule stands in several entries only where several rows break it differently.
function reasons.all(set, row)
  local list, seen = {}, {}
  for _, entry in ipairs(set:holding(row)) do
    local reason = reasons.of(set, entry, row)
    if not seen[reason.id] then
      seen[reason.id] = true
      list[#list + 1] = reason
    end
  end
  return list
end

-- The nearest legal value that a rule's entry names, at the row where the fewest other rules hold.
function reasons.nearest(set, entry, row)
  local reason = reasons.of(set, entry, row)
  return reason.nearest
end

-- By how much a plan of the group may be slower than the fastest, in words: its row's own, or what holds for all rows.
function reasons.tolerance(set, group)
  local own = group and group.rule and group.rule.within
  if own and own ~= "any" then return "the row's within " .. format.percent(own) end
  return "wanted_tolerance " .. format.percent(set.policy.parameters.wanted_tolerance.value)
end

-- The wanted schedule was too slow.
function reasons.too_slow(set, choice)
  local name = choice.group.list[1]
  local fastest, row = choice.against.seconds, choice.against.row
  return {
    id = "wanted_too_slow", kind = "rank",
    message = string.format("%s takes %s a step at best, %s slower than the fastest, %s at P %d (%s): more than %s",
                            format.schedule(name), format.seconds(choice.seconds), format.percent(choice.seconds / fastest - 1),
                            format.schedule(set.c:get("schedule", row)), set.c:get("pipeline_parallel", row), format.seconds(fastest),
                            reasons.tolerance(set, choice.group)),
  }
end

-- All candidates of the wanted schedule lost to a preference.
function reasons.preference(name, rule)
  local words = string.format("no candidate of %s matches the preference %s", format.schedule(name), rule.id)
  return { id = rule.id, kind = "rank", message = words, source = rule.source, layer = rule.layer, file = rule.file,
           line = rule.line }
end

return reasons
