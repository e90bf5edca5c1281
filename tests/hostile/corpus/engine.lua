-- engine.lua: policies that ask the engine for much, or for what cannot be. Each { name, status =, says =, text }.
-- A cap of 64 MiB holds for what a call needs, too; a call charges its work before it does it.

local function loading(text) return text .. "\nset { small_run_gpus = 100 }\n" end

local list = {}

local function add(name, status, says, text) list[#list + 1] = { name, status = status, says = says, loading(text) } end

-- Programs too large to hold, of every kind: ten million actions are ten times the cap.
for _, kind in ipairs { "gpipe", "1f1b", "zb_h1", "zb_h2", "zb_auto", "v_half", "v_min", "zb_v", "dualpipe", "dualpipev", "interleaved_1f1b",
                        "looped_bfs", "interleaved_zero_bubble", "interleaved_1f1b_overlap" } do
  add("a program of ten million actions: " .. kind, { 4, 6 }, "policy.lua",
      string.format("local s, why = engine.schedule { kind = %q, ranks = 64, microbatches = 80000 } error(s and 'built' or why.message)", kind))
  add("programs again and again: " .. kind, 4, "over budget",
      string.format("while true do local s = engine.schedule { kind = %q, ranks = 64, microbatches = 256 } s:simulate { F = 1, I = 1, W = 1 } end", kind))
end

for _, runtime in ipairs { "torch-single", "torch-multi", "deepseek" } do
  add("a lowered program too large: " .. runtime, { 4, 6 }, "policy.lua", string.format(
      "local s = engine.schedule { kind = 'dualpipe', ranks = 64, microbatches = 15000 } local r, why = s:simulate { F = 1, I = 1, W = 1, runtime = %q } "
      .. "error(r and 'simulated' or why.message)", runtime))
  add("a runtime again and again: " .. runtime, { 4, 6 }, "policy.lua", string.format(
      "while true do local s = engine.schedule { kind = 'dualpipe', ranks = 16, microbatches = 32 } s:simulate { F = 1, I = 1, W = 1, runtime = %q } end", runtime))
  add("many ranks under a runtime: " .. runtime, { 0, 4, 6 }, "policy.lua", string.format(
      "for i = 1, 9 do local s = engine.schedule { kind = '1f1b', ranks = 60000, microbatches = 1 } s:simulate { F = 1, I = 1, W = 1, runtime = %q } end", runtime))
end

add("many stages on one rank", { 4, 6 }, "policy.lua", [[
  local parts = {} for i = 0, 15999 do parts[#parts + 1] = i .. "F0" end for i = 1, 15999 do parts[#parts + 1] = "0F" .. i end
  while #parts > 1 do
    local half = {}
    for i = 1, #parts, 2 do half[#half + 1] = parts[i + 1] and (parts[i] .. "," .. parts[i + 1]) or parts[i] end
    parts = half
  end
  local s, why = engine.schedule.from_csv(parts[1] .. "\n", {}) assert(s, why and why.message) s:simulate { F = 1, I = 1, W = 1 } error("simulated")]])
add("all actions of a program, again and again", 4, "policy.lua",
    "local s = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 5000 } while true do s:actions(3) end")
add("a program's text, again and again", 4, "policy.lua",
    "local s = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 5000 } while true do s:csv() end")
add("a program verified again and again", 4, "policy.lua",
    "local s = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 5000 } while true do s:verify() end")
add("programs kept", 4, "policy.lua",
    "local t = {} while true do t[#t + 1] = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 1000 } end")
add("a text read again and again", 4, "policy.lua", [[
  local text = engine.schedule { kind = '1f1b', ranks = 8, microbatches = 400 }:csv() while true do engine.schedule.from_csv(text, {}) end]])
add("a closed form again and again", 4, "policy.lua",
    "while true do engine.bubble { schedule = '1f1b', ranks = 4, microbatches = 8, F = 1, I = 1, W = 1 } end")

-- What cannot be.
for _, ranks in ipairs { "0", "-1", "0.5", "1e308", "2^63", "'8'", "0/0", "{}", "true", "math.mininteger" } do
  add("ranks = " .. ranks, 6, "ranks", string.format("engine.schedule { kind = '1f1b', ranks = %s, microbatches = 8 }", ranks))
  add("microbatches = " .. ranks, 6, "microbatches", string.format("engine.schedule { kind = '1f1b', ranks = 4, microbatches = %s }", ranks))
end
for _, time in ipairs { "-1", "0/0", "1/0", "'x'", "{}" } do
  add("F = " .. time, 6, "policy.lua", string.format(
      "local s = engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8 } s:simulate { F = %s, I = 1, W = 1 }", time))
  add("zb_auto planned for F = " .. time, 6, "policy.lua", string.format(
      "local s = engine.schedule { kind = 'zb_auto', ranks = 4, microbatches = 8, F = %s, I = 1, W = 1 } error('built')", time))
end
for _, kind in ipairs { "zb_auto", "v_half", "v_min" } do
  add(kind .. " planned for times near the end of doubles", 6, "policy.lua", string.format(
      "local s = engine.schedule { kind = %q, ranks = 4, microbatches = 8, F = 1e308, I = 1e308, W = 1e308 } error('action ' .. s:actions(0)[1].kind)", kind))
end
add("a schedule that does not exist", 6, "policy.lua: engine.schedule", "engine.schedule { kind = '1f2b', ranks = 4, microbatches = 8 }")
add("no arguments", 6, "policy.lua: engine.schedule", "engine.schedule()")
add("an argument that does not exist", 6, "policy.lua: engine.schedule", "engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8, virtul = 2 }")
add("a rank that is not there", 6, "policy.lua:1:", "engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8 }:actions(4)")
add("a rank before the first", 6, "policy.lua:1:", "engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8 }:actions(-1)")
add("another method's self", 6, "policy.lua:1:", "engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8 }.actions({}, 1)")
add("no self", 6, "policy.lua:1:", "engine.schedule { kind = '1f1b', ranks = 4, microbatches = 8 }.actions()")
add("a text of nothing", 6, "policy.lua:1:", "local s, why = engine.schedule.from_csv('', {}) error(s and 'read' or why.message)")
add("a text that is no program", 6, "policy.lua:1:", "local s, why = engine.schedule.from_csv('0X0\\n', {}) error(s and 'read' or why.message)")
add("a cost of nothing", 6, "policy.lua:1:", "engine.cost.stage {}")
add("memory of nothing", 6, "policy.lua:1:", "engine.memory.stages {}")
add("a message of less than nothing", 6, "policy.lua:1:", "engine.comm.p2p { bytes = -1 }")
add("a model of nothing", 6, "policy.lua:1:", "engine.model.parameters {}")
add("uneven ranks under a runtime", 6, "peaks 3.0 ", [[
  local s = engine.schedule.from_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n", {})
  local r = s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi", bytes = { stored = 1, message = 1 } }
  error("peaks " .. r.peak_bytes.runtime[2] .. " ")]])
add("uneven ranks with a queue a peer", 0, nil, [[
  local s = engine.schedule.from_csv("0F0,2F0,2B0,0B0\n1F0,1B0\n", {})
  s:simulate { F = 1, I = 1, W = 1, runtime = "torch-multi", queues = "per_peer" }]])

return list
