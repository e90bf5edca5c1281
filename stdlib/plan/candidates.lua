-- SPDX-License-Identifier: Apache-2.0
-- candidates.lua: the candidates of a request, and for each rule the candidates that it holds for. What drops a candidate is an entry
-- { id, kind, mask, rule }: rejects and refusals of the policy, what the engine cannot build, what the framework cannot run, what does not
-- fit. Masks are sets of rows of engine.search (engine/lua/masks.h).

local choices = require "pipeplan.plan.choices"
local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local framework = require "pipeplan.plan.framework"
local functions = require "pipeplan.policy.functions"
local kernels = require "pipeplan.catalog.kernels"
local lists = require "pipeplan.base.lists"
local statements = require "pipeplan.policy.statements"
local vocabulary = require "pipeplan.vocabulary"

local candidates = {}

-- ------------------------------------------------------------------------------------------------------------------------ schedules

-- The schedules that a name stands for: a family's members, in the policy's order, or the schedule itself.
function candidates.members(policy, name)
  local parameter = statements.families[name]
  return parameter and policy.parameters[parameter].value or { name }
end

-- Names of all schedules that may be planned.
function candidates.planned(policy)
  local list, seen = {}, {}
  for _, name in ipairs(policy.parameters.schedules.value) do
    for _, member in ipairs(candidates.members(policy, name)) do
      if not seen[member] then
        seen[member] = true
        list[#list + 1] = member
      end
    end
  end
  return list
end

-- -------------------------------------------------------------------------------------------------------------------------- matching

local methods = {}
methods.__index = methods

-- What only a simulation says of a candidate, and what of that follows from the best step without a pipeline.
local simulated_fields = { step_seconds = true, bubble_fraction = true, training_days = true, gpu_hours = true, cost = true,
                           pipeline_avoidable_seconds = true, pipeline_avoidable_fraction = true }
local avoidable_fields = { pipeline_avoidable_seconds = true, pipeline_avoidable_fraction = true }

-- candidates.alone(set) → the best row without a pipeline, or nil: compare.lua, which stands on this file, puts its own here.

-- Finds that step, once, when somebody asks. Rules are asked about candidates without a pipeline on the way: these lack the fields.
function candidates.find_alone(set)
  if set.asked_alone or set.context.fixed.pipeline == 1 then return end
  set.asked_alone = true
  local row = candidates.alone(set)
  if row then set.c:set("alone_seconds", set.c:get("step_seconds", row)) end
end

local bytes_fields = { peak_bytes = true }

-- What a rule's function says of a row: true, false, or nil where it reads what is not known before `simulated`; that is "bytes" where of
-- what a simulation says the bytes alone are known.
local function answer(set, rule, row, simulated)
  local c, done = set.c, false
  local function value_of(field)
    if simulated_fields[field] and not done then
      c:simulate(row)
      done = true
    end
    if avoidable_fields[field] then candidates.find_alone(set) end
    return c:get(field, row)
  end
  local function is_late(field)
    local scope = vocabulary.by_name[field].scope
    return scope == "plan" or scope == "simulated" and (not simulated or simulated == "bytes" and not bytes_fields[field])
  end
  return set.memo:answer(rule, set.policy, value_of, is_late)
end

-- Rows of `among` for which a rule's function says yes, and those of which it cannot say yet.
local function asked(set, rule, among, simulated)
  local yes, later = {}, {}
  for _, row in ipairs(among:rows()) do
    local says = answer(set, rule, row, simulated)
    if says == nil then later[#later + 1] = row elseif says then yes[#yes + 1] = row end
  end
  return set.c:only(yes), set.c:only(later)
end

-- A row, kernel or preference whose function reads what is known only later, as its conditions cannot.
local function too_early(set, rule, among, simulated)
  local _, field = answer(set, rule, among:first(), simulated)
  failure.raise("policy_error", "rule '%s' (%s): its function reads %s", rule.id, format.place(rule),
                statements.unreadable(rule.verb, field, rule.within))
end

-- Does a rule have a condition about one of these fields?
local function reads(rule, fields)
  for _, condition in ipairs(rule.conditions) do
    for _, name in ipairs(conditions.fields(condition)) do
      if fields[name] then return true end
    end
  end
  return false
end

-- Conditions of a rule that read none of these fields.
local function without(rule, fields)
  local list = {}
  for _, condition in ipairs(rule.conditions) do
    if not reads({ conditions = { condition } }, fields) then list[#list + 1] = condition end
  end
  return list
end

-- Rows of `among` for which a rule holds.
function methods:match(rule, among)
  if reads(rule, avoidable_fields) then candidates.find_alone(self) end
  local mask = among & self.c:match(conditions.engine(rule))
  if not rule.when then return mask end
  local simulated = statements.readable[rule.verb].simulated
  local yes, later = asked(self, rule, mask, simulated)
  if #later > 0 then too_early(self, rule, later, simulated) end
  return yes
end

-- Rows of `among` that a preference "within any" matches. What it asks of bytes it asks of survivors, whose bytes are computed for it;
-- dropped: of those too that rules drop.
function methods:match_any(rule, among, dropped)
  local function weighed(rows)
    if not dropped then
      self:weigh(rows)
      return rows & self.alive
    end
    self.c:memory(rows - self.unbuildable)
    return rows - self.unbuildable
  end
  local mask = among & self.c:match(conditions.engine({ conditions = without(rule, bytes_fields) }))
  if reads(rule, bytes_fields) then mask = weighed(mask) & self.c:match(conditions.engine(rule)) end
  if not rule.when then return mask end
  local yes, later = asked(self, rule, mask, false)
  if #later == 0 then return yes end
  if not bytes_fields[select(2, answer(self, rule, later:first(), false))] then too_early(self, rule, later, false) end
  local more, never = asked(self, rule, weighed(later), "bytes")
  if #never > 0 then too_early(self, rule, never, "bytes") end
  return yes | more
end

-- Rows with one of these schedules.
function methods:scheduled(names)
  return self.c:match { { field = "schedule", op = "one_of", values = names } }
end

local function alike(set, row, other, fields)
  local c, list = other or set.c, {}
  for _, field in ipairs(fields) do list[#list + 1] = { field = field, op = "equal", value = c:get(field, row) } end
  return set.c:match(list)
end

-- Rows with the layout of that one (all degrees; not schedule and V), which may be a row of another search.
function methods:layout_of(row, other)
  return alike(self, row, other, { "pipeline_parallel", "tensor_parallel", "context_parallel", "expert_parallel",
                                   "expert_tensor_parallel" })
end

-- Rows with that choice of the recipe, by its number.
function methods:recipe(number)
  local list, values = {}, self.context.arguments.choices[number].values
  for _, field in ipairs(candidates.chosen) do list[#list + 1] = { field = field, op = "equal", value = values[field] } end
  return self.c:match(list)
end

-- Rows with the recipe of that one.
function methods:recipe_of(row, other)
  return alike(self, row, other, candidates.chosen)
end

-- The entries that hold for a row, in order.
function methods:holding(row)
  local list = {}
  for _, entry in ipairs(self.entries) do
    if entry.mask:has(row) then list[#list + 1] = entry end
  end
  return list
end

-- --------------------------------------------------------------------------------------------------------------------------- kernels

-- The kernel's name in the catalogue.
local function catalogue_name(rule)
  return rule.recommend or rule.id
end

-- Where a kernel's catalogue entry says that it cannot work: rows of `among`, one size of the expert group at a time.
local function working(set, rule, among)
  local entry = kernels.find(catalogue_name(rule))
  if not entry then return among end
  local record, out, left = set.context.record, set.c:none(), among
  while #left > 0 do
    local expert = set.c:get("expert_parallel", left:first())
    local same = left & set.c:match { { field = "expert_parallel", op = "equal", value = expert } }
    local works = expert <= 1 or kernels.works(entry, {
      accelerator_family = record.accelerator_family, fabric = record.fabric, expert_parallel = expert,
      scale_up_gpus = record.scale_up_gpus, gpus_per_node = record.gpus_per_node })
    if works then out = out | same end
    left = left - same
  end
  return out
end

-- A given name is taken literally, unless it is known to overlap nothing. Otherwise the first overlapping statement that matches.
local function set_kernels(set)
  local c, given = set.c, set.context.request.cluster.alltoall_kernel
  if given ~= nil then
    local entry = given and kernels.find(given)
    c:set("alltoall_kernel", given and (not entry or entry.overlapping) and given or false)
    return
  end
  local left, kernels_of = c:all(), { { false, c:all() } }
  for _, rule in ipairs(set.policy.kernels) do
    if rule.overlapping ~= false then
      local mask = working(set, rule, set:match(rule, left))
      if #mask > 0 then
        kernels_of[#kernels_of + 1] = { catalogue_name(rule), mask }
        left = left - mask
      end
    end
  end
  c:set("alltoall_kernel", kernels_of)
end

-- What a plan says about its kernel. `use`: what to run where nothing overlaps.
function methods:kernel_of(row)
  local c, given = self.c, self.context.request.cluster.alltoall_kernel
  if c:get("expert_parallel", row) <= 1 then return nil end
  local name = c:get("alltoall_kernel", row)
  if given ~= nil then return { name = name, id = given or nil, given = true, why = "stated in the spec" } end
  for _, rule in ipairs(self.policy.kernels) do
    local fits = name and catalogue_name(rule) == name or not name and rule.overlapping == false
    if fits and #self:match(rule, c:only(row)) > 0 then
      return { name = name, id = rule.id, use = catalogue_name(rule), why = rule.why, given = false, statement = rule }
    end
  end
  return { name = name, given = false }
end

-- ----------------------------------------------------------------------------------------------------------------------------- rules

function candidates.names_schedule(rule)
  for _, condition in ipairs(rule.conditions) do
    if condition.field == "schedule" or condition.field == "schedule_family" then return true end
  end
  return statements.recommends_schedule(rule)
end

local function add(set, kind, id, mask, more)
  if #mask == 0 then return end
  for _, entry in ipairs(set.entries) do
    if more and more.rule and entry.rule == more.rule then
      entry.mask = entry.mask | mask
      return
    end
  end
  set.entries[#set.entries + 1] = lists.with({ kind = kind, id = id, mask = mask }, more)
end

-- Simulates the rows for which the rest of a rule's conditions hold.
local function simulate_for(set, rule, among)
  local known = conditions.engine { conditions = without(rule, simulated_fields) }
  for _, row in ipairs((among & set.c:match(known)):rows()) do set.c:simulate(row) end
end

-- Rules of the policy in one pass over those rows: those that a candidate's own fields decide, then those that need its bytes or seconds. A
-- function is asked in the first, and in the second about the rows where it reads what was not known yet.
local function apply_policy(set, simulated, rows)
  local dead = set.c:none()
  for _, kind in ipairs { "reject", "refuse" } do
    for _, rule in ipairs(set.policy[kind .. "s"]) do
      local own = statements.condition_phase(rule) == "simulated"
      if own == simulated or simulated and rule.when then
        local among = rows
        if not own and simulated then among = among & set.unsaid[rule] end
        if simulated and reads(rule, simulated_fields) then simulate_for(set, rule, among) end
        if simulated and reads(rule, avoidable_fields) then candidates.find_alone(set) end
        local mask = among & set.c:match(conditions.engine(rule))
        if rule.when then
          local later
          mask, later = asked(set, rule, mask, simulated)
          if simulated and #later > 0 then too_early(set, rule, later, simulated) end
          if not simulated then set.unsaid[rule] = later end
        end
        dead = dead | mask
        add(set, kind, rule.id, mask, { rule = rule, late = simulated })
      end
    end
  end
  return dead
end

local lower = { over = true, at_least = true }

-- Does a rule ask of a step's time only that it be long? Then a bound from below can tell that it holds.
local function is_about_length(rule)
  for _, condition in ipairs(rule.conditions) do
    if simulated_fields[condition.field] and (not lower[condition.op] or condition.field == "bubble_fraction") then return false end
    if simulated_fields[condition.ref or ""] or simulated_fields[condition.low_ref or ""] or simulated_fields[condition.high_ref or ""] then
      return false
    end
  end
  return not rule.when
end

-- Rules of the policy that are decided by bytes or seconds, { kind, rule }; nil where one of them asks more than how long something takes.
local function rules_of_length(set)
  local list = {}
  for _, kind in ipairs { "reject", "refuse" } do
    for _, rule in ipairs(set.policy[kind .. "s"]) do
      if rule.when and #set.unsaid[rule] > 0 then return nil end
      if statements.condition_phase(rule) == "simulated" then
        if not is_about_length(rule) then return nil end
        list[#list + 1] = { kind, rule }
      end
    end
  end
  return list
end

-- Drops the rows whose bounds say that such a rule holds, as simulating one after the other would: where a site wants less time than any
-- candidate takes, these are all.
local function drop_long(set, rows)
  local rules = #(rows & set.alive) > 0 and rules_of_length(set)
  if not rules then return end
  set.swept = set.swept | rows
  set:weigh(rows)
  local among, dead = rows & set.alive - set.judged, set.c:none()
  for _, entry in ipairs(rules) do
    local kind, rule = table.unpack(entry)
    local mask = set.c:match_late(conditions.engine(rule), among)
    dead = dead | mask
    add(set, kind, rule.id, mask, { rule = rule, late = true })
  end
  set.judged, set.alive = set.judged | dead, set.alive - dead
end

-- What no constructor can build. Rules of the policy say it better where they hold too, so it is reported only where none does.
local function apply_engine(set, dead)
  set.unbuildable = set.c:none()
  for _, rule in ipairs(set.c:engine_rules(set.c:all())) do
    set.unbuildable = set.unbuildable | rule.mask
    add(set, "engine", rule.id, rule.mask - dead)
  end
end

local function union(set, wanted)
  local mask = set.c:none()
  for _, entry in ipairs(set.entries) do
    if wanted(entry) then mask = mask | entry.mask end
  end
  return mask
end

-- The two entries about bytes, of the rows among those whose bytes are known.
local function tell_memory(set, among)
  local over = among & set.c:match { { field = "peak_bytes", op = "over", value = set.context.arguments.usable_bytes } }
  local twice = over & set.c:match { { field = "one_copy_bytes", op = "at_most", value = set.context.arguments.usable_bytes } }
  for i = #set.entries, 1, -1 do
    if set.entries[i].kind == "memory" then table.remove(set.entries, i) end
  end
  add(set, "memory", "does_not_fit", over - twice)
  add(set, "memory", "replication_does_not_fit", twice)
end

-- The bytes of what can be built of those rows, whatever else drops them: for a verdict, which wants all rules of a candidate.
function methods:fill_memory(rows)
  self.c:memory(rows - self.unbuildable)
  tell_memory(self, rows - self.unbuildable)
end

-- Bytes of the rows that no rule drops yet: those that do not fit are dropped.
function methods:weigh(rows)
  self.c:memory(rows & self.alive)
  tell_memory(self, self.undropped)
  self.alive = self.alive - self.c:match { { field = "peak_bytes", op = "over", value = self.context.arguments.usable_bytes } }
end

-- What tells an entry from others, also when it was made anew.
local function key_of(entry) return entry.rule or entry.kind .. " " .. entry.id end

local function is_late(entry) return entry.late or entry.kind == "memory" end

-- From here on bounds may drop rows that nobody would have looked at, and whether they do depends on how a rule is written. The count does
-- not: it is of what was dropped until now.
local function count(set)
  if set.counted then return end
  tell_memory(set, set.undropped)
  set.counted = {}
  for _, entry in ipairs(set.entries) do
    if is_late(entry) then set.counted[key_of(entry)] = entry.mask end
  end
end

-- The rows that an entry drops, as they are counted; true: at least these, for it was asked only of candidates that came up before a plan.
function methods:counted_of(entry, planned)
  if not is_late(entry) then return entry.mask, false end
  if not planned and (entry.kind ~= "memory" or not self.counted) then return entry.mask, false end  -- without a plan all came up
  if not self.counted then return entry.mask, true end
  return self.counted[key_of(entry)] or self.c:none(), true
end

local FEW = 16   -- so many rows that came up are dropped before bounds are asked about the others

-- As candidates:best, of the rows that no rule drops and that fit, or take at most so many bytes. Rules that read bytes or seconds are
-- asked about the rows that come up.
function methods:best(rows, tolerance, limit, bytes)
  local dropped = 0
  while true do
    local row, seconds, within = self.c:best(rows & self.alive, tolerance or 0, limit or math.huge, bytes or true)
    if not row then return nil end
    local new = within - self.judged
    if #new == 0 then return row, seconds, within end
    self.judged = self.judged | new
    local dead = apply_policy(self, true, new)
    self.alive, dropped = self.alive - dead, dropped + #dead
    if #(dead & within) == 0 then return row, seconds, within end
    if dropped > FEW then
      count(self)
      drop_long(self, rows - self.swept)
    end
  end
end

local function is_dropped() return true end
local function is_hard(entry) return entry.kind == "reject" or entry.kind == "engine" or entry.kind == "framework" end
local function refuses_schedule(entry) return entry.kind == "refuse" and candidates.names_schedule(entry.rule) end

-- --------------------------------------------------------------------------------------------------------------------------- opening

-- A copy of `fixed` without a field and what only makes sense with it.
function candidates.without(fixed, field)
  local copy = lists.with(fixed)
  copy[field] = nil
  if field == "schedule" or field == "virtual" or field == "pipeline" then copy.layers_per_stage = nil end
  return copy
end

local search_fields = { "model", "training", "device", "network", "gpus", "global_batch", "smallest_batch", "usable_bytes",
                        "overhead_bytes", "communicators", "hop_waiting", "step_overhead_seconds",
                        "scale_up_gpus", "max_tensor", "max_context", "max_virtual",
                        "kernel_latency", "rounds", "experts_as_tensor", "experts_apart",
                        "profile", "split_tie", "split_gain", "split_overfull",
                        "run_days_per_second", "price_per_gpu_hour" }

-- The largest power of two up to a number, at least 1.
local function largest_power(number)
  local power = 1
  while power * 2 <= number do power = power * 2 end
  return power
end

-- Fields whose values a choice of the recipe decides (choices.lua).
candidates.chosen = { "micro_batch_size", "recompute", "sharding", "gpus_used" }

local function search_of(context)
  local arguments = {}
  for _, name in ipairs(search_fields) do arguments[name] = context.arguments[name] end
  arguments.fixed = candidates.without(context.fixed, "schedule")
  arguments.fixed.layers_per_stage = context.fixed.layers_per_stage
  local parameter = context.policy.parameters.context_rank_tokens
  arguments.max_context = arguments.max_context or parameter and largest_power(context.record.sequence_length / parameter.value) or 1
  arguments.choices = {}
  for i, choice in ipairs(context.arguments.choices) do
    arguments.choices[i] = { training = choice.training, gpus = choice.gpus, alone = choice.alone }
  end
  arguments.layers = framework.layer_rules(context)
  -- A fixed schedule is judged beside the others, which the plan compares it with. What no layout could run is not worth a search.
  local schedule = context.fixed.schedule
  arguments.schedules = {}
  for _, name in ipairs(context.no_comparison and schedule and schedule ~= "none" and {} or candidates.planned(context.policy)) do
    if not framework.forbidden(context, name) then arguments.schedules[#arguments.schedules + 1] = name end
  end
  for _, name in ipairs(schedule and candidates.members(context.policy, schedule) or {}) do
    if name ~= "none" and not lists.contains(arguments.schedules, name) then arguments.schedules[#arguments.schedules + 1] = name end
  end
  return engine.search(arguments)
end

--[[
candidates.open{ request, policy, record, arguments, fixed, no_comparison: a fixed schedule stands alone } → set:
  c            engine.search; policy; context: the argument
  entries      what drops candidates, in the order in which reasons are told
  main         rows that the search is about: pipelines (with the fixed schedule, where one is), or depth 1 where that is fixed
  alone        rows of depth 1 beside them
  alive        rows that no entry drops, as far as bytes and seconds are known: see set:best and set:weigh
  undropped    rows that no rule drops before they are;  judged: rows that rules about bytes and seconds were asked about
  swept        rows of which it was asked whether their bounds tell that a rule about seconds holds
  hard         rows dropped by a reject, the engine or the framework; refused: rows dropped by a refusal that names a schedule
  unsaid       rule → rows of which its function could not say before they were simulated; memo: what functions said
  counted      of late entries (about bytes or seconds) what is counted, where that is less than what they drop; see set:counted_of
  unbuildable  rows that no constructor can build, whatever else holds for them
]]
function candidates.open(context)
  local set = setmetatable({ c = search_of(context), policy = context.policy, context = context, entries = {}, unsaid = {},
                            memo = functions.memo(context.record) }, methods)
  local c = set.c
  for _, name in ipairs(lists.sorted_keys(context.record)) do c:set(name, context.record[name]) end
  for _, name in ipairs(candidates.chosen) do c:set(name, choices.column(context.arguments.choices, name)) end
  set_kernels(set)
  set.alone = c:match { { field = "pipeline_parallel", op = "equal", value = 1 } }
  set.main = context.fixed.pipeline == 1 and set.alone or c:all() - set.alone
  if context.fixed.pipeline ~= 1 and context.fixed.schedule then
    set.main = set.main & set:scheduled(candidates.members(context.policy, context.fixed.schedule))
  end
  apply_engine(set, apply_policy(set, false, c:all()))
  framework.apply(set, add, candidates.planned(set.policy))
  set.alive = c:all() - union(set, is_dropped) - set.unbuildable
  set.undropped, set.judged, set.swept = set.alive, c:none(), c:none()
  set.hard = union(set, is_hard) | set.unbuildable
  set.refused = union(set, refuses_schedule)
  return set
end

return candidates
