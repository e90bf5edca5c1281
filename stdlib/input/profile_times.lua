-- SPDX-License-Identifier: Apache-2.0
-- profile_times.lua: what the actions of one schedule take, from a profile of its own stages (stdlib/schema/profile.lua): for `pipeplan
-- simulate --profile`. No model and no cost formula: the stages of the schedule are those that were measured, on the cards that hold them.
-- Read in two steps, as times.lua does, for how many stages there must be depends on the schedule.

local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local profile = require "pipeplan.input.profile"

local profile_times = {}

-- ------------------------------------------------------------------------------------------------------------------------ the file

-- Reads a profile. `choice`: { runtime, pairs, p2p }, what the command line says of them; nil: as the profile.
-- → { file, raw, runtime, temperature, heat, contention, … }: to be completed by profile_times.of.
function profile_times.read(file, choice)
  local raw = profile.load(file)
  local runtime = choice.runtime or raw.runtime or "ideal"
  local hardware = profile.hardware(raw, runtime, file)
  return {
    file = file, raw = raw, runtime = runtime, heat = hardware.heat, contention = hardware.contention,
    temperature = profile.temperature(raw, hardware.heat, file),
    -- PyTorch runs pairs in turn unless a function is registered for them
    overlapped = choice.pairs == "overlapped" or choice.pairs == nil and not runtime:match "^torch", p2p = choice.p2p,
  }
end

-- ------------------------------------------------------------------------------------------------------------------------ stages

-- Has the schedule as many stages as were measured? Those of both directions may be measured apart.
local function check_stages(read, shape)
  local wanted, count = shape.stages // shape.chains, #read.raw.stage
  if count == wanted or count == shape.stages then return end
  failure.usage("%s: stage has %d entries: expected %d, one for each stage of %d ranks with %d chunk%s%s", read.file, count, wanted,
                shape.ranks, wanted // shape.ranks, wanted == shape.ranks and "" or "s each",
                shape.chains > 1 and string.format(" (or %d, both directions)", shape.stages) or "")
end

-- I and W that the first stage has not: what those of the others are of their B. Under PyTorch there are none, for nothing asks for the
-- gradient of its input; where another runtime splits it nonetheless (DualPipe), its layers do what those of other stages do.
local function divided(read, times, at)
  local sum = { B = 0, I = 0, W = 0 }
  for _, stage in ipairs(read.raw.stage) do
    local other = stage[read.temperature]
    if other.I or other.W then
      sum.B, sum.I, sum.W = sum.B + other.B, sum.I + (other.I or other.B - other.W), sum.W + (other.W or other.B - other.I)
    end
  end
  if sum.B == 0 then failure.usage("%s has neither I nor W: expected both, for the schedule splits its backward", at) end
  return times.B * sum.I / sum.B, times.B * sum.W / sum.B
end

-- Milliseconds of I and W of stage i.
local function parts_of(read, i, shape, at)
  local times = read.raw.stage[i][read.temperature]
  if times.I or times.W then return times.I or times.B - times.W, times.W or times.B - times.I end
  if (i - 1) % (shape.stages // shape.chains) ~= 0 then
    failure.usage("%s has neither I nor W: expected both, for the schedule splits its backward", at)
  end
  if read.runtime:match "^torch" then return 0, times.B end   -- see first_skips_input of pp_runtime
  return divided(read, times, at)
end

-- Seconds of stage i by kind; I and W are there when the schedule needs them.
local function seconds_of(read, i, shape)
  local times, at = read.raw.stage[i][read.temperature], string.format("%s: stage[%d].%s", read.file, i - 1, read.temperature)
  profile.check_parts(times, at)
  local out = { F = times.F, B = times.B }
  if shape.split_backward or times.I or times.W then out.I, out.W = parts_of(read, i, shape, at) end
  if shape.overlaps and read.overlapped then out.FB = times.FB end
  for kind, milliseconds in pairs(out) do out[kind] = milliseconds * 1e-3 end
  return out
end

-- How many times as long as was measured the stages of one direction take in the other, where cards that differ hold them.
local function slower(read, stage, shape)
  local speed, placement, of_chain = read.raw.rank_speed, shape.placement, shape.stages // shape.chains
  if not speed or #speed ~= shape.ranks or not placement or #read.raw.stage == shape.stages then return 1 end
  return speed[placement[(stage - 1) % of_chain + 1] + 1] / speed[placement[stage] + 1]
end

-- { F = { … }, … }: by stage. A kind that some stages lack, and the schedule does not need, is left out; a pair takes F + B then.
local function by_stage(read, shape)
  local out, count, length = {}, #read.raw.stage, {}
  for stage = 1, math.max(count, shape.placement and shape.stages or 0) do
    local seconds, factor = seconds_of(read, (stage - 1) % count + 1, shape), slower(read, stage, shape)
    for kind, value in pairs(seconds) do
      out[kind], length[kind] = out[kind] or {}, (length[kind] or 0) + 1
      out[kind][stage] = value * factor
    end
  end
  for stage = 1, out.FB and #out.F or 0 do out.FB[stage] = out.FB[stage] or out.F[stage] + out.B[stage] end
  for _, kind in ipairs { "I", "W" } do
    if length[kind] ~= length.F then out[kind] = nil end
  end
  return out
end

-- ---------------------------------------------------------------------------------------------------------------------- hosts

-- As schedule:simulate takes them; nil: the profile does not say.
local function hosts_of(read, shape)
  local count, list = #read.raw.stage, {}
  if not profile.has_hosts(read.raw, read.file) then return nil end
  for stage = 1, math.max(count, shape.placement and shape.stages or 0) do
    list[stage] = profile.host(read.raw, (stage - 1) % count + 1, read.file)
  end
  return profile.host_lists(list)
end

-- ---------------------------------------------------------------------------------------------------------------------- messages

-- Seconds of one hand-over between ranks. Of two kinds of links the one inside a node counts.
local function hop_of(read, shape)
  if read.p2p or shape.ranks == 1 then return read.p2p or 0 end
  local links = profile.messages(read.raw, read.file)
  local messages = links.scale_up or links.scale_out
  if not messages then failure.usage("%s: p2p is missing: messages between neighbours, measured, or say --p2p SECONDS", read.file) end
  if not read.raw.message_bytes then
    failure.usage("%s: message_bytes is missing: bytes of one hand-over between stages, or say --p2p SECONDS", read.file)
  end
  local largest = messages[#messages]
  read.noise = profile.noise(links)
  if read.raw.message_bytes > 2 * largest.bytes then
    read.beyond = string.format("message_bytes is %s and the largest of p2p %s: the rest is extrapolated",
                                format.bytes(read.raw.message_bytes), format.bytes(largest.bytes))
  end
  -- which link it is nobody says: what was measured stands alone
  local tier = { reach = shape.ranks, bandwidth = 1e30, messages = messages }
  return engine.comm.p2p { network = { tiers = { tier } }, bytes = read.raw.message_bytes }
end

-- ------------------------------------------------------------------------------------------------------------------------ memory

-- What runtimes keep beside weights (see pp_stage_bytes), and weights with gradients; or nil and what the profile lacks. One largest
-- temporary for all kinds is a whole backward's.
local function bytes_of(read, split)
  if not read.raw.message_bytes then return nil, "message_bytes is missing" end
  local bytes, weights = { message = read.raw.message_bytes }, {}
  for _, name in ipairs { "stored", "pending", "deferred", "output", "kept", "transient", "transient_forward",
                          "transient_input", "transient_weight" } do bytes[name] = {} end
  local shared = read.raw.mem or {}
  for i, stage in ipairs(read.raw.stage) do
    local own, times = profile.memory(stage, i, read.raw, read.file), stage[read.temperature]
    local whole = not (times.I or times.W)   -- as PyTorch's first stage: its I does nothing, and until its W stays what F stored
    if not own.stored then return nil, string.format("stage[%d] has no mem.act_bytes", i - 1) end
    if split and not own.pending and not whole then return nil, string.format("stage[%d] has no mem.wgrad_pending_bytes", i - 1) end
    bytes.stored[i], bytes.pending[i] = own.stored, own.pending or own.stored
    local mem = stage.mem or {}
    bytes.deferred[i] = mem.deferred_bytes or shared.deferred_bytes or own.stored
    bytes.output[i] = mem.output_bytes or shared.output_bytes or bytes.message
    bytes.kept[i] = shared.keeps_outputs == false and 0 or bytes.output[i]
    local most = mem.transient_bytes or shared.transient_bytes or 0
    local transient = type(most) == "table" and most or { B = most }
    bytes.transient[i], bytes.transient_forward[i] = transient.B or 0, transient.F or 0
    bytes.transient_input[i], bytes.transient_weight[i] = transient.I or 0, transient.W or 0
    weights[i] = own.parameters and own.gradients and own.parameters + own.gradients
  end
  return bytes, #weights == #read.raw.stage and weights or nil
end

-- Bytes of weights and gradients on each rank.
local function of_ranks(weights, shape)
  local sums = {}
  for rank = 1, shape.ranks do sums[rank] = 0 end
  for stage, rank in ipairs(shape.placement) do
    sums[rank + 1] = sums[rank + 1] + weights[(stage - 1) % #weights + 1]
  end
  return sums
end

-- --------------------------------------------------------------------------------------------------------------------- the whole

-- What cli/simulate.lua asks for by the name of times (see times.lua), for a schedule of that shape: ranks, chains, stages,
-- split_backward, overlaps and, once it is built, placement. Fails where the profile does not have what the schedule needs.
function profile_times.of(read, shape)
  check_stages(read, shape)
  local times = by_stage(read, shape)
  times.p2p, times.heat, times.contention = hop_of(read, shape), read.heat and profile.heat_at(read.heat, shape.ranks), read.contention
  times.host = hosts_of(read, shape)
  return times
end

-- For a schedule that is built: { bytes, weights }, what schedule:simulate takes and what lies on each rank beside it; and why, where
-- something is missing.
function profile_times.memory(read, shape, traits)
  local bytes, weights = bytes_of(read, traits.split_backward)
  if not bytes then return { unknown = weights } end
  return { bytes = bytes, weights = weights and of_ranks(weights, shape) or nil,
           unknown = not weights and "a stage has no mem.weights or no mem.grads" or nil }
end

function profile_times.step_fixed_seconds(read)
  return (read.raw.step_fixed_us or 0) * 1e-6
end

return profile_times
