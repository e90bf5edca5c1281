-- SPDX-License-Identifier: Apache-2.0
-- The Lua module in a stock interpreter.

describe("require 'pipeplan'", function()
  it("loads in stock lua5.4 and says its version", function()
    assert.matches("^%d+%.%d+%.%d+$", require("pipeplan").version)
  end)

  it("does not bring a second copy of Lua into the process", function()
    require "pipeplan"
    local copies = {}
    for line in io.lines("/proc/self/maps") do
      local file = line:match("%S*liblua5%.4%.so%S*")
      if file then copies[file] = true end
    end
    -- Debian's interpreter has Lua built in; where it links the shared library instead, that one file is the only copy.
    local interpreter = io.open("/proc/self/exe", "rb"):read("a")
    local built_in = not interpreter:find("liblua5.4.so", 1, true)
    local n = 0
    for _ in pairs(copies) do n = n + 1 end
    assert.equal(built_in and 0 or 1, n)
  end)

  it("loads again where a test runner emptied package.loaded between two files", function()
    require "pipeplan"
    local kept = {}
    for name in pairs(package.loaded) do
      if name == "engine" or name:find "^pipeplan" then kept[name] = package.loaded[name] end
    end
    for name in pairs(kept) do package.loaded[name] = nil end
    assert.matches("^%d", require("pipeplan").version)
    for name, module in pairs(kept) do package.loaded[name] = module end
  end)
end)
