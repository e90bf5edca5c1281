-- SPDX-License-Identifier: Apache-2.0
-- foreign.lua: random programs that no constructor makes, and what `pipeplan simulate` must say of each in every format under every
-- runtime. A program is written down while it is executed, so that it is one of a training step by construction; what it holds is counted
-- beside.

local cjson = require "cjson"

local foreign = {}

-- Numbers from a seed: the same on every machine. draw(n): 1 … n.
local function generator(seed)
  local state = seed
  for _ = 1, 3 do state = state * 6364136223846793005 + 1442695040888963407 end
  return function(n)
    state = state * 6364136223846793005 + 1442695040888963407
    return (state >> 33) % n + 1
  end
end

-- ------------------------------------------------------------------------------------------------------------------------ programs

-- Where stages lie: round and round, one block a rank, a V, or anywhere; each rank holds at least one. Ranks may be fewer than asked for.
local function placement_of(draw, ranks, per_chain, directions)
  local kind, place = draw(4), {}
  for stage = 0, per_chain * directions - 1 do
    local within = stage % per_chain
    local turn = within % (2 * ranks)
    place[stage] = kind == 1 and within % ranks or kind == 2 and within * ranks // per_chain
      or kind == 3 and (turn < ranks and turn or 2 * ranks - 1 - turn) or draw(ranks) - 1
    if stage >= per_chain and kind ~= 4 then place[stage] = ranks - 1 - place[stage] end
  end
  local number, count = {}, 0   -- ranks without a stage are left out
  for rank = 0, ranks - 1 do
    local used = false
    for stage = 0, per_chain * directions - 1 do used = used or place[stage] == rank end
    if used then number[rank], count = count, count + 1 end
  end
  for stage = 0, per_chain * directions - 1 do place[stage] = number[place[stage]] end
  return place, count
end

-- All that can be done next, as { rank, cell, apply, count }.
local function choices(state, splits, overlaps)
  local list = {}
  local function may_backward(stage, m)
    return state.forward[stage][m] and not state.backward[stage][m]
      and ((stage + 1) % state.per_chain == 0 or state.backward[stage + 1][m])
  end
  for stage = 0, state.stages - 1 do
    local rank = state.place[stage]
    for m = 0, state.microbatches - 1 do
      if state.pending[stage][m] then
        list[#list + 1] = { rank = rank, cell = stage .. "W" .. m, W = 1, apply = function() state.pending[stage][m] = nil end }
      end
      if may_backward(stage, m) then
        local function run() state.backward[stage][m] = true end
        list[#list + 1] = { rank = rank, cell = stage .. "B" .. m, B = 1, apply = run }
        if splits then
          list[#list] = { rank = rank, cell = stage .. "I" .. m, I = 1, apply = function() run() state.pending[stage][m] = true end }
        end
      end
      if not state.forward[stage][m] and (stage % state.per_chain == 0 or state.forward[stage - 1][m]) then
        local function run() state.forward[stage][m] = true end
        list[#list + 1] = { rank = rank, cell = stage .. "F" .. m, F = 1, apply = run }
        for other = 0, overlaps and state.stages - 1 or -1 do
          for n = 0, state.microbatches - 1 do
            if state.place[other] == rank and may_backward(other, n) then
              list[#list + 1] = { rank = rank, cell = string.format("(%dF%d;%dB%d)OVERLAP_F_B", stage, m, other, n), F = 1, B = 1, pair = 1,
                                  apply = function() run() state.backward[other][n] = true end }
            end
          end
        end
      end
    end
  end
  return list
end

-- { text, ranks, stages, directions, microbatches, place, slots of each stage's rank, F, B, I, W, pairs, hops }
function foreign.program(seed)
  local draw = generator(seed)
  local directions = draw(4) == 1 and 2 or 1
  local ranks, per_chain, microbatches = draw(draw(10) == 1 and 70 or 5), draw(6), draw(4)
  if ranks > 10 then per_chain, microbatches = ranks + draw(10), draw(2) end
  local place, count = placement_of(draw, ranks, per_chain, directions)
  local splits, overlaps = draw(2) == 1, draw(3) == 1
  local state = { forward = {}, backward = {}, pending = {}, per_chain = per_chain, stages = per_chain * directions,
                  microbatches = microbatches, place = place }
  local lines, out = {}, { F = 0, B = 0, I = 0, W = 0, pairs = 0, hops = 0 }
  for stage = 0, state.stages - 1 do state.forward[stage], state.backward[stage], state.pending[stage] = {}, {}, {} end
  for rank = 0, count - 1 do lines[rank + 1] = {} end
  while true do
    local list = choices(state, splits, overlaps)
    if #list == 0 then break end
    local one = list[draw(#list)]
    one.apply()
    table.insert(lines[one.rank + 1], one.cell)
    for _, kind in ipairs { "F", "B", "I", "W" } do out[kind] = out[kind] + (one[kind] or 0) end
    out.pairs = out.pairs + (one.pair or 0)
  end
  for rank, line in ipairs(lines) do lines[rank] = table.concat(line, ",") .. "\n" end
  out.slots = {}
  for stage = 0, state.stages - 1 do
    if (stage + 1) % per_chain ~= 0 and place[stage] ~= place[stage + 1] then out.hops = out.hops + 2 * microbatches end
    for other = 0, state.stages - 1 do
      if place[other] == place[stage] then out.slots[stage] = (out.slots[stage] or 0) + 1 end
    end
  end
  out.text, out.ranks, out.stages, out.directions, out.microbatches = table.concat(lines), count, state.stages, directions, microbatches
  out.place, out.draw = place, draw
  return out
end

-- --------------------------------------------------------------------------------------------------------------------------- times

local seconds = { 0, 1, 1, 1, 2, 0.5, 0.001, 1e-6, 1e-15, 1e5, "10us", "3 ms" }

local function list_of(program, count)
  local list = {}
  for i = 1, count do list[i] = seconds[program.draw(#seconds)] end
  return list
end

local function some(program, count)
  return program.draw(2) == 1 and seconds[program.draw(#seconds)] or list_of(program, count)
end

-- A times file.
local function times_of(program)
  local draw = program.draw
  local times = { F = some(program, program.stages), I = some(program, program.stages), W = some(program, program.stages) }
  if draw(3) == 1 then times.B = some(program, program.stages // program.directions) end
  if draw(3) == 1 then
    times.FB = {}
    for stage = 0, program.stages - 1 do times.FB[stage + 1] = list_of(program, program.slots[stage]) end
  elseif draw(2) == 1 then
    times.FB = some(program, program.stages)
  end
  if draw(3) == 1 then times.first_stage = { F = 0.5 } end
  if draw(3) == 1 then times.last_stage = { B = 2, F = 1e-3 } end
  if draw(3) == 1 then times.launch = seconds[draw(#seconds)] end
  if draw(2) == 1 then times.p2p = seconds[draw(#seconds)] else times.p2p = { latency = 1e-6, bandwidth = 1e9, bytes = 1e6 } end
  if draw(3) == 1 then
    times.rank_speed = {}
    for rank = 1, program.ranks do times.rank_speed[rank] = draw(2) == 1 and 1 or 0.5 end
  end
  if draw(2) == 1 then times.activation_bytes, times.pending_bytes = draw(1000), 1 end
  return times
end

-- -------------------------------------------------------------------------------------------------------------------------- checks

local runtimes = { "ideal", "torch-single", "deepseek", "pipeplan", "megatron" }
for _, queues in ipairs { "one", "per_peer" } do
  for _, pairs_ in ipairs { "in_turn", "split", "overlapped" } do
    runtimes[#runtimes + 1] = string.format("torch-multi --queues %s --pairs %s", queues, pairs_)
  end
end

local function is_figure(value) return type(value) == "number" and value >= 0 and value < math.huge end

local formats = {}

function formats.json(output, program)
  local value = cjson.decode(output)
  if not is_figure(value.makespan_seconds) or not is_figure(value.bubble.fraction) or value.bubble.fraction > 1 then return "figures" end
  for _, name in ipairs { "busy_per_rank_seconds", "idle_per_rank_seconds", "span_per_rank_seconds", "peak_activations" } do
    if #value[name] ~= program.ranks then return name .. " has " .. #value[name] .. " entries" end
    for _, number in ipairs(value[name]) do
      if not is_figure(number) then return name .. " holds " .. tostring(number) end
    end
  end
end

function formats.csv(output, program)
  if output ~= program.text then return "another program" end
end

-- Each rank has a row; all are equally wide, and none is wider than a page.
function formats.text(output, program)
  local rows, width = 0, nil
  for row in output:gmatch "\nrank +%d+ ([^\n]*)" do
    rows, width = rows + 1, width or #row
    if #row ~= width or #row > 100 or row:find "[^%d.&FBIWfbiw-]" then return "a row of another width: " .. row end
  end
  if output:find("nothing takes any time", 1, true) then return rows > 0 and "rows" or nil end
  if rows ~= math.min(program.ranks, 64) then return rows .. " rows" end
end

-- What a checker of pictures counts; nil and what it says where it finds fault.
local function counted(checker, output, source)
  local name = os.tmpname()
  local handle = assert(io.open(name, "wb"))
  handle:write(output)
  handle:close()
  local pipe = assert(io.popen(string.format("env -u LD_PRELOAD python3 '%s/tests/cli/%s' <%s 2>&1", source, checker, name)))
  local answer = pipe:read "a"
  local good = pipe:close()
  os.remove(name)
  if not good then return nil, answer end
  return (answer:gsub("\n$", ""))
end

function formats.svg(output, program, source)
  local count, problem = counted("check_svg.py", output, source)
  if not count then return problem end
  local expected = {}
  for _, kind in ipairs { "B", "F", "I", "W" } do
    if program[kind] > 0 then expected[#expected + 1] = kind .. " " .. program[kind] end
  end
  expected = table.concat(expected, ", ")
  if count ~= expected then return "drawn " .. count .. ", expected " .. expected end
end

function formats.trace(output, program, source)
  local count, problem = counted("check_trace.py", output, source)
  if not count then return problem end
  local expected = string.format("%d %d %d ", program.F + program.B + program.I + program.W, program.hops, program.ranks)
  if count:sub(1, #expected) ~= expected then return "traced " .. count .. ", expected " .. expected end
end

local order = { "text", "json", "csv", "svg", "trace" }

-- May a run end so?
local function is_answer(result, runtime)
  if result.status == 0 then return result.stderr == "" end
  if result.status == 1 then   -- only where messages block each other, or the runtime does not run programs from elsewhere
    local rule = result.stderr:match "^pipeplan: (engine%.%w+): "
    return runtime ~= "ideal" and (rule == "engine.runtime" or rule == "engine.deadlock")
  end
  return result.status == 2 and result.stderr:find("counts nanoseconds", 1, true)
end

local function written(suffix, text)
  local stem = os.tmpname()
  os.remove(stem)
  local handle = assert(io.open(stem .. suffix, "wb"))
  handle:write(text)
  handle:close()
  return stem .. suffix
end

-- Simulates the program of a seed in a format for each runtime, or with `all` in every format. Nil, or what is wrong and how to see it.
-- run(arguments) → { status, stdout, stderr }, as program.lua has it; source: where the checkers are.
function foreign.check(seed, run, source, all)
  local program = foreign.program(seed)
  local file = written(".csv", program.text)
  local times = program.draw(3) == 1 and "1,2,0.5,3" or written(".json", cjson.encode(times_of(program)))
  local problem
  for _, runtime in ipairs(runtimes) do
    for i, name in ipairs(order) do
      if not problem and (all or i == program.draw(#order)) then
        local arguments = string.format("simulate %s --directions %d --times %s --runtime %s --format %s", file, program.directions,
                                        times, runtime, name)
        local result = run(arguments)
        if not is_answer(result, runtime) then problem = "status " .. result.status .. ": " .. result.stderr
        elseif result.status == 0 then problem = formats[name](result.stdout, program, source)
        elseif name ~= "json" and result.stdout ~= "" then problem = "output beside a failure" end
        if problem then problem = string.format("seed %d: pipeplan %s: %s\n%s", seed, arguments, problem, program.text) end
      end
    end
  end
  if problem then return problem end   -- the files stay, for whoever looks
  os.remove(file)
  if times:find "%.json$" then os.remove(times) end
end

return foreign
