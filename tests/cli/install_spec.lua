-- SPDX-License-Identifier: Apache-2.0
-- `cmake --install` gives a tree that works by itself: program, module, editor definitions, examples, licence.

local installed = require "installed"

local prefix = os.tmpname()
os.remove(prefix)

-- Runs a shell command outside the source tree, without what the tests set up → { status, text of both streams }.
local function run(format, ...)
  local command = "cd / && unset LUA_PATH LUA_CPATH PIPEPLAN PIPEPLAN_SOURCE; " .. string.format(format, ...)
  local handle = assert(io.popen("(" .. command .. ") 2>&1; echo \"status $?\""))
  local text, status = handle:read("a"):match("^(.*)status (%d+)\n$")
  handle:close()
  return { text = text, status = tonumber(status) }
end

-- Lua text in stock lua5.4, with the installed module the only pipeplan that there is.
local function run_lua(text)
  return run("LUA_CPATH='%s/lib/lua/5.4/?.so;;' lua5.4 -e '%s'", prefix, text)
end

local function exists(path)
  local file = io.open(prefix .. "/" .. path, "rb")
  if file then file:close() end
  return file ~= nil
end

setup(function() installed.under(prefix) end)

teardown(function() os.execute("rm -rf '" .. prefix .. "'") end)

describe("an installed tree", function()
  it("holds a program that plans its examples", function()
    local result = run("env -u LD_PRELOAD %s/bin/pipeplan plan %s/share/pipeplan/examples/specs/qwen3-235b.json", prefix, prefix)
    assert.equal(0, result.status, result.text)
    assert.matches("dualpipe", result.text)
  end)

  it("holds a program that reads its example policies", function()
    local result = run("env -u LD_PRELOAD %s/bin/pipeplan policy show --date 2026-12-01 --policy %s/share/pipeplan/examples/sites/aws-p5.lua", prefix, prefix)
    assert.equal(0, result.status, result.text)
    assert.matches("^policy  default ← aws%-p5\n", result.text)
  end)

  it("holds a module that plans in stock lua5.4, and is what `require` finds", function()
    local spec = prefix .. "/share/pipeplan/examples/specs/7b-fits-one-gpu.json"
    local result = run_lua(string.format([[
      local pipeplan = require "pipeplan"
      local plan = pipeplan.policy():plan { "%s" }
      print(package.searchpath("pipeplan", package.cpath), plan.status, plan.reasons[1].id)]], spec))
    assert.equal(prefix .. "/lib/lua/5.4/pipeplan.so\trejected\tfits_one_gpu\n", result.text)
  end)

  -- Both of docs/embedding.md's examples, as the page says to run them.
  it("holds a module and a library that plan 100 specs from Lua and from C, alike and as the program does", function()
    if os.getenv "PIPEPLAN_PRELOAD" then return pending "a library with a sanitizer needs a program with one" end
    local found = string.format("export PKG_CONFIG_PATH='%s/share/pkgconfig'; cd '%s/share/pipeplan'; ", prefix, prefix)
    local lua = run("%s LUA_CPATH=\"$(pkg-config --variable=luadir pipeplan)/?.so;;\" lua5.4 examples/embed/plan_many.lua 2>'%s/lua.err'", found,
                    prefix)
    assert.equal(0, lua.status, lua.text)
    local c = run("%s cc -Wall -Wextra -Werror -o '%s/plan_many' examples/embed/plan_many.c $(pkg-config --cflags --libs pipeplan) && "
                  .. "LD_LIBRARY_PATH=\"$(pkg-config --variable=libdir pipeplan)\" '%s/plan_many' '{\"date\":\"2026-12-01\"}' 2>/dev/null",
                  found, prefix, prefix)
    assert.equal(0, c.status, c.text)
    assert.equal(100, select(2, c.text:gsub("\n", "")))
    assert.is_true(c.text == lua.text)
    assert.matches("planned; fewest GPU%-hours", run("cat '%s/lua.err'; rm '%s/lua.err' '%s/plan_many'", prefix, prefix, prefix).text)
    local spec = [[{"cluster":{"gpus":32,"accelerator":"H100-SXM","network":{"fabric":"infiniband","per_gpu":"400Gbps"}},]]
      .. [["model":{"architecture":"dense","total":"70B","layers":80},"training":{"tokens":"1T","global_batch_size":256},]]
      .. [["parallelism":{"tensor":8,"pipeline":4}}]]
    local program = run("echo '%s' | env -u LD_PRELOAD PIPEPLAN_SYSTEM=/nonexistent %s/bin/pipeplan plan --jsonl --date 2026-12-01", spec, prefix)
    assert.equal(program.text, c.text:match "^[^\n]*\n")
  end)

  it("holds definitions for editors, examples, licence, and nothing of the build or the tests", function()
    for _, path in ipairs { "share/pipeplan/meta/policy.lua", "share/pipeplan/meta/engine.lua", "share/pipeplan/meta/pipeplan.lua",
                            "share/pipeplan/examples/models/deepseek-v3.json", "share/doc/pipeplan/LICENSE", "share/doc/pipeplan/README.md",
                            "share/doc/pipeplan/docs/spec.md", "share/man/man1/pipeplan.1", "share/man/man1/pipeplan-policy-check.1",
                            "share/bash-completion/completions/pipeplan", "share/fish/vendor_completions.d/pipeplan.fish",
                            "share/zsh/site-functions/_pipeplan", "share/zsh/vendor-completions/_pipeplan" } do
      assert.is_true(exists(path), path)
    end
    local listed = run("cd '%s' && find . -type f -not -path './share/pipeplan/examples/*'", prefix).text
    for path in listed:gmatch("[^\n]+") do
      assert.is_true(path == "./bin/pipeplan" or path == "./lib/lua/5.4/pipeplan.so" or path == "./include/pipeplan.h"
                     or path:match("^%./lib/libpipeplan%.so[.%d]*$") ~= nil or path:match("^%./share/pipeplan/meta/%l+%.lua$") ~= nil
                     or path == "./share/pkgconfig/pipeplan.pc" or path:match("^%./share/doc/pipeplan/%u+[%.md]*$") ~= nil
                     or path:match("^%./share/doc/pipeplan/docs/[%l-]+%.md$") ~= nil
                     or path:match("^%./share/man/man1/pipeplan[%l-]*%.1$") ~= nil
                     or path:match("^%./share/[%l-]+/[%l_.-]+/_?pipeplan[.fish]*$") ~= nil, path)
    end
  end)
end)

describe("uninstalling", function()
  local root = os.tmpname()
  os.remove(root)

  teardown(function() os.execute("rm -rf '" .. root .. "'") end)

  it("removes exactly what was installed", function()
    assert(os.execute(string.format("mkdir -p '%s/bin' '%s/share/pipeplan/examples/specs' '%s/share/doc'", root, root, root)))
    local own = { "./bin/other", "./share/pipeplan/examples/specs/mine.json" }
    for _, path in ipairs(own) do assert(io.open(root .. "/" .. path, "w")):close() end
    installed.under(root, function()
      assert.is_true(tonumber((run("find '%s' -type f | wc -l", root).text)) > 50)
      local status, text = installed.uninstall()
      assert.equal(0, status, text)
    end)
    assert.equal(table.concat(own, "\n") .. "\n", run("cd '%s' && find . -type f | sort", root).text)
    -- folders: those that were there, those on the way to what was left, and those that other packages use too
    assert.equal("./bin ./include ./lib ./lib/lua ./lib/lua/5.4 ./share ./share/bash-completion ./share/bash-completion/completions ./share/doc "
                 .. "./share/fish ./share/fish/vendor_completions.d ./share/man ./share/man/man1 ./share/pipeplan "
                 .. "./share/pipeplan/examples ./share/pipeplan/examples/specs ./share/pkgconfig ./share/zsh ./share/zsh/site-functions "
                 .. "./share/zsh/vendor-completions\n",
                 (run("cd '%s' && find . -mindepth 1 -type d | sort | tr '\\n' ' ' | sed 's/ $/\\n/'", root).text))
  end)

  it("says so where nothing was installed", function()
    local kept
    installed.under(root, function()
      os.remove(os.getenv "PIPEPLAN_BUILD" .. "/install_manifest.txt")
      kept = { installed.uninstall() }
    end)
    assert.is_not.equal(0, kept[1])
    assert.matches("nothing was installed from this build folder", kept[2])
  end)
end)
