-- SPDX-License-Identifier: Apache-2.0
--[[
runner.lua: runs busted specs inside the program, so that tests of policies need no other Lua than the one that plans. The specs are those
that plain `busted --lua=lua5.4` runs; here a test that asserts nothing fails as well, and every plan that a test makes can be watched.

  runner.run{ files = { path, … } (files, or directories of *_spec.lua), filter = function(name)?, stop = bool?: at the first failure,
              on_plan = function(plan, record, result, policy)? }
      → { { name, file, line, status = "passed" | "failed" | "error" | "skipped", message?, seconds, assertions }, … }

Uses busted's core (Debian: lua-busted), which is loaded only here, from the directories of the system's Lua and from no others. Specs are
Lua with all its libraries: whoever runs one runs a program. Tests run in the order in which they stand. What they print goes to standard
error.
]]

local conditions = require "pipeplan.policy.conditions"
local engine = require "engine"
local failure = require "pipeplan.base.failure"
local reading = require "pipeplan.base.reading"
local statements = require "pipeplan.policy.statements"

local runner = {}

-- Processor time that a test may take, or another block of a spec, before it is taken for endless; and how many instructions pass between
-- two looks at the clock.
runner.test_seconds = 60
local LOOK = 1000000

-- Ends what does not end: every block goes through busted.safe, and has its own time, without that of the blocks in it. From the end of its
-- time on every instruction is an error, so that no pcall of the test keeps it alive, until busted.safe itself goes on. A hook watches one
-- coroutine; so each that begins gets one. → what undoes it.
local function limit(busted)
  local safe, create, wrap, main = busted.safe, coroutine.create, coroutine.wrap, coroutine.running()
  local started, late = os.clock(), false
  local function look()
    if late and debug.getinfo(2, "f").func == safe then
      late = false
      debug.sethook(main, look, "", LOOK)
    elseif late or os.clock() - started > runner.test_seconds then
      late = true
      debug.sethook(look, "", 1)
      debug.sethook(main, look, "", 1)
      error(string.format("it does not end: more than %g s of processor time", runner.test_seconds), 2)
    end
  end
  local function watched(body)
    return type(body) == "function" and function(...)
      debug.sethook(look, "", late and 1 or LOOK)
      return body(...)
    end or body
  end
  function busted.safe(...)
    local before = os.clock() - started
    local function left(...)
      started = os.clock() - before
      return ...
    end
    started = os.clock()
    return left(safe(...))
  end
  coroutine.create = function(body) return create(watched(body)) end  -- luacheck: ignore 122
  coroutine.wrap = function(body) return wrap(watched(body)) end  -- luacheck: ignore 122
  debug.sethook(look, "", LOOK)
  return function()
    debug.sethook()
    coroutine.create, coroutine.wrap = create, wrap  -- luacheck: ignore 122
  end
end

local function load_busted()
  for name in pairs(package.loaded) do  -- an instance for each run: busted makes itself a singleton when it is first used
    if name == "busted" or name:match "^busted%." then package.loaded[name] = nil end
  end
  if package.path == "" then package.path, package.cpath = engine.host.system_path() end  -- in the program, which has none till now
  local good, core = pcall(require, "busted.core")
  if not good then failure.usage("policy test runs busted specs, and busted is not installed (Debian: apt install lua-busted)") end
  local busted = core()
  require "busted"(busted)
  return busted
end

-- Calls `count` whenever something is asserted; returns a function that undoes it.
local function count_assertions(count)
  local luassert = require "luassert"
  local metas = { getmetatable(luassert.state()), getmetatable(luassert) }
  local originals = {}
  for i, meta in ipairs(metas) do
    local original = meta.__call
    originals[i] = original
    meta.__call = function(...)
      count()
      return original(...)  -- a tail call: luassert looks up the stack for who asserted
    end
  end
  return function()
    for i, meta in ipairs(metas) do meta.__call = originals[i] end
  end
end

-- A test that ends the program would end the run with whatever status it says, 0 too, and say nothing. Returns a function that undoes it.
local function keep_alive()
  local exit = os.exit
  os.exit = function() error("a test may not end the program: os.exit was called", 2) end  -- luacheck: ignore 122
  return function() os.exit = exit end  -- luacheck: ignore 122
end

-- "describe it" as busted's own handlers name a test.
local function full_name(busted, element)
  local names, at = {}, element
  while at and (at.name or at.descriptor) and at.descriptor ~= "file" do
    table.insert(names, 1, tostring(at.name or at.descriptor))
    at = busted.context.parent(at)
  end
  return table.concat(names, " ")
end

-- Where an element stands in its file; of the file itself, and of what has no place, the start of its file.
local function place_of(busted, element)
  local trace, at = element.trace or {}, element
  if trace.source and trace.source:sub(1, 1) == "@" then return trace.source:sub(2), trace.currentline end
  while at and at.descriptor ~= "file" do at = busted.context.parent(at) end
  return at and at.name or "", 0
end

local function text_of(message)
  return message ~= nil and tostring(message) or "an error without a message"
end

-- The same of what went wrong outside of tests, where a policy is often named for its tests.
local function text_of_file(message)
  local text = text_of(message)
  local name = text:match "%(global '([%w_]+)'%)" or ""
  if not statements.verbs[name] and not conditions.operators[name] then return text end
  return text .. ": this reads like a policy; expected a test of one (*_spec.lua), which loads it by pipeplan.policy"
end

-- One result for each test and for each error outside of tests.
local function collect(busted, results, stop)
  local current
  local function fail(status, element, message)
    if current and current.element == element then
      if current.status == "passed" then current.status, current.message = status, text_of(message) end
    else
      local file, line = place_of(busted, element)
      results[#results + 1] = { name = full_name(busted, element), status = "error", message = text_of_file(message), seconds = 0,
                                assertions = 0, file = file, line = line }
    end
    if stop then busted.skipAll = true end
  end
  busted.subscribe({ "test", "start" }, function(element)
    local file, line = place_of(busted, element)
    current = { element = element, name = full_name(busted, element), file = file, line = line, status = "passed", assertions = 0,
                started = os.clock() }
    return nil, true
  end)
  busted.subscribe({ "test", "end" }, function(_, _, status)
    if status == "pending" then current.status = "skipped" end
    if current.status == "passed" and current.assertions == 0 then
      current.status, current.message = "failed", "it asserts nothing"
      if stop then busted.skipAll = true end
    end
    current.seconds, current.started, current.element = os.clock() - current.started, nil, nil
    results[#results + 1], current = current, nil
    return nil, true
  end)
  busted.subscribe({ "failure" }, function(element, _, message)
    fail("failed", element, message)
    return nil, true
  end)
  busted.subscribe({ "error" }, function(element, _, message)
    fail("error", element, message)
    return nil, true
  end)
  return function() if current then current.assertions = current.assertions + 1 end end
end

-- Registers only tests whose full name matches, and none after a failure where that is to stop the run: busted asks before it takes one.
-- What the filter raises ends the run.
local function admit(busted, filter)
  local function wanted(name)
    local parent = busted.context.get()
    local full = full_name(busted, { name = name, descriptor = "it" })
    while parent and (parent.name or parent.descriptor) and parent.descriptor ~= "file" do
      full = tostring(parent.name or parent.descriptor) .. " " .. full
      parent = busted.context.parent(parent)
    end
    if busted.skipAll or not filter then return nil, not busted.skipAll end
    local good, answer = pcall(filter, full)
    if not good then busted.skipAll, busted.refused = true, answer end
    return nil, good and answer
  end
  for _, kind in ipairs { "it", "pending" } do busted.subscribe({ "register", kind }, wanted, { priority = 1 }) end
end

local MOST_LEVELS = 16      -- of directories in directories: deeper is a link to itself
local MOST_ENTRIES = 20000  -- looked at: of several links to themselves each is in each

-- The spec files under some paths: of a directory sorted.
function runner.files(paths)
  local list, looked_at = {}, 0
  local function visit(path, given, level)
    looked_at = looked_at + 1
    if looked_at > MOST_ENTRIES then
      failure.usage("%s: more than %d files and directories under what is given: expected the spec files, or their directory", path,
                    MOST_ENTRIES)
    end
    local names = level <= MOST_LEVELS and engine.host.directory(path)
    if not names then
      if not given and not path:match "_spec%.lua$" then return end
      local good, problem = engine.host.readable(path, true)  -- busted finds nothing else
      if not good then failure.usage("%s: cannot be read: %s", path, problem) end
      reading.note(path)
      list[#list + 1] = path
      return
    end
    table.sort(names)
    for _, name in ipairs(names) do
      if name:sub(1, 1) ~= "." then visit((path:gsub("/+$", "")) .. "/" .. name, false, level + 1) end
    end
  end
  for _, path in ipairs(paths) do visit(path, true, 0) end
  return list
end

function runner.run(options)
  local planner = require "pipeplan.plan.init"
  local files = runner.files(options.files)
  if #files == 0 then return {} end
  local busted, results = load_busted(), {}
  require("pipeplan").assertions()  -- the same instance for every file: busted empties package.loaded between them
  local count = collect(busted, results, options.stop)
  admit(busted, options.filter)
  require "busted.modules.test_file_loader"(busted, { "lua" })(files, {}, { excludes = {} })
  local execute, restore, restore_exit = require "busted.execute"(busted), count_assertions(count), keep_alive()
  local kept, why = engine.process.aside()   -- what tests print is no result
  if not kept then failure.usage("standard output: %s", why) end
  local unlimit = limit(busted)
  planner.observer = options.on_plan
  local good, problem = xpcall(execute, debug.traceback, 1, { sort = false })
  planner.observer = nil
  unlimit()
  engine.process.back(kept)
  restore()
  restore_exit()
  if not good or busted.refused then error(busted.refused or problem, 0) end
  return results
end

return runner
