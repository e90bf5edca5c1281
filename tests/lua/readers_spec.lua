-- SPDX-License-Identifier: Apache-2.0
-- The readers that tests/fuzz fuzzes, on some of the files that it starts from and on all that it has found: whatever a file holds ends with
-- a status of the program's, and none of them is a bug.

require "planning"  -- first: it loads the module

local source = os.getenv "PIPEPLAN_SOURCE" or "."
local readers = dofile(source .. "/tests/fuzz/readers.lua")

local MOST_SEEDS = 2   -- the last ones: the first are whole clusters, which take their time

local function listed(globs)
  local out = {}
  local handle = assert(io.popen(string.format("cd '%s' && ls -d %s 2>/dev/null", source, globs)))
  for path in handle:lines() do out[#out + 1] = source .. "/" .. path end
  handle:close()
  return out
end

-- The seeds of each reader, as tests/fuzz/run says them, and the names of those that it runs.
local seeds, named = {}, ""
for line in io.lines(source .. "/tests/fuzz/run") do
  local names, globs = line:match "^%s+([%w_|]+)%)%s+echo (.*) ;;$"
  if line:find '^all="' or named:find '^[^"]*"[^"]*$' then named = named .. line end
  for name in (names or ""):gmatch "[%w_]+" do seeds[name] = listed(globs) end
end

-- What it prints is not shown.
local function quietly(read, path)
  local stdout = io.stdout
  io.stdout = { write = function(self) return self end, flush = function(self) return self end }  -- luacheck: ignore 122
  local good, status = pcall(read, path)
  io.stdout = stdout  -- luacheck: ignore 122
  assert(good, status)
  return status
end

describe("a reader that is fuzzed", function()
  it("is one that tests/fuzz/run runs", function()
    local list = {}
    for name in named:match '^all="(.*)"$':gmatch "%S+" do
      if name ~= "runtimes" then list[name] = true end   -- program_fuzz.c
    end
    for name in pairs(readers) do assert.is_true(list[name], name) list[name] = nil end
    assert.same({}, list)
  end)

  for name, read in pairs(readers) do
    it("ends as documented on what it is fuzzed from: " .. name, function()
      local own = seeds[name] or {}
      local list = table.move(own, math.max(1, #own - MOST_SEEDS + 1), #own, 1, {})
      for _, path in ipairs(listed("tests/fuzz/seeds/" .. name .. "/*")) do list[#list + 1] = path end
      if #list == 0 then return pending "tests/fuzz/run names no seed of it" end
      for _, path in ipairs(list) do
        assert.is_true(quietly(read, path) <= 6, path)
      end
    end)
  end
end)
