-- SPDX-License-Identifier: Apache-2.0
-- minimum.lua: gpus "minimum": on how few GPUs of this kind the run fits, and what keeps it from fewer. Counts are tried from below: those
-- that divide a node, then whole nodes one by one, from where weights, gradients and optimizer fit at all.

local choose = require "pipeplan.plan.choose"
local engine = require "engine"
local facts = require "pipeplan.plan.facts"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local spec = require "pipeplan.input.spec"
local what_if = require "pipeplan.plan.what_if"

local minimum = {}

local ONE_BY_ONE = 64   -- so many counts in a row; beyond, each a quarter more than the one before, until
local MOST = 1000000    -- GPUs
local BETWEEN = 16      -- at most so many counts are tried between two such

local function gcd(a, b) return b == 0 and a or gcd(b, a % b) end
local function lcm(a, b) return a // gcd(a, b) * b end
local function round_up(number, step) return (number + step - 1) // step * step end

-- Bytes of weights, gradients and the optimizer's state of the whole model, each once, in a recipe: of one GPU, or of two that share what
-- its sharding shares. Two hold less where parameters are sharded, for their weights are those of the optimizer.
local function state_of(shape, training)
  local least = math.huge
  for data = 1, 2 do
    local whole = { tensor = 1, context = 1, expert = 1, expert_tensor = 1, data = data, pipeline = 1, chunks = 1 }
    local one = engine.memory.stages { model = shape, training = training, layout = whole }[1]
    least = math.min(least, data * (one.parameters + one.gradients + one.optimizer))
  end
  return least
end

-- Fewer than so many GPUs cannot hold that in any recipe that the plan may choose: → GPUs, bytes.
local function bound(request, known)
  local state, room = math.huge, known.usable_bytes - known.arguments.overhead_bytes
  for _, choice in ipairs(known.arguments.choices) do state = math.min(state, state_of(request.model.shape, choice.training)) end
  return room > 0 and math.max(1, math.ceil(state / room)) or nil, state
end

-- Counts in the order in which they are tried, each a multiple of `unit`; f(count) → true ends it. → the count that ended it, or nil.
local function each_count(least, unit, host, f)
  for count = unit, host - 1, unit do
    if count >= least and host % count == 0 and f(count) then return count end
  end
  local step = lcm(unit, host)
  local count, before = round_up(math.max(least, host), step), nil
  for _ = 1, ONE_BY_ONE do
    if f(count) then return count end
    before, count = count, count + step
  end
  while count <= MOST do
    count = round_up(math.max(count, before + before // 4), step)
    if f(count) then
      local stride = math.max(1, (count - before) // step // BETWEEN) * step
      for between = before + stride, count - 1, stride do
        if f(between) then return between end
      end
      return count
    end
    before = count
  end
end

-- The request with a pipeline where one is planned on so many GPUs, without one where that fits; nil, why there is neither.
local function request_on(any, gpus, policy)
  local request, contradiction = any.at(gpus)
  if not request then return nil, contradiction end
  if what_if.layout(request, policy) then return request end
  if request.parallelism.pipeline or request.parallelism.schedule then return nil end
  local alone = spec.without_pipeline(request)
  return what_if.layout(alone, policy) and alone or nil
end

-- What stands against the largest count below that was tried, and against the largest that is short of memory, in words.
local function obstacles(any, tried, policy)
  local list = {}
  for i = #tried, math.max(1, #tried - BETWEEN), -1 do
    local request, contradiction = any.at(tried[i])
    if request then
      policy.host:refill()
      local known = facts.of(request, policy)
      local reason = choose.obstacle { request = request, policy = policy, record = known.record, arguments = known.arguments }
      if #list == 0 or reason.kind == "memory" then
        list[#list + 1] = { gpus = tried[i], id = reason.id, message = reason.message, rank = reason.rank,
                            missing_bytes = reason.missing_bytes }
      end
      if reason.kind == "memory" then return list end
    elseif #list == 0 then
      list[1] = { gpus = tried[i], id = "contradiction", message = contradiction }
    end
  end
  return list
end

-- The request for the first of some counts that the spec does not contradict. Raises where it contradicts them all.
local function first_of(any, unit, counts)
  local problem
  for i = 1, counts and #counts or ONE_BY_ONE do
    local request, contradiction = any.at(counts and counts[i] or unit * i)
    if request then return request end
    problem = problem or contradiction
  end
  failure.usage("%s", problem)
end

local function none_of(tried)
  return { id = "no_count_fits", message = string.format("none of the %d counts of GPUs that were tried, from %s to %s, holds the run",
                                                         #tried, format.integer(tried[1]), format.integer(tried[#tried])) }
end

-- any: what spec.lua reads for "minimum". → the request for the fewest GPUs, and the plan's `minimum`; where no count will do that for the
-- fewest that could hold the state, nil, and a reason. Raises where the spec contradicts every count.
function minimum.find(any, policy)
  local unit = lcm(any.units[1], any.units[2])
  local first = first_of(any, unit)
  local least, state = bound(first, facts.of(first, policy))
  local tried, found = {}, nil
  each_count(least or 1, unit, first.cluster.host_gpus, function(gpus)
    local request = request_on(any, gpus, policy)
    found = request or found
    if request then return true end
    tried[#tried + 1] = gpus
  end)
  table.sort(tried)
  if not found then return first_of(any, unit, tried), nil, none_of(tried) end
  local gpus, fewer = found.cluster.gpus, {}
  for _, count in ipairs(tried) do
    if count < gpus then fewer[#fewer + 1] = count end
  end
  local list = obstacles(any, fewer, policy)
  if #list == 0 and gpus == unit and unit > least then
    list[1] = { gpus = unit - 1, id = "contradiction", message = "the fixed layout takes " .. format.integer(unit) }
  elseif #list == 0 then
    list[1] = { gpus = least - 1, id = "state", message = "weights, gradients and optimizer alone are " .. format.bytes(state) }
  end
  return found, { gpus = gpus, state_bytes = state, state_gpus = least, fewer = list }
end

return minimum
