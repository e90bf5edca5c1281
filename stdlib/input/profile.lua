-- SPDX-License-Identifier: Apache-2.0
-- profile.lua: reading a profile (stdlib/schema/profile.lua): measured seconds and bytes of stages, messages and steps → what engine.search
-- and the rest of a plan take. How stages with other numbers of layers are made of the measured ones: engine/core/profile.h. What one
-- schedule's stages take, with no model: input/profile_times.lua, which reads parts of it by the functions here.

local documents = require "pipeplan.base.documents"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local format = require "pipeplan.base.format"
local json = require "pipeplan.base.json"
local layers_in = require("pipeplan.base.blocks").layers
local lists = require "pipeplan.base.lists"
local runs = require "pipeplan.input.profile_runs"

local profile = {}

local kinds = { "F", "B", "I", "W", "FB" }

-- Which of the measured temperatures a plan reads: a training step runs hot, unless the profile says how cards heat up.
local temperatures = { "kind_ms_hot", "kind_ms", "kind_ms_cold" }
local words = { kind_ms_hot = "hot (back to back, under load)", kind_ms = "as measured", kind_ms_cold = "cold (pauses between)" }

local function all_have(stages, name)
  for _, stage in ipairs(stages) do
    if not stage[name] then return false end
  end
  return true
end

-- Sum of F and B at a temperature.
local function total(stages, name)
  local sum = 0
  for _, stage in ipairs(stages) do sum = sum + stage[name].F + stage[name].B end
  return sum
end

-- How much longer stages take at one temperature than cold. No card that works is ten times slower hot than cold.
local function slower(raw, name, file)
  local ratio = total(raw.stage, name) / total(raw.stage, "kind_ms_cold")
  if ratio > 10 then failure.usage("%s: %s is %.3g times kind_ms_cold in all: expected at most 10", file, name, ratio) end
  return math.max(1, ratio)
end

-- What slows cards down: { heat = { onset, slope, tau, rank_slope }, contention }, of a runtime that simulates it; slope: hot over
-- cold, less one. What the profile says of the card itself comes before the ratio of these stages' times.
function profile.hardware(raw, runtime, file)
  local out = {}
  if not runtime or runtime == "ideal" then return out end
  if raw.heat and raw.heat.onset and raw.heat.tau_ms and all_have(raw.stage, "kind_ms_cold") and all_have(raw.stage, "kind_ms_hot") then
    out.heat = { onset = raw.heat.onset, slope = raw.heat.slope or slower(raw, "kind_ms_hot", file) - 1, tau = raw.heat.tau_ms * 1e-3,
                 rank_slope = raw.heat.rank_slope }
  end
  if raw.contention then
    out.contention = raw.contention
  elseif all_have(raw.stage, "kind_ms_cold") and all_have(raw.stage, "kind_ms_shadowed") then
    out.contention = slower(raw, "kind_ms_shadowed", file)
  end
  return out
end

-- As schedule:simulate takes it: what is known of each card counts at that many ranks alone.
function profile.heat_at(heat, ranks)
  local known = heat.rank_slope and #heat.rank_slope == ranks
  return { onset = heat.onset, slope = heat.slope, tau = heat.tau, rank_slope = known and heat.rank_slope or nil }
end

-- What the actions of a stage take on a card that has nothing else to do beyond what card and host each take.
local function beyond_of(stage, host)
  local alone, card, out = stage.kind_ms_alone or {}, stage.kind_ms_cold or stage.kind_ms or {}, {}
  for _, kind in ipairs { "F", "I", "W", "B" } do
    -- PyTorch's first stage: its W is the whole backward
    local as = kind == "W" and not alone.W and not stage.host_ms.W and "B" or kind
    out[kind] = alone[as] and card[as] and math.max(0, alone[as] - math.max(host[kind], card[as])) or 0
  end
  return out
end

local function in_seconds(of) return { F = of.F * 1e-3, I = of.I * 1e-3, W = of.W * 1e-3, B = of.B * 1e-3 } end

-- What handing over the actions of stage i takes its host, where stages say so: { F = seconds, …, beyond = { F = seconds, … },
-- waits = { F = boolean, … } }.
function profile.host(raw, i, file)
  local stage = raw.stage[i]
  local alone, behind, waits = stage.host_ms, stage.host_ms_behind, {}
  if behind and not raw.behind_ms then
    failure.usage("%s: behind_ms is missing: for how long the card was busy when stage[%d].host_ms_behind was measured", file,
                  i - 1)
  end
  for kind, took in pairs(behind or {}) do waits[kind] = alone[kind] ~= nil and took - alone[kind] > raw.behind_ms / 2 end
  local host = lists.with(alone, { waits = waits })
  -- PyTorch's first stage has neither: its I is nothing, its W the whole backward.
  if not host.I and not host.W then host.I, host.W, waits.W = 0, host.B, waits.B end
  if not (host.I and host.W) then failure.usage("%s: stage[%d].host_ms has only one of I and W: expected both or neither", file, i - 1) end
  return lists.with(in_seconds(host), { beyond = in_seconds(beyond_of(stage, host)), waits = waits })
end

-- The hosts of stages (profile.host) as schedule:simulate takes them: lists by stage.
function profile.host_lists(hosts)
  local out = { beyond = {}, waits = {} }
  for _, kind in ipairs { "F", "I", "W", "B" } do
    out[kind], out.beyond[kind], out.waits[kind] = {}, {}, {}
    for i, host in ipairs(hosts) do
      out[kind][i], out.beyond[kind][i], out.waits[kind][i] = host[kind], host.beyond[kind], host.waits[kind] == true
    end
  end
  return out
end

-- Do all stages say what they take their hosts? Fails where only some do.
function profile.has_hosts(raw, file)
  local with = 0
  for i, stage in ipairs(raw.stage) do
    with = with + (stage.host_ms and 1 or 0)
    if stage.host_ms_behind and not stage.host_ms then
      failure.usage("%s: stage[%d].host_ms_behind without host_ms: expected both, or host_ms alone", file, i - 1)
    end
  end
  if with > 0 and with < #raw.stage then
    failure.usage("%s: %d of %d stages have host_ms: expected it in all of them or in none", file, with, #raw.stage)
  end
  return with > 0
end

-- Which times of the stages are read: the name of a field of theirs. What is timed hot, back to back, has waits for hosts in it: where
-- those are told apart, and heat is known, if only not to matter, it is what cards take when they are cold.
function profile.temperature(raw, heat, file)
  local stages = raw.stage
  if heat or raw.heat and profile.has_hosts(raw, file) and all_have(stages, "kind_ms_cold") then return "kind_ms_cold" end
  for _, name in ipairs(temperatures) do
    if all_have(stages, name) then return name end
  end
  for i, stage in ipairs(stages) do
    if not (stage.kind_ms_hot or stage.kind_ms or stage.kind_ms_cold) then
      failure.usage("%s: stage[%d] has no times: expected kind_ms_hot, kind_ms or kind_ms_cold with F and B", file, i - 1)
    end
  end
  failure.usage("%s: stages were measured at different temperatures: expected kind_ms_hot, kind_ms or kind_ms_cold in each of them", file)
end

-- Layers of each stage; without any, an even split of the model.
local function layers_of(stages, shape, file)
  local list, given = {}, 0
  for i, stage in ipairs(stages) do
    list[i] = stage.layers or 0
    given = given + (stage.layers and 1 or 0)
  end
  if given == #stages then return list end
  if given > 0 then
    failure.usage("%s: some stages say how many layers they hold and others do not: expected `layers` in all or in none", file)
  end
  local even, problem = engine.model.stages(shape, #stages)
  if not even then failure.usage("%s: the model cannot be split evenly over %d stages: %s", file, #stages, problem.message) end
  for i, stage in ipairs(even) do list[i] = layers_in(stage) end
  return list
end

-- Where layers are of several kinds, which ones a stage holds follows from the whole model.
local function with_kinds(stage, held, file)
  if not held then failure.usage("%s: the model has layers of several kinds: expected stages that hold all its layers", file) end
  return lists.with(held, { embedding = stage.embedding, head = stage.head, mtp = stage.mtp })
end

-- Blocks of each stage. Where the stages are the whole model it says which layers have experts, elsewhere the profile does.
local function blocks_of(stages, shape, file)
  local layers, sum = layers_of(stages, shape, file), 0
  for _, count in ipairs(layers) do sum = sum + count end
  if sum == 0 then failure.usage("%s: stage[].layers is 0 in all: expected a stage that holds a layer", file) end
  local whole = sum == shape.layers and engine.model.stages(shape, #stages, layers)
  local list = {}
  for i, stage in ipairs(stages) do
    local first, last = i == 1 and #stages > 1, i == #stages and #stages > 1
    local has_embedding = stage.embedding == nil and first or stage.embedding == true
    local has_head = stage.head == nil and last or stage.head == true
    local dense = stage.dense or (whole and whole[i].dense) or ((shape.experts or 0) > 0 and 0 or layers[i])
    if dense > layers[i] then
      failure.usage("%s: stage[%d].dense is %d: expected at most its %d layers", file, i - 1, dense, layers[i])
    end
    list[i] = { embedding = has_embedding and 1 or 0, dense = dense, moe = layers[i] - dense, head = has_head and 1 or 0,
                mtp = has_head and shape.mtp_layers or 0 }
    if shape.kinds then list[i] = with_kinds(list[i], whole and whole[i], file) end
  end
  return list
end

-- A number of the profile's own `mem`: one for all stages, or one a stage.
local function each(value, i, count, file, name)
  if type(value) ~= "table" then return value end
  if #value ~= count then failure.usage("%s: mem.%s has %d entries: expected one a stage, %d", file, name, #value, count) end
  return value[i]
end

local function largest(value)
  if type(value) ~= "table" then return value end
  local most
  for _, bytes in pairs(value) do most = math.max(most or 0, bytes) end
  return most
end

local memory_names = { parameters = "weights", gradients = "grads", stored = "act_bytes", pending = "wgrad_pending_bytes" }

-- Bytes of stage i, by the names that the engine has for them.
function profile.memory(stage, i, raw, file)
  local own, shared, out = stage.mem or {}, raw.mem or {}, {}
  for quantity, name in pairs(memory_names) do
    out[quantity] = own[name]
    if out[quantity] == nil then out[quantity] = each(shared[name], i, #raw.stage, file, name) end
  end
  out.transient = largest(own.transient_bytes or shared.transient_bytes)
  return out
end

-- Given alone, I or W leaves the other of B: fails where it leaves less than nothing.
function profile.check_parts(times, at)
  for _, kind in ipairs { "I", "W" } do
    if times[kind] and times[kind] > times.B and not (times.I and times.W) then
      failure.usage("%s.%s is %.15g: expected at most B, which is %.15g", at, kind, times[kind], times.B)
    end
  end
end

-- Speed of the card that stage i was measured on, over the mean: plans may place it on another, so that they read times of a mean one.
local function speed_of(raw, i, file)
  local speeds, rank = raw.rank_speed, raw.stage[i].rank
  if not speeds or not rank then return 1 end
  if rank >= #speeds then
    failure.usage("%s: stage[%d].rank is %d: expected one of rank_speed's %d ranks, nearest: %d", file, i - 1, rank, #speeds, #speeds - 1)
  end
  return speeds[rank + 1]
end

local function stages_of(raw, shape, heat, file)
  local temperature, blocks, list = profile.temperature(raw, heat, file), blocks_of(raw.stage, shape, file), {}
  for i, stage in ipairs(raw.stage) do
    list[i] = profile.memory(stage, i, raw, file)
    list[i].blocks = blocks[i]
    local times = stage[temperature]
    local speed = speed_of(raw, i, file)
    for _, kind in ipairs(kinds) do list[i][kind] = times[kind] and times[kind] * 1e-3 * speed end
    profile.check_parts(times, string.format("%s: stage[%d].%s", file, i - 1, temperature))
    if profile.has_hosts(raw, file) then list[i].host = profile.host(raw, i, file) end
  end
  return list, temperature
end

-- { scale_up = { { bytes, seconds }, … }, scale_out = … }, sizes ascending. Times need not ascend: what pp_comm_p2p makes of them does.
function profile.messages(raw, file)
  local links = {}
  for _, entry in ipairs(raw.p2p or {}) do
    local link = entry.link or "scale_up"
    links[link] = links[link] or {}
    table.insert(links[link], { bytes = entry.bytes, seconds = entry.us * 1e-6 })
  end
  for link, list in pairs(links) do
    table.sort(list, function(a, b) return a.bytes < b.bytes end)
    for i = 2, #list do
      if list[i].bytes == list[i - 1].bytes then
        failure.usage("%s: p2p has two entries of %.15g bytes for %s: expected one", file, list[i].bytes, link)
      end
    end
    if #list > 16 then failure.usage("%s: p2p has %d sizes for %s: expected at most 16", file, #list, link) end
  end
  return links
end

-- Larger messages come out a little faster now and then; by more than this it is worth a word.
local ordinary_noise = 0.1

-- What is wrong with a table of messages, in words, or nil: a larger message was much the faster one, or the largest took no longer than a
-- smaller one, so that nothing is known of larger ones.
function profile.noise(messages)
  for _, link in ipairs { "scale_up", "scale_out" } do
    local list, slowest = messages[link] or {}, nil
    for i, entry in ipairs(list) do
      if i > 1 and entry.seconds < list[i - 1].seconds * (1 - ordinary_noise) then
        return string.format("p2p takes %s for %s and %s for %s (%s): the shorter counts", format.seconds(list[i - 1].seconds),
                             format.bytes(list[i - 1].bytes), format.seconds(entry.seconds), format.bytes(entry.bytes), link)
      elseif i > 1 and i == #list and entry.seconds <= slowest.seconds then
        return string.format("p2p takes %s for %s and no longer for %s (%s): it says nothing of larger messages",
                             format.seconds(slowest.seconds), format.bytes(slowest.bytes), format.bytes(entry.bytes), link)
      end
      if not slowest or entry.seconds >= slowest.seconds then slowest = entry end
    end
  end
end

local sizes = { micro_batch_size = true, sequence_length = true }

-- The layout that was measured; sizes have to be the spec's, for nothing says how times change with them.
local function layout_of(raw, request, file)
  local at, layout = raw.at or {}, { pipeline = 1, chunks = 1 }
  for _, name in ipairs { "tensor", "context", "expert", "expert_tensor", "data" } do layout[name] = at[name] or 1 end
  for name in pairs(sizes) do
    local wanted = request.training[name]
    if at[name] and at[name] ~= wanted then
      failure.usage("%s: at.%s is %d: the plan is for %d; measure there, or plan with %d", file, name, at[name], wanted, at[name])
    end
  end
  local gpus = layout.tensor * layout.context * layout.data * layout.expert * layout.expert_tensor
  if gpus > 10000000 then failure.usage("%s: at: degrees whose product is %d: expected at most 10000000 GPUs", file, gpus) end
  -- experts have to divide what they lie over; of data parallelism nothing in a stage depends
  local experts = layout.expert * layout.expert_tensor
  if layout.tensor * layout.context * layout.data % experts ~= 0 then
    if at.data then
      failure.usage("%s: at.expert × at.expert_tensor is %d: expected to divide tensor × context × data, %d", file, experts,
                    layout.tensor * layout.context * layout.data)
    end
    layout.data = experts
  end
  return layout
end

-- What a profile says of its model beside times, where the spec's says otherwise. Times of layers of another model price nothing.
local function compare_models(request, raw, read, file)
  local shape, name = request.model.shape, file:match "[^/]*$"
  local function warn(form, ...)
    table.insert(request.warnings, { id = "profile_of_another_model", severity = "warning",
                                     message = string.format("%s: " .. form .. ": measured of another model?", name, ...) })
  end
  local tokens = request.training.micro_batch_size * request.training.sequence_length / read.layout.context
  local whole = 2 * tokens * shape.hidden * math.max(1, shape.streams or 0)   -- as pp_cost_hop_bytes (engine/core/cost_step.c)
  local said = raw.message_bytes
  if said and said ~= whole and said ~= whole / read.layout.tensor then
    warn("message_bytes is %s: stages of the spec's model hand over %s (2 bytes × hidden %s × %s tokens)", format.bytes(said),
         format.bytes(whole), format.integer(shape.hidden), format.integer(math.floor(tokens)))
  end
  for i, stage in ipairs(read.stages) do
    local least = whole / read.layout.tensor
    if stage.stored and stage.stored < least and layers_in(stage.blocks) > 0 then
      warn("act_bytes of stage[%d] is %s, and %s come into a stage and are kept at least (are these bytes?)", i - 1,
           format.bytes(stage.stored), format.bytes(least))
      break
    end
  end
  local layers = 0
  for _, stage in ipairs(raw.stage) do layers = layers + (stage.layers or 0) end
  if layers > shape.layers then warn("its stages hold %d layers: the spec's model has %d", layers, shape.layers) end
end

local function note(request, value, why)
  table.insert(request.assumptions, { field = "profile", value = value, why = why })
end

-- Says what was taken from the profile, and what it leaves to be computed. The whole path is named once.
local function tell(request, raw, read, file)
  local source, name = raw.source and file .. " (" .. raw.source .. ")" or file, file:match "[^/]*$"
  note(request, string.format("F and B of %d stage%s", #read.stages, #read.stages == 1 and "" or "s"),
       string.format("%s: %s; other layer counts by seconds per layer, what ends take beside layers kept apart", source,
                     read.heat and "cold, and hotter the longer a card works" or words[read.temperature]))
  local kept = {}
  for quantity, field in pairs(memory_names) do
    local count = 0
    for _, stage in ipairs(read.stages) do count = count + (stage[quantity] and 1 or 0) end
    if count > 0 then kept[#kept + 1] = field .. (count < #read.stages and string.format(" (%d stages)", count) or "") end
  end
  table.sort(kept)
  if #kept > 0 then note(request, table.concat(kept, ", "), name .. ": mem, in place of what is computed") end
  local ends, with = { embedding = 0, head = 0 }, { I = 0, W = 0, [""] = 0 }
  for _, stage in ipairs(read.stages) do
    local has = (stage.I and "I" or "") .. (stage.W and "W" or "")
    with[has] = (with[has] or 0) + 1
    for part in pairs(ends) do ends[part] = ends[part] + stage.blocks[part] end
  end
  if with[""] == #read.stages then note(request, "I and W", "not measured: B divided as the cost model divides it")
  elseif with[""] > 0 then note(request, "I and W", with[""] .. " stages without: their layers take what those of the others take") end
  if with.I + with.W > 0 then note(request, with.I > 0 and "W = B − I" or "I = B − W", "only one of I and W was measured") end
  for _, part in ipairs { "embedding", "head" } do
    if ends[part] == 0 then note(request, part, "in no measured stage: computed, times what layers took over computed") end
  end
  if read.runtime and read.runtime ~= "ideal" then
    note(request, "runtime " .. read.runtime,
         name .. ": runtime; where it cannot run a schedule, PyTorch's other one, or the ideal one on hot cards")
  end
  if read.heat then
    note(request, string.format("heat up to %.1f %%", read.heat.slope * 100),
         string.format("%s: above cold, from %.0f %% of the time busy, averaged over %.0f ms", name, read.heat.onset * 100,
                       read.heat.tau * 1e3))
  end
  if raw.stage[1].host_ms then
    note(request, "hosts", name .. ": host_ms; as many launches a layer in every layout")
  else note(request, "hosts always ahead", name .. " has no host_ms: where a card waits for its host is not seen") end
  if read.contention then
    note(request, string.format("contention %.2f", read.contention), name .. ": beside a receive that waits")
  end
  if read.rank_speed then
    note(request, "speed of the cards", string.format("%s: rank_speed, used at %d ranks", name, #read.rank_speed))
  end
  if next(read.messages) then
    note(request, "messages between stages", name .. ": p2p, linear between its sizes, beyond them no faster than the link")
    local noise = profile.noise(read.messages)
    if noise then table.insert(request.warnings, { id = "noisy_messages", severity = "warning", message = name .. ": " .. noise }) end
  end
  if read.buffered_messages then
    note(request, string.format("%g message buffers a microbatch and stage", read.buffered_messages),
         name .. ": mem.buffers_per_microbatch; counted with the overhead")
  end
  if read.step_fixed_seconds then
    note(request, string.format("%.3g ms a step", read.step_fixed_seconds * 1e3), name .. ": step_fixed_us")
  end
end

-- Less than a billionth of any of its units is nothing: no clock tells it from that, and products of such numbers leave what a number can
-- hold.
local function without_specks(value)
  if type(value) == "table" then
    for key, entry in pairs(value) do value[key] = without_specks(entry) end
  elseif type(value) == "number" and value < 1e-9 then
    return 0
  end
  return value
end

-- What the file holds, as the schema has it.
function profile.load(file)
  local raw = json.read(file)
  documents.check(raw, "profile", file)
  require "pipeplan.input.validate"(raw, require "pipeplan.schema.profile", file)
  runs.of(raw, file)   -- for its schedules, whoever loads the file
  return without_specks(raw)
end

-- Reads the file of the field `profile` for a request whose model, training and cluster are known. → { stages, layout, temperature,
-- messages, buffered_messages, step_fixed_seconds, rank_speed, runtime, heat, contention, calibration, file, source }
function profile.read(file, request)
  local raw = profile.load(file)
  local read = { file = file, source = raw.source, runtime = raw.runtime, rank_speed = raw.rank_speed }
  local hardware = profile.hardware(raw, raw.runtime, file)
  read.heat, read.contention = hardware.heat, hardware.contention
  read.stages, read.temperature = stages_of(raw, request.model.shape, read.heat, file)
  read.calibration = runs.on_stages(raw, read.temperature, file, request.warnings)
  read.layout = layout_of(raw, request, file)
  read.messages = profile.messages(raw, file)
  read.buffered_messages = raw.mem and raw.mem.buffers_per_microbatch
  read.step_fixed_seconds = raw.step_fixed_us and raw.step_fixed_us * 1e-6
  compare_models(request, raw, read, file)
  tell(request, raw, read, file)
  return read
end

return profile
