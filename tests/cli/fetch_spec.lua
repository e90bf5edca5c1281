-- SPDX-License-Identifier: Apache-2.0
-- scripts/fetch-data: what has its hash is kept, what has another is not. Its addresses are local files here.

local files = require "policy_files"
local read = require "read_file"

teardown(files.remove)

local good = files.write("good.csv", "a,b\n1,2\n")
local folder = good:match "^(.*)/" .. "/data"
local HASH = "492e5fd0b6b4083f4e1a7b8d65c9b6d0f9f8a0cf7fcbbfc9e0f9ecfd6e24ed7c"

local function fetch(list)
  local handle = io.popen(string.format("env -u LD_PRELOAD scripts/fetch-data '%s' '%s' 2>&1; echo \"status $?\"", folder, list))
  local text = handle:read "a"
  handle:close()
  return text
end

local function hash_of(path)
  local handle = io.popen("sha256sum '" .. path .. "'")
  local text = handle:read "a"
  handle:close()
  return text:match "^%x+"
end

describe("scripts/fetch-data", function()
  it("keeps a file that has its hash, once", function()
    if not os.execute "command -v curl >/dev/null" then return pending "no curl here" end
    local list = files.write("list.txt", string.format("%s  oracles/good.csv  file://%s\n", hash_of(good), good))
    assert.equal("oracles/good.csv\nstatus 0\n", fetch(list))
    assert.equal("a,b\n1,2\n", read(folder .. "/oracles/good.csv"))
    assert.equal("status 0\n", fetch(list))
  end)

  it("keeps nothing of one that has another hash, or is not there, and says so", function()
    if not os.execute "command -v curl >/dev/null" then return pending "no curl here" end
    local list = files.write("list.txt", string.format("%s  bad.csv  file://%s\n%s  none.csv  file://%s.none\n", HASH, good, HASH, good))
    local text = fetch(list)
    assert.matches("fetch-data: bad.csv: file://" .. good .. " has another hash than " .. HASH, text, 1, true)
    assert.matches("fetch-data: none.csv: not fetched from file://" .. good .. ".none", text, 1, true)
    assert.matches("status 1\n$", text)
    for _, name in ipairs { "bad.csv", "bad.csv.part", "none.csv", "none.csv.part" } do
      assert.is_nil(io.open(folder .. "/" .. name), name)
    end
  end)

  it("names a commit and a hash of each file, and those that are here have it", function()
    local data, count = os.getenv "PIPEPLAN_DATA", 0
    for line in read("tests/oracles/sources.txt"):gmatch "[^\n]+" do
      local hash, path, address = line:match "^(%x+)  (%S+)  (%S+)$"
      assert.equal(64, #hash, line)
      assert.matches("^https://raw%.githubusercontent%.com/[%w_.-]+/[%w_.-]+/%x+/", address)
      assert.equal(40, #address:match "^https://[^/]+/[^/]+/[^/]+/(%x+)/", address)
      local file = data and io.open(data .. "/" .. path)
      if file then
        file:close()
        assert.equal(hash, hash_of(data .. "/" .. path), path)
      end
      count = count + 1
    end
    assert.is_true(count >= 25)
  end)
end)
