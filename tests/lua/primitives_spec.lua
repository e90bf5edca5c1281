-- SPDX-License-Identifier: Apache-2.0
-- The description of the engine's primitives, from which their definitions are made, says what the bindings do: each name, what must be
-- there, and each limit.

require "pipeplan"
package.path = "stdlib/meta/?.lua;stdlib/meta/?/init.lua;" .. package.path

local costs = require "lua.costs"
local engine = require "engine"
local primitives = require "generate.primitives"
local search = require "generate.search"

local source = os.getenv "PIPEPLAN_SOURCE"

local function copy(value, changes)
  local out = {}
  for key, entry in pairs(value) do out[key] = entry end
  for key, entry in pairs(changes or {}) do out[key] = entry end
  return out
end

local schedule = { ranks = 2, microbatches = 4 }
local layout = { tensor = 2, data = 4, expert = 4 }
local base = { model = costs.deepseek_v3(), layout = layout, training = costs.bf16(), device = costs.h100(), network = costs.network() }

-- Arguments that each function takes.
local legal = {
  bubble = copy(schedule, { schedule = "1f1b", F = 1, I = 1, W = 1 }),
  ["comm.allgather"] = { network = base.network, size = 8, bytes = 1e9 },
  ["comm.allreduce"] = { network = base.network, size = 8, bytes = 1e9 },
  ["comm.alltoall"] = { network = base.network, group = 16, tokens = 4096, experts_per_token = 8, bytes_per_token = 7168 },
  ["comm.fit"] = { test = "all_reduce", ranks = 8, points = { { 1e6, 1e-4 }, { 1e9, 1e-2 } } },
  ["comm.p2p"] = { network = base.network, bytes = 1e6 },
  ["cost.blocks"] = base,
  ["cost.terms"] = base,
  ["cost.hop"] = { model = base.model, layout = layout, training = base.training, network = base.network },
  ["cost.pair"] = { device = base.device, forward = { forward = 1 }, backward = { forward = 1, input = 1, weight = 1 } },
  ["cost.stage"] = copy(base, { stage = { moe = 4 } }),
  ["cost.step"] = { layout = layout, training = base.training, device = base.device, network = base.network, dense_parameters = 1e9 },
  ["memory.blocks"] = { model = base.model, layout = layout, training = base.training },
  ["memory.stages"] = { model = base.model, layout = layout, training = base.training },
  schedule = copy(schedule, { kind = "1f1b" }),
  ["schedule.check"] = copy(schedule, { kind = "1f1b" }),
  simulate = { F = 1, I = 1, W = 1 },
  verify = { buffers = 1 },
  lowered = { runtime = "torch-single" },
  search = {
    model = { layers = 4, hidden = 64, vocab = 256, heads = 4, ffn = 128 }, training = base.training, device = base.device,
    network = base.network, gpus = 4, global_batch = 8, scale_up_gpus = 8, usable_bytes = 1e9, schedules = { "1f1b" },
  },
}

local built = assert(engine.schedule { kind = "1f1b", ranks = 2, microbatches = 4 })

local function call(name, arguments)
  if built[name] then return pcall(built[name], built, arguments) end
  local value = engine
  for part in name:gmatch("[^.]+") do value = value[part] end
  return pcall(value, arguments)
end

-- Classes that are given: how one is passed, and one that is legal.
local given = {
  shape = { base.model, function(value) return pcall(engine.model.parameters, value) end },
  stage_seconds = { { forward = 1, input = 1 }, function(value) return call("cost.pair", copy(legal["cost.pair"], { backward = value })) end },
  stage = { { moe = 4 }, function(value) return call("cost.stage", copy(legal["cost.stage"], { stage = value })) end },
  recompute = { { norm = true }, function(value)
    return call("memory.blocks", copy(legal["memory.blocks"], { training = copy(base.training, { recompute = value }) }))
  end },
  csv_options = { { directions = 1 }, function(value) return pcall(engine.schedule.from_csv, "0F0,0B0\n", value) end },
  extra_seconds = { {}, function(value) return call("simulate", copy(legal.simulate, { last_stage = value })) end },
  hop = { { bandwidth = 1e9, bytes = 1 }, function(value) return call("simulate", copy(legal.simulate, { p2p = value })) end },
  chunk_bytes = { { stored = 1 }, function(value) return call("simulate", copy(legal.simulate, { bytes = value })) end },
  heat = { { onset = 0.5, slope = 0.1, tau = 1 }, function(value)
    return call("simulate", copy(legal.simulate, { runtime = "torch-single", heat = value }))
  end },
}
given.communicators = { { one = 1, several = 2, world = true }, function(value)
  return call("memory.stages", copy(legal["memory.stages"], { communicators = value }))
end }
local function of_tier(tier) return call("comm.p2p", { network = { tiers = { copy({ reach = 8, bandwidth = 1e9 }, tier) } }, bytes = 1 }) end
given.host_floor = { { forward = 1e-3, waiting = 0.2 }, function(value)
  return call("cost.blocks", copy(base, { device = copy(base.device, { host = value }) }))
end }
given.tier = { { reach = 8, bandwidth = 1e9 }, function(value) return call("comm.p2p", { network = { tiers = { value } }, bytes = 1 }) end }
given.measured = { { message = { bandwidth = 1e9 } }, function(value) return of_tier { measured = value } end }
given.link = { { bandwidth = 1e9 }, function(value) return of_tier { measured = { ring = value } } end }
given.message = { { bytes = 1, seconds = 1 }, function(value) return of_tier { messages = { value } } end }
given.slower = { { expert = 2 }, function(value)
  return call("comm.p2p", { network = { tiers = { { reach = 8, bandwidth = 1e9 } }, slower = value }, bytes = 1 })
end }
for _, name in ipairs { "layout", "training", "device", "network" } do
  given[name] = { base[name], function(value) return call("cost.blocks", copy(base, { [name] = value })) end }
end

given.layer_kind = { { layers = { 1 } }, function(value)
  return pcall(engine.model.parameters, copy(base.model, { kinds = { value } }))
end }

local function of_search(changes) return call("search", copy(legal.search, changes)) end
local profile = { layout = {}, stages = { { blocks = { dense = 1 }, F = 1, B = 2 } } }
given.search_fixed = { {}, function(value) return of_search { fixed = value } end }
given.search_choice = { { training = base.training }, function(value) return of_search { choices = { value } } end }
given.search_profile = { profile, function(value) return of_search { profile = value } end }
given.profile_stage = { profile.stages[1], function(value) return of_search { profile = copy(profile, { stages = { value } }) } end }

local host = { F = 1, I = 1, W = 1, B = 2 }
local function of_host(value) return call("simulate", copy(legal.simulate, { host = value })) end
given.host_seconds = { host, of_host }
given.host_beyond = { host, function(value) return of_host(copy(host, { beyond = value })) end }
given.host_waits = { { F = true }, function(value) return of_host(copy(host, { waits = value })) end }
given.profile_host = { host, function(value)
  return of_search { profile = copy(profile, { stages = { copy(profile.stages[1], { host = value }) } }) }
end }

-- Everything with named arguments: { name, fields, a legal value, a function that calls with a value }.
local cases = {}
for _, list in ipairs { primitives.functions, primitives.methods, search.functions } do
  for _, entry in ipairs(list) do
    if entry.arguments then
      cases[#cases + 1] = { entry[1], entry.arguments, legal[entry[1]], function(value) return call(entry[1], value) end }
    end
  end
end
for _, classes in ipairs { primitives.classes, search.classes } do
  for name, class in pairs(classes) do
    if class.given then cases[#cases + 1] = { name, class.fields, given[name][1], given[name][2] } end
  end
end

local function complains_of(name, good, problem)
  return not good and tostring(problem):find("'" .. name .. "'", 1, true) ~= nil
end

describe("the description of the engine", function()
  it("names each function that a policy can reach, and no other", function()
    local reachable, described = {}, {}
    for name in pairs(engine.host.allowed) do
      local module = name:match("^engine%.(.*)$")
      if module then
        if type(engine[module]) == "function" or getmetatable(engine[module]) ~= nil then reachable[module] = true end
        for member in pairs(type(engine[module]) == "table" and engine[module] or {}) do reachable[module .. "." .. member] = true end
      end
    end
    for _, list in ipairs { primitives.functions, primitives.values } do
      for _, entry in ipairs(list) do described[entry[1]] = true end
    end
    assert.same(reachable, described)
  end)

  it("names each method of a schedule, of candidates and of a mask, and no other", function()
    local candidates = engine.search(legal.search)
    local objects = { { "schedule", built, primitives.methods }, { "search", candidates, search.candidates }, { "mask", candidates:all(), search.masks } }
    for _, object in ipairs(objects) do
      local name, value, methods = table.unpack(object)
      local file = assert(io.open(source .. "/engine/lua/" .. (name == "mask" and "masks" or name) .. ".c"))
      local text = file:read "a"
      file:close()
      local list = text:match("luaL_Reg " .. name .. "_%w+%[%] = {(.-)};")
      local described, bound = {}, {}
      for _, entry in ipairs(methods) do
        assert.is_function(value[entry[1]], entry[1])
        described[entry[1]] = true
      end
      for method in list:gmatch '{ "([%w_]+)"' do bound[method] = true end
      assert.same(bound, described)
    end
  end)

  it("names the columns of a search, with their types where it has them", function()
    local candidates, described = engine.search(legal.search), {}
    local row = candidates:row(1)
    for i, entry in ipairs(search.classes.candidate.fields) do
      described[i] = entry[1]
      local value = row[entry[1]]
      assert.is_true(entry.optional or value ~= nil, entry[1])
      if value ~= nil then
        local type = math.type(value) == "float" and "number" or math.type(value) or type(value)
        assert.is_true(entry[2]:find(type, 1, true) ~= nil, entry[1] .. " is " .. type)
      end
    end
    assert.same(candidates:fields(), described)
  end)

  it("names the arguments that the bindings know: those of each list in their source", function()
    local described = {}
    for _, case in ipairs(cases) do
      local names = {}
      for i, entry in ipairs(case[2]) do names[i] = entry[1] end
      table.sort(names)
      described[table.concat(names, " ")] = true
    end
    local lists = 0
    for _, name in ipairs { "bubble", "comm", "cost", "memory", "profile", "recipe", "schedule", "search_open", "simulation",
                           "verification" } do
      local file = assert(io.open(source .. "/engine/lua/" .. name .. ".c"))
      for list in file:read("a"):gmatch("known%[%] = {(.-)NULL }") do
        local names = {}
        for argument in list:gmatch("\"(.-)\"") do names[#names + 1] = argument end
        table.sort(names)
        assert.is_true(described[table.concat(names, " ")], name .. ".c: " .. list)
        lists = lists + 1
      end
      file:close()
    end
    assert.is_true(lists >= 20)
    local shape = {}
    for i, entry in ipairs(primitives.classes.shape.fields) do shape[i] = entry[1] end
    table.sort(shape)
    assert.same(engine.model.fields, shape)
  end)

  for _, case in ipairs(cases) do
    local name, fields, value, attempt = table.unpack(case)
    it("of " .. name .. " says which arguments must be there", function()
      local good, problem = attempt(value)
      assert.is_true(good, tostring(problem))
      for _, entry in ipairs(fields) do
        local without = copy(value)
        without[entry[1]] = nil
        local needed = entry.default == nil and not entry.optional
        -- what a shape needs depends on its attention and experts
        if needed or name ~= "shape" then assert.equal(needed, complains_of(entry[1], attempt(without)), entry[1]) end
      end
    end)

    it("of " .. name .. " says what each may be", function()
      for _, entry in ipairs(fields) do
        -- a function is never right
        assert.is_true(complains_of(entry[1], attempt(copy(value, { [entry[1]] = print }))) or entry[2]:match("schedule_object") ~= nil
                       or (name == "stage_seconds" and entry.optional == true), entry[1])
        local step = entry[2] == "integer" and 1 or 1e-12
        if entry.low then
          assert.is_true(complains_of(entry[1], attempt(copy(value, { [entry[1]] = entry.low - step }))), entry[1] .. " below")
          assert.is_false(complains_of(entry[1] .. "' must be", attempt(copy(value, { [entry[1]] = entry.low }))), entry[1] .. " lowest")
        end
        if entry.high then
          local beyond = entry[2] == "integer" and entry.high + 1 or entry.high * (1 + 1e-9)
          assert.is_true(complains_of(entry[1], attempt(copy(value, { [entry[1]] = beyond }))), entry[1] .. " above")
        end
      end
    end)
  end
end)
