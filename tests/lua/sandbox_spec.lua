-- SPDX-License-Identifier: Apache-2.0
-- The sandbox of policies: what it shows, what it stops, and how each way of misbehaving ends.

require "pipeplan"
local engine = require "engine"

local source = os.getenv("PIPEPLAN_SOURCE") or "."

local function open(options)
  options = options or {}
  options.fields = options.fields or { "gpus", "tokens" }
  return assert(engine.host.open(options))
end

local function keys(map)
  local list = {}
  for key in pairs(map) do list[#list + 1] = key end
  table.sort(list)
  return list
end

-- Runs a text that defines one rule, and calls its function with a record.
local function call(when, record, options)
  local host = open(options)
  local statements = assert(host:run("rule.lua", "reject { id = 'x', when = " .. when .. " }", false))
  return host:call(statements[1].argument.when[1], record or { gpus = 8 })
end

describe("the names of a policy", function()
  it("are those of the allow-list and no others: a walk over the live state finds each, and nothing else", function()
    local live, listed = {}, {}
    for _, name in ipairs(open():names()) do live[#live + 1] = name end
    for name in pairs(engine.host.allowed) do
      -- `require` belongs to each file: it knows the file's directory. Modules of the engine may have members of their own.
      if name ~= "require" and not name:match("^engine%.") then listed[#listed + 1] = name end
    end
    for name in pairs(engine.host.blocked) do listed[#listed + 1] = name end
    local seen = {}
    for _, name in ipairs(live) do
      if name:match("^engine%.") then
        assert.is_string(engine.host.allowed[name], name)
      else
        seen[#seen + 1] = name
      end
    end
    table.sort(seen)
    table.sort(listed)
    assert.same(listed, seen)
  end)

  it("each have a reason, and each blocked one says what to use instead", function()
    for name, why in pairs(engine.host.allowed) do assert.is_true(#why > 0, name) end
    for name, instead in pairs(engine.host.blocked) do
      assert.is_true(#instead > 0, name)
      local _, problem = open():run("x.lua", name .. "()", false)
      assert.equal(string.format("x.lua:1: %s is not available to policies: %s", name, instead), problem.message)
    end
  end)

  it("are the ones that luacheck knows in policies", function()
    local configuration = { files = {}, stds = {} }
    assert(loadfile(source .. "/.luacheckrc", "t", configuration))()
    local top = {}
    for name in pairs(engine.host.allowed) do top[name:match("^[^.]+")] = true end
    local known = configuration.stds.policy.read_globals
    table.sort(known)
    assert.same(keys(top), known)
  end)

  it("suggest themselves for a name that does not exist", function()
    local _, problem = open():run("x.lua", "\nrejct { id = 'x' }", false)
    assert.equal("x.lua:2: no name 'rejct'", problem.message)
    assert.equal("rejct", problem.unknown)
  end)
end)

describe("a statement", function()
  it("is recorded with its file and line, whatever the layout of the text", function()
    local statements = open():run("sites/a.lua", "site 'a'\n\nset {\n  small_run_gpus = 64,\n}\nlocal function f()\n  row { id = 'r' }\nend\nf()", false)
    local places = {}
    for i, statement in ipairs(statements) do places[i] = string.format("%s %s:%d", statement.verb, statement.file, statement.line) end
    assert.same({ "site sites/a.lua:1", "set sites/a.lua:3", "row sites/a.lua:7" }, places)
  end)

  it("is recorded as it was at the time of the call", function()
    local statements = open():run("a.lua", "local t = { id = 'r', try = { '1f1b' } } row(t) t.try[1] = 'gpipe' t.id = 'q'", false)
    assert.same({ id = "r", try = { "1f1b" } }, statements[1].argument)
  end)

  it("belongs into a file, not into a rule's function", function()
    local _, problem = call("function() row { id = 'y' } return true end")
    assert.matches("statement of a file", problem.message)
  end)

  it("takes one table", function()
    for _, text in ipairs { "row()", "row 'x'", "row({}, {})", "site { 'x' }" } do
      local _, problem = open():run("a.lua", text, false)
      assert.matches("^a%.lua:1: write ", problem.message, nil, text)
    end
  end)
end)

describe("a rule's function", function()
  it("answers true or false about a record", function()
    assert.is_true(call("function(f) return f.gpus > 4 end", { gpus = 8 }))
    assert.is_false(call("function(f) return f.gpus > 4 end", { gpus = 4 }))
  end)

  it("sees an absent field as nil and is told of one that does not exist", function()
    assert.is_true(call("function(f) return f.tokens == nil end", { gpus = 8 }))
    local _, problem = call("function(f) return f.gpu > 4 end", { gpus = 8 })
    assert.equal("rule.lua:1: no field 'gpu'", problem.message)
    assert.equal("gpu", problem.unknown)
  end)

  it("cannot change the record", function()
    for _, body in ipairs { "f.gpus = 1", "f.other = 1" } do
      local _, problem = call("function(f) " .. body .. " return true end", { gpus = 8 })
      assert.matches("the record of a rule is read%-only", problem.message)
    end
    local record = { gpus = 8, list = { 1 } }
    call("function(f) return true end", record)
    assert.same({ gpus = 8, list = { 1 } }, record)
  end)

  it("is an error when it answers anything else: nothing, nil, a word, several values", function()
    for body, got in pairs { [""] = "0 values", ["return nil"] = "nil", ["return 'acept'"] = "string", ["return 1"] = "number",
                             ["return {}"] = "table", ["return 0/0"] = "number", ["return true, true"] = "2 values" } do
      local result, problem = call("function(f) " .. body .. " end")
      assert.is_nil(result)
      assert.equal("broken", problem.kind)
      assert.matches("must return true or false, it returned a? ?" .. got, problem.message)
    end
  end)

  it("may call the engine's arithmetic, the same that the planner uses", function()
    -- 1F1B, P 4, M 8, F 1, I 1, W 1: (P - 1) of M + P - 1 slots idle, 3 / 11
    assert.is_true(call([[function()
      local schedule = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 8 }
      local bubble = schedule:simulate { F = 1, I = 1, W = 1 }.bubble_fraction
      local closed = engine.bubble { schedule = "1f1b", ranks = 4, microbatches = 8, F = 1, I = 1, W = 1 }
      return math.abs(bubble - 3 / 11) < 1e-12 and closed.exact and #engine.schedule.kinds > 7
    end]]))
  end)

  it("pays for engine calls by their work", function()
    local function work(microbatches)
      local host = open()
      local statements = host:run("a.lua", string.format([[reject { id = "x", when = function()
        return engine.schedule { kind = "1f1b", ranks = 8, microbatches = %d } ~= nil end }]], microbatches), false)
      host:refill()
      assert.is_true(host:call(statements[1].argument.when[1], {}))
      return host:usage().work
    end
    assert.is_true(work(100000) > work(100) + 8 * 2 * 99000)
    local _, problem = call("function() for _ = 1, 1000 do engine.schedule { kind = '1f1b', ranks = 64, microbatches = 100000 } end end")
    assert.equal("budget", problem.kind)
  end)

  it("may not change the engine, not even a list in it", function()
    local _, problem = call("function() engine.schedule.kinds[1] = 'mine' return true end")
    assert.equal("rule.lua:1: engine is read-only in policies", problem.message)
  end)

  it("may not call an engine function with nonsense without being told", function()
    local _, problem = call("function() return engine.model.parameters { layers = -1 } end")
    assert.equal("broken", problem.kind)
  end)
end)

describe("the budget", function()
  it("ends an endless loop in a rule and says where", function()
    local result, problem = call("function() while true do end end", {}, { work = 1000000 })
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
    assert.equal("rule.lua:1: over budget: more than 1000000 units of work", problem.message)
  end)

  it("is sticky within an evaluation, and all there again for the next one", function()
    local host = open { work = 100000 }
    local statements = assert(host:run("a.lua", [[reject { id = "x", when = function(f)
      if f.gpus == 1 then while true do end end
      local t = {} if f.gpus == 2 then for i = 1, 1e9 do t[i] = {} end end
      return true end }]], false))
    local handle = statements[1].argument.when[1]
    for _, gpus in ipairs { 1, 2 } do
      host:refill()
      assert.equal("budget", select(2, host:call(handle, { gpus = gpus })).kind)
      assert.equal("budget", select(2, host:call(handle, { gpus = 3 })).kind)
      host:refill()
      assert.is_true(host:call(handle, { gpus = 3 }))
    end
  end)

  -- Whatever ran before, and wherever Lua's seed of hashes puts the keys of tables.
  it("counts the same work for the same evaluation, in the state and out of it, from run to run", function()
    for _, body in ipairs {
      "local t = {} for i = 1, 3000 do t[i] = { i } end",
      "local s = '' for i = 1, 300 do s = s .. i end",
      "local function f(n) if n == 0 then return 0 end return 1 + f(n - 1) end f(1000)",
      "local t = {} for i = 1, 9000 do local k = 'k' .. i * 7919 % 97 if t[k] then t[k] = nil else t[k] = i end end for k in pairs(t) do t[k] = nil end",
      "local s = engine.schedule { kind = 'zb_auto', ranks = 8, microbatches = 32 } local _ = s:simulate { F = 1, I = 1, W = 1 }",
    } do
      local first
      for _ = 1, 8 do
        local host = open()
        local statements = assert(host:run("a.lua", "reject { id = 'x', when = function(f) " .. body .. " return true end }", false))
        for _ = 1, 4 do
          host:refill()
          assert(host:call(statements[1].argument.when[1], { gpus = 1 }))
          first = first or host:usage().work
          assert.equal(first, host:usage().work, body)
        end
        host:close()
      end
    end
  end)

  it("counts each evaluation from the start", function()
    local host = open { work = 100000 }
    local statements = host:run("a.lua", "reject { id = 'x', when = function() for _ = 1, 10000 do end return true end }", false)
    for _ = 1, 50 do
      host:refill()
      assert.is_true(host:call(statements[1].argument.when[1], {}))
    end
    local problem
    for _ = 1, 50 do
      local result
      result, problem = host:call(statements[1].argument.when[1], {})
      if result == nil then break end
    end
    assert.equal("budget", problem.kind)
  end)

  it("falls at the same place in every run", function()
    local function work()
      local host = open()
      host:run("a.lua", "local t = {} for i = 1, 1000 do t[i] = { i } end for k in pairs(t) do t[k] = nil end", false)
      return host:usage().work
    end
    assert.equal(work(), work())
  end)

  it("covers memory, and the host decides: a policy that asks for too much is over budget whatever it returns", function()
    local result, problem = call("function() local s = 'x' for _ = 1, 40 do s = s .. s end return true end")
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
    assert.equal("rule.lua:1: over budget: more than 4194304 bytes of memory in one piece", problem.message)
  end)

  -- 4 ranks × 4,096 microbatches × F and B × 16 bytes are half a MiB.
  it("covers the schedules that a policy keeps; those it drops are collected", function()
    local function run(body, schedules)
      local host = open { bytes = 8 * 2 ^ 20 }
      local statements = assert(host:run("a.lua", string.format([[
        reject { id = "x", when = function()
          local kept
          for i = 1, %d do
            local schedule = engine.schedule { kind = "1f1b", ranks = 4, microbatches = 4096 }
            %s
          end
          return true
        end }]], schedules, body), false))
      host:refill()
      local result, problem = host:call(statements[1].argument.when[1], {})
      return result, problem, host:usage()
    end
    local result, problem = run("kept = { kept, schedule }", 32)
    assert.is_nil(result)
    assert.equal("budget", problem.kind)
    assert.matches("over budget: more than 8388608 bytes of memory", problem.message)
    local usage
    result, problem, usage = run("", 64)
    assert.is_true(result, problem and problem.message)
    assert.is_true(usage.bytes_peak <= 8 * 2 ^ 20)
  end)

  it("charges the parser by the size of the text, which is limited", function()
    local host = open()
    local _, problem = host:run("big.lua", "--" .. string.rep("x", 256 * 1024), false)
    assert.equal("big.lua: a policy file has at most 262144 bytes", problem.message)
  end)

  -- Each of these took the parser seconds: its lists of jumps and of names are walked to their end for each new one.
  it("charges the parser for what is not linear in it, before it parses", function()
    local function filled(head, unit, tail) return head .. string.rep(unit, (262000 - #head - #tail) // #unit) .. tail end
    local names = {}
    for i = 1, 190 do names[i] = "a" .. i end
    local declared = "local " .. table.concat(names, ",") .. " local function f() "
    for _, text in ipairs {
      filled("local a local b = a", " and a", ""), filled("local a local b = a", " or a", ""), filled("local a if a then ", "elseif a then ", "end"),
      filled("while true do ", "do break end ", "end"), filled("", "do goto a end ", "::a::"), filled("::a::", "do goto a end ", ""),
      filled(string.rep(declared, 100), "x=x ", string.rep("end ", 100)),
    } do
      local _, problem = open():run("a.lua", text, false)
      assert.same({ "budget", "a.lua: over budget: more than 100000000 units of work" }, { problem.kind, problem.message }, text:sub(1, 60))
    end
  end)

  it("charges little for a long file of many rules", function()
    local rules = {}
    for i = 1, 500 do
      rules[i] = string.format("reject { id = 'r%d', gpus = over(%d), when = function(f) return f.gpus > 4 and f.tokens > 1 or f.gpus < 2 end }", i, i)
    end
    local host = open()
    assert(host:run("a.lua", table.concat(rules, "\n"), false))
    assert.is_true(host:usage().work < 5000000)
  end)

  it("survives running out of memory at any allocation", function()
    local opened
    for bytes = 10000, 400000, 1500 do
      local host, problem = engine.host.open { fields = { "gpus" }, bytes = bytes }
      if host then
        opened = true
        host:run("a.lua", "reject { id = 'x', when = function(f) return f.gpus > 1 end }", false)
        host:close()
      else
        assert.equal("budget", problem.kind)
      end
    end
    assert.is_true(opened)
  end)
end)

it("a handle that no function has is an error of the call", function()
  local answer, problem = open():call(7, { gpus = 1 })
  assert.same({ nil, "broken", "no function has the handle 7" }, { answer, problem.kind, problem.message })
end)

describe("what outlives a rule's call", function()
  -- Loads a text that states one rule and calls its function twice: what each call came to.
  local function twice(text)
    local host = open()
    local statements = assert(host:run("rule.lua", text, false))
    local calls = {}
    for i = 1, 2 do
      local result, problem = host:call(statements[1].argument.when[1], { gpus = 8 })
      if result == nil then assert.equal("broken", problem.kind) end
      calls[i] = result == nil and problem.message or result
    end
    return calls
  end

  local function changes(name) return string.format("a rule's function may not change '%s', which outlives the call", name) end

  it("may not be changed: a variable of the file is named, and has its value back", function()
    for name, text in pairs {
      n = "local n = 0 reject { id = 'x', when = function() n = n + 1 return n > 1 end }",
      kind = "local kind = 1 reject { id = 'x', when = function() kind = 1.0 return true end }",
      zero = "local zero = 0.0 reject { id = 'x', when = function() zero = -0.0 return true end }",
      seen = "local seen reject { id = 'x', when = function() seen = seen or {} return true end }",
      inner = "local inner = 1 local function step() inner = inner + 1 end reject { id = 'x', when = function() step() return true end }",
      far = "local far = 1 local tools = { { step = function() far = 2 end } } reject { id = 'x', when = function() tools[1].step() return true end }",
      following = "local following = pairs { 1, 2 } reject { id = 'x', when = function() return following() ~= nil end }",
      _ENV = "reject { id = 'x', when = function() _ENV = {} return true end }",
    } do
      assert.same({ changes(name), changes(name) }, twice(text), name)
    end
  end)

  it("may not be changed: writing to a table of the file is an error where it is done", function()
    for _, body in ipairs { "seen[1] = 1", "seen.new = 1", "seen.old = nil", "seen.inside.x = 1", "seen[#seen + 1] = 2", "also.old = 3" } do
      local message = string.format("rule.lua:3: '%s' may not be changed any more: a rule's function reads it in every call", body:match "^%a+")
      local text = "local seen = { old = 1, inside = {}, 7 } local also = { old = 2 }\nreject { id = 'x', when = function()\n" .. body .. "\nreturn true end }"
      assert.same({ message, message }, twice(text), body)
    end
  end)

  it("may be read in every way, and given to the engine", function()
    assert.same({ true, true }, twice [[
      local limits = { 4, 8, 16, small = { name = "small" } }
      local shape = { layers = 4, hidden = 64, vocab = 100, heads = 4, ffn = 128, experts = 8, experts_per_token = 2, expert_ffn = 32, dense_layers = { 1, 2 } }
      local net = { tiers = { { reach = 8, bandwidth = 1e11 }, { reach = 64, bandwidth = 1e10 } } }
      local points = { { 1000, 1e-5 }, { 2000, 2e-5 }, { 4000, 3e-5 } }
      local times = { kind = "1f1b", ranks = 2, microbatches = 4 }
      local F = { 1, 2 }
      local schedule = engine.schedule(times)
      reject { id = "x", when = function(f)
        local sum, names = 0, ""
        for _, limit in ipairs(limits) do sum = sum + limit end
        for name in pairs(limits) do names = names .. tostring(name) .. " " end
        assert(sum == 28 and #limits == 3 and names == "1 2 3 small " and limits.small.name == "small" and limits[4] == nil)
        assert(engine.model.parameters(shape).total > 0 and #engine.model.stages(shape, 2, { 2, 2 }) == 2)
        assert(engine.comm.p2p { network = net, bytes = 100 } > 0)
        assert(engine.comm.fit { test = "sendrecv", ranks = 2, points = points }.bandwidth > 0)
        assert(engine.schedule(times):simulate { F = F, I = 1, W = 1 }.makespan == schedule:simulate { F = F, I = 1, W = 1 }.makespan)
        local copy = {}
        for name, limit in pairs(limits) do copy[name] = limit end
        copy.more = 1
        return true
      end }]])
  end)

  it("is checked for its arguments' names by the engine, also in such a table", function()
    local calls = twice "local shape = { layer = 4 } reject { id = 'x', when = function() engine.model.parameters(shape) end }"
    assert.equal("rule.lua:1: model shape: no argument 'layer', did you mean 'layers'?", calls[1])
  end)

  it("may be scratch space of one call, if it is as before when that ends", function()
    assert.same({ true, true }, twice [[
      local depth = 0
      local function down(n) depth = depth + 1 if n > 0 then down(n - 1) end depth = depth - 1 end
      local nan = 0 / 0
      reject { id = "x", when = function() down(5) nan = 0 / 0 depth = depth return true end }]])
  end)

  it("may not be changed by the files of a layer above, once its layer is sealed", function()
    local company = [[local limit, list = 1, { 1 }
      reject { id = "x", when = function(f) return f.gpus > limit + #list end }
      return { list = list, loosen = function() limit = 100 end, read = function() return limit end } ]]
    for team, message in pairs {
      ["require('company').list[1] = 2"] = "team.lua:1: 'list' may not be changed any more: a rule's function reads it in every call",
      ["require('company').loosen()"] = "team.lua: a file may not change 'limit', which a rule's function of a layer below it reads",
      ["local c = require('company') assert(#c.list == 1 and c.read() == 1) c.own = 1"] = false,
    } do
      local host = open()
      local statements = assert(host:run("company.lua", company, false))
      assert.is_true(host:seal())
      local stated, problem = host:run("team.lua", team, false)
      assert.equal(message, not stated and problem.message)
      assert.is_true(host:call(statements[1].argument.when[1], { gpus = 3 }))
    end
  end)

  it("costs each call as much as there is of it", function()
    local function work_of(count)
      local host = open()
      local statements = assert(host:run("a.lua", string.format([[local steps = {}
        for i = 1, %d do local n = i steps[i] = function() return n end end
        reject { id = "x", when = function() return steps[1]() == 1 end }]], count), false))
      assert.is_true(host:seal())
      host:refill()
      assert.is_true(host:call(statements[1].argument.when[1], { gpus = 1 }))
      return host:usage().work
    end
    assert.is_true(work_of(2000) - work_of(1000) >= 1000 * 10)
  end)

  it("is put back after an error, too", function()
    local host = open { work = 100000 }
    local statements = assert(host:run("a.lua", [[local n = 0 reject { id = "x", when = function(f)
      if f.gpus == 1 then n = 5 while true do end end
      return n == 0 end }]], false))
    assert.equal("budget", select(2, host:call(statements[1].argument.when[1], { gpus = 1 })).kind)
    host:refill()
    assert.is_true(host:call(statements[1].argument.when[1], { gpus = 2 }))
  end)

  it("may be changed while files are loaded, by the file itself and by those that require it", function()
    assert.same({ true, true }, twice [[
      local list = {}
      for i = 1, 3 do list[i] = i end
      reject { id = "x", when = function() return #list == 4 end }
      list[4] = 4]])
  end)
end)

describe("text", function()
  it("is the only form of a policy: bytecode is not loaded", function()
    local _, problem = open():run("a.lua", string.dump(function() end), false)
    assert.matches("attempt to load a binary chunk", problem.message)
  end)

  it("that nests too deeply is an error of the parser", function()
    local _, problem = open():run("a.lua", "local x = " .. string.rep("(", 100000) .. "1" .. string.rep(")", 100000), false)
    assert.equal("broken", problem.kind)
    assert.matches("overflow", problem.message)
  end)

  it("with more than 200 locals is an error of the parser", function()
    local lines = {}
    for i = 1, 300 do lines[i] = "local x" .. i .. " = 1" end
    local _, problem = open():run("a.lua", table.concat(lines, "\n"), false)
    assert.matches("too many local variables", problem.message)
  end)

  it("may be split over files beside each other, each run once", function()
    local directory = os.tmpname()
    os.remove(directory)
    assert(os.execute("mkdir " .. directory))
    local function write(name, text)
      local file = assert(io.open(directory .. "/" .. name, "w"))
      file:write(text)
      file:close()
    end
    write("shared.lua", "row { id = 'shared' }\nreturn { depth = 8 }")
    local host = open()
    local text = "local shared = require 'shared'\nrequire 'shared'\nrow { id = 'a', limit = under(shared.depth) }"
    local statements, problem = host:run(directory .. "/a.lua", text, false)
    os.remove(directory .. "/shared.lua")
    os.remove(directory)
    assert.is_nil(problem)
    assert.equal(2, #statements)
    assert.equal(directory .. "/shared.lua", statements[1].file)
    assert.equal(8, statements[2].argument.limit[1])
    assert.same({}, host:run(directory .. "/shared.lua", "row { id = 'again' }", false))
  end)
end)

-- Each file of tests/hostile says in its first line how it must end: "budget", "harmless" or "broken" with a part of the message.
-- It is run once as a policy file and once as the body of a rule's function.
describe("hostile policy", function()
  local names = engine.host.directory(source .. "/tests/hostile")
  table.sort(names)
  local count = 0
  for _, name in ipairs(names) do
    if name:match("%.lua$") then
      count = count + 1
      local file = assert(io.open(source .. "/tests/hostile/" .. name))
      local text = file:read("a")
      file:close()
      local kind, rest = text:match("^%-%- (%a+)([^\n]*)")
      local part = rest:match('"(.-)"') or ""

      local function check(problem, where)
        if kind == "harmless" then
          assert.is_nil(problem and problem.message)
        else
          assert.is_table(problem, where)
          assert.equal(kind, problem.kind, problem.message)
          assert.is_truthy(problem.message:find(part, 1, true), problem.message)
        end
      end

      it(name .. " ends as its first line says", function()
        local host = open { work = 10000000, bytes = 32 * 1024 * 1024 }
        local _, problem = host:run(source .. "/tests/hostile/" .. name, text, false)
        check(problem, "as a file")
        host:close()
      end)

      it(name .. " ends so inside a rule as well", function()
        if text:match("row%s*[({]") or text:match("require_itself") then return end  -- statements are for files
        local host = open { work = 10000000, bytes = 32 * 1024 * 1024 }
        local statements = assert(host:run("rule.lua", "reject { id = 'x', when = function(f)\n" .. text:gsub("\nreturn (%w+)", "\nlocal _ = %1")
                                           .. "\nreturn true end }", false))
        local result, problem = host:call(statements[1].argument.when[1], { gpus = 8 })
        assert.is_true(kind == "harmless" or result == nil)
        check(problem, "as a rule")
        host:close()
      end)
    end
  end

  it("is collected in more than forty files", function() assert.is_true(count > 40) end)
end)
