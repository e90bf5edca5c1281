-- SPDX-License-Identifier: Apache-2.0
-- The examples for CI and editors: each command of examples/ci runs, on the site that `pipeplan policy init` writes, and fails where it should;
-- the luacheck configuration knows what policies may use.

local lyaml = require "lyaml"
local json = require "cjson"

local source, program = os.getenv "PIPEPLAN_SOURCE", os.getenv "PIPEPLAN"
local root = os.tmpname()
local place = root .. "/site"

local read = require "read_file"

local function write(path, text)
  local file = assert(io.open(place .. "/" .. path, "wb"))
  file:write(text)
  file:close()
end

-- Runs a shell command in the site's repository, pipeplan on its path → status, text of both streams.
local function shell(command)
  local handle = io.popen(string.format("cd '%s' && export PATH='%s':\"$PATH\" PIPEPLAN_PREFIX='%s' && unset LD_PRELOAD LUA_PATH LUA_CPATH; "
                                        .. "(set -e; %s) 2>&1; echo \"status $?\"", place, program:match "^(.*)/", root, command))
  local text, status = handle:read("a"):match "^(.*)status (%d+)\n$"
  handle:close()
  return tonumber(status), text
end

local spec = [[{"cluster":{"gpus":64,"accelerator":"H100-SXM","network":{"fabric":"infiniband","per_gpu":"400Gbps"}},]]
             .. [["model":{"architecture":"dense","total":"70B","layers":80},"training":{"tokens":"1T"}}]]
local deep = (spec:gsub('"gpus":64', '"gpus":1152'):gsub('"layers":80', '"layers":96')
                  :gsub('}}$', ',"global_batch_size":1152},"parallelism":{"pipeline":72,"tensor":8,"schedule":"1f1b"}}'))

setup(function()
  os.remove(root)
  assert(os.execute(string.format("mkdir -p '%s' '%s/share/pipeplan' && ln -s '%s/stdlib/meta' '%s/share/pipeplan/meta'", place, root, source, root)))
  assert.equal(0, (shell "pipeplan policy init my-cluster"))
  write("specs.jsonl", spec .. "\n" .. deep .. "\n")
  write(".luacheckrc", read(source .. "/examples/editor/.luacheckrc"))
  local status, text = shell [[git init -q -b main . && git add -A && git -c user.name=t -c user.email=t@example.com commit -q -m site &&
    git update-ref refs/remotes/origin/main HEAD]]
  assert.equal(0, status, text)
end)

teardown(function() os.execute("rm -rf '" .. root .. "'") end)

-- Every command of a YAML file, in order: what stands behind run, script and entry.
local function commands(value, found)
  found = found or {}
  for _, key in ipairs { "run", "script", "entry" } do
    local command = value[key]
    for _, line in ipairs(type(command) == "table" and command or { command }) do found[#found + 1] = line end
  end
  local keys = {}
  for key, inner in pairs(value) do if type(inner) == "table" then keys[#keys + 1] = key end end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for _, key in ipairs(keys) do commands(value[key], found) end
  return found
end

local function commands_of(name)
  return commands(lyaml.load(read(source .. "/examples/ci/" .. name)))
end

local files = { ["github-actions.yml"] = 6, ["gitlab-ci.yml"] = 7, ["pre-commit-config.yaml"] = 2 }

describe("the example", function()
  for name, count in pairs(files) do
    it(name .. " is YAML whose commands all run", function()
      local list = commands_of(name)
      assert.equal(count, #list)
      for _, command in ipairs(list) do
        local status, text = shell(command)
        assert.equal(0, status, command .. "\n" .. text)
      end
    end)
  end

  it("actions are named by commit, which nobody can move, and by version, for people", function()
    local count = 0
    for line in read(source .. "/examples/ci/github-actions.yml"):gmatch "[^\n]+" do
      local action, commit, version = line:match "uses: ([%w/_-]+)@(%S+)%s*(.*)$"
      if line:find("uses:", 1, true) then
        count = count + 1
        assert.is_truthy(action, line)
        assert.matches("^" .. ("%x"):rep(40) .. "$", commit)
        assert.matches("^# v%d+%.%d+%.%d+$", version)
      end
    end
    assert.equal(2, count)
  end)

  it("commands write the reports that the CI picks up", function()
    for _, command in ipairs(commands_of "gitlab-ci.yml") do
      if command:find(" -o ", 1, true) then shell(command) end
    end
    assert.equal("2.1.0", json.decode(read(place .. "/policy.sarif")).version)
    assert.matches('<testsuite name="pipeplan policy test" tests="2" failures="0"', read(place .. "/tests.xml"))
  end)

  -- A branch whose policy lets more through, whose rule can never fire, or whose tests do not pass.
  for _, case in ipairs {
    { "a limit raised", [[set { small_run_gpus = 64, max_pipeline_depth = 128, reason = "96 layers" }]], "policy diff" },
    { "a rule without effect", [[set { small_run_gpus = 64 } reject { id = "r", pipeline_parallel = over(70), message = "m" }]], "policy check" },
    { "a wrong parameter", [[set { small_run_gpus = 72 }]], "policy test" },
    { "a name that nothing has", [[set { small_run_gpus = 64 } rejct { id = "r" }]], "luacheck" },
  } do
    it("commands fail on " .. case[1], function()
      local kept = read(place .. "/my-cluster.lua")
      write("my-cluster.lua", 'site "my-cluster"\n' .. case[2] .. "\n")
      local failed = {}
      for _, name in ipairs { "github-actions.yml", "gitlab-ci.yml" } do
        for _, command in ipairs(commands_of(name)) do
          if command:find(case[3], 1, true) and (shell(command)) ~= 0 then failed[name] = true end
        end
      end
      write("my-cluster.lua", kept)
      assert.same({ ["github-actions.yml"] = true, ["gitlab-ci.yml"] = true }, failed)
    end)
  end
end)

describe("the configuration for", function()
  it("luacheck knows what policies may use, and their fields, and nothing else", function()
    for text, expected in pairs {
      ['rejct { id = "x" }'] = "rejct", ["set { small_run_gpus = math.random(64) }"] = "random", ["print(1)"] = "print", ["x = 1"] = "x",
    } do
      write("wrong.lua", text .. "\n")
      local status, found = shell "luacheck -q --no-color wrong.lua; rc=$?; exit $rc"
      os.remove(place .. "/wrong.lua")
      assert.equal(1, status, found)
      assert.matches(expected, found, 1, true)
    end
    write("right.lua", read(source .. "/examples/sites/aws-p5.lua"))
    local status, found = shell "luacheck -q --no-color right.lua"
    os.remove(place .. "/right.lua")
    assert.equal(0, status, found)
  end)

  it("LuaLS is JSON and names where the definitions are installed", function()
    local configuration = json.decode(read(source .. "/examples/editor/.luarc.json"))
    assert.equal("Lua 5.4", configuration["runtime.version"])
    for _, path in ipairs(configuration["workspace.library"]) do assert.matches("/share/pipeplan/meta$", path) end
  end)
end)

describe("what pip installs", function()
  it("is taken by version and hash, all of it", function()
    local names = 0
    for requirement in (read(source .. "/tests/torch/requirements.txt"):gsub("#[^\n]*\n", ""):gsub("\\\n", "")):gmatch "[^\n]+" do
      names = names + 1
      local rest, hashes = requirement:gsub("%-%-hash=sha256:" .. ("%x"):rep(64) .. "%f[%s\0]", "")
      assert.matches("^[%w-]+==[%w.+]+%s*$", rest)
      assert.is_true(hashes > 0, requirement)
    end
    assert.is_true(names > 5)
    for path in io.popen("grep -rlE 'pip3? install' '" .. source .. "/scripts' '" .. source .. "/examples' '" .. source .. "/.ci'"):lines() do
      for command in read(path):gsub("\\\n", " "):gmatch "[^\n]*pip3? install[^\n]*" do
        assert.matches("--require-hashes", command, 1, true)
      end
    end
  end)
end)
