-- SPDX-License-Identifier: Apache-2.0
-- Nothing that lies about is run: not in the current directory, not in a home, not where the environment points. An installed program reads
-- the files that it is given, and no Lua of the machine it runs on.

local installed = require "installed"

local root = os.tmpname()
local prefix, checkout, home, marker = root .. "/prefix", root .. "/checkout", root .. "/home", root .. "/was-run"

local function write(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function exists(path)
  local file = io.open(path, "rb")
  if file then file:close() end
  return file ~= nil
end

local function shell(format, ...)
  local handle = io.popen("(" .. string.format(format, ...) .. ") 2>&1; echo \"status $?\"")
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

-- Modules that the program, busted or Lua might look for, and files that tools read of a checkout or a home.
local names = { "argparse", "busted", "cjson", "cliargs", "dkjson", "engine", "init", "lfs", "luassert", "lyaml", "mediator", "pipeplan", "pl",
                "say", "system", "term", "helper", ".busted", ".luacov", ".luacheckrc", ".luarc" }

local function fill(directory)
  local text = string.format("local file = io.open('%s', 'a') file:write(...) file:close() os.exit(99)", marker)
  for _, name in ipairs(names) do
    assert(os.execute(string.format("mkdir -p '%s/%s.d' '%s/lua/%s' '%s/src'", directory, name, directory, name, directory)))
    for _, file in ipairs { name .. ".lua", name .. ".d/init.lua", "lua/" .. name .. "/init.lua", "src/" .. name .. ".lua" } do
      write(directory .. "/" .. file, text)
    end
  end
  for _, name in ipairs { ".busted", ".luacov", ".luacheckrc" } do write(directory .. "/" .. name, text) end
  for _, place in ipairs { "stdlib/base", "stdlib/cli", "stdlib/input", "policies/default", "pipeplan/base", "pipeplan/cli" } do
    assert(os.execute(string.format("mkdir -p '%s/%s'", directory, place)))
    for _, file in ipairs { "init.lua", "main.lua", "spec.lua", "json.lua", "failure.lua" } do
      write(directory .. "/" .. place .. "/" .. file, text)
    end
  end
end

local spec = [[{"cluster":{"gpus":64,"accelerator":"H100-SXM","network":{"fabric":"infiniband","per_gpu":"400Gbps"}},]]
             .. [["model":{"architecture":"dense","total":"70B","layers":80},"training":{"tokens":"1T"}}]]

-- The program as it is installed, in the checkout, in an environment that points at it from every side; `tracer` goes before it.
local function run(arguments, tracer)
  local path = table.concat({ "./?.lua", checkout .. "/?.lua", checkout .. "/lua/?/init.lua" }, ";")
  return shell("cd '%s' && env -i HOME='%s' PATH=/usr/bin:/bin ASAN_OPTIONS=detect_leaks=0 LUA_PATH='%s' LUA_PATH_5_4='%s;;' "
               .. "LUA_CPATH='%s/?.so' LUA_CPATH_5_4='./?.so;;' LUA_INIT='@init.lua' LUA_INIT_5_4='@init.lua' PIPEPLAN_STDLIB=stdlib "
               .. "PIPEPLAN_POLICIES=policies %s '%s/bin/pipeplan' %s", checkout, home, path, path, checkout, tracer or "", prefix, arguments)
end

setup(function()
  os.remove(root)
  assert(os.execute(string.format("mkdir -p '%s' '%s'", checkout, home)))
  installed.under(prefix)
  fill(checkout)
  fill(home)
  write(checkout .. "/spec.json", spec)
  write(checkout .. "/specs.jsonl", spec .. "\n" .. spec .. "\n")
  write(checkout .. "/helped.lua", 'require "beside"\n')
  write(checkout .. "/beside.lua", "set { small_run_gpus = 64 }\n")
  local log = {}
  for i = 1, 10 do log[i] = string.format(" iteration %d/ 10 | elapsed time per iteration (ms): 30000.0 | global batch size: 1024 |\n", i) end
  write(checkout .. "/train.log", table.concat(log))
  assert.equal(0, (run "policy init my-cluster"))
  assert.equal(0, (run "plan spec.json --format json -o plan.json"))
end)

teardown(function() os.execute("rm -rf '" .. root .. "'") end)

local commands = {
  "plan spec.json", "plan spec.json --policy my-cluster.lua --explain", "plan spec.json --policy helped.lua --format csv",
  "plan --jsonl --jobs 2 <specs.jsonl", "simulate 1f1b --ranks 4 --microbatches 8", "facts accelerators",
  "monitor plan.json train.log --steps 1-10 --min-steps 1",
  "policy show --policy my-cluster.lua", "policy check --no-witnesses --policy my-cluster.lua",
  "policy diff default my-cluster.lua --corpus specs.jsonl", "--version", "--help",
}

describe("an installed program in a hostile checkout", function()
  for _, command in ipairs(commands) do
    it("runs nothing of it in " .. command, function()
      local status, text = run(command)
      assert.is_true(status == 0 or status == 1, text)
      assert.is_false(exists(marker))
    end)
  end

  it("writes what it writes elsewhere", function()
    local _, here = run(string.format("plan '%s/spec.json' --format json --date 2026-12-01", checkout))   -- a plan names its files as given
    local _, elsewhere = shell("cd / && env -i ASAN_OPTIONS=detect_leaks=0 '%s/bin/pipeplan' plan '%s/spec.json' --format json --date 2026-12-01",
                               prefix, checkout)
    assert.equal(elsewhere, here)
  end)

  it("runs the test files that policy test and mutate are given, and no other file of it", function()
    for _, command in ipairs { "policy test my-cluster_spec.lua", "policy mutate my-cluster_spec.lua --filter small_run --no-witnesses" } do
      local status, text = run(command)
      assert.equal(0, status, text)
      assert.is_false(exists(marker))
    end
    write(checkout .. "/own_spec.lua",
          string.format("it('is a program', function() io.open('%s', 'w'):close() assert.is_true(true) end)", marker))
    assert.equal(0, (run "policy test own_spec.lua"))
    assert.is_true(exists(marker))
    os.remove(marker)
    write(checkout .. "/own_spec.lua", "require 'helper'")
    assert.equal(1, (run "policy test own_spec.lua"))
    assert.is_false(exists(marker))
  end)
end)

describe("--stdlib and --policies", function()
  it("are the one way to other code: as options, and not behind --", function()
    assert(os.execute(string.format("mkdir -p '%s/own/cli' '%s/--stdlib=own'", checkout, checkout)))
    write(checkout .. "/own/cli/main.lua", "return function() io.write('own code\\n') return 0 end")
    for _, arguments in ipairs { "plan spec.json --stdlib own", "--stdlib=own facts accelerators" } do
      assert.same({ 0, "own code\n" }, { run(arguments) })
    end
    local status, text = run "plan -- --stdlib=own"
    assert.equal(2, status)
    assert.is_nil(text:find("own code", 1, true))
  end)

  it("that name no such directory are said to be wrong in one line", function()
    local message = "pipeplan: --stdlib: cli/main.lua of that directory cannot be read: No such file or directory\n"
    assert.same({ 2, message }, { run "plan spec.json --stdlib nowhere" })
    assert.same({ 6, "pipeplan: nowhere: cannot be read: No such file or directory\n" }, { run "plan spec.json --policies nowhere" })
  end)
end)

-- The files that a command opens or tries to, from strace; shared libraries aside, for the loader finds them before the program begins.
local function opened(command)
  local trace = root .. "/trace"
  local status, text = run(command, string.format("strace -f -qq -e trace=open,openat,execve -o '%s'", trace))
  assert.is_true(status == 0 or status == 1, text)
  local list, begun = {}, false
  for line in io.lines(trace) do
    local path = line:match 'open[at]*%(.-"([^"]*)"'
    begun = begun or path ~= nil and path:find "%.so[%.%d]*$" == nil and path ~= "/etc/ld.so.cache"
    if path and begun then list[#list + 1] = path end
  end
  return list
end

describe("an installed program", function()
  local traces = (shell "strace -qq -o /dev/null true") == 0
  if not traces then print "# what it opens is not looked at: strace cannot trace here" end

  for _, command in ipairs(traces and commands or {}) do
    it("opens no Lua but the policies it is given in " .. command, function()
      for _, path in ipairs(opened(command)) do
        local given = path == "my-cluster.lua" or path == "helped.lua" or path == "beside.lua"
        assert.is_true(given or not path:find "%.lua$", path)
        assert.is_nil(path:find "%.so[%.%d]*$", path)
        assert.is_nil(path:find("/lua/", 1, true), path)
      end
    end)
  end

  it("brings its option parser, under its licence", function()
    local file = assert(io.open(prefix .. "/bin/pipeplan", "rb"))
    local text = file:read "a"
    file:close()
    assert.is_truthy(text:find("The above copyright notice and this permission notice shall be included", 1, true))
  end)
end)
