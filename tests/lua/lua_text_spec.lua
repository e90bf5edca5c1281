-- SPDX-License-Identifier: Apache-2.0
-- The words of a Lua text. What they must be is what Lua's own compiler makes of the same text.

require "planning"  -- it loads the module
local lua_text = require "pipeplan.base.lua_text"

local function words(text)
  local list = {}
  for kind, start, stop in lua_text.words(text) do list[#list + 1] = kind .. " " .. text:sub(start, stop) end
  return list
end

-- The code of a text, without its name.
local function compiled(text) return string.dump(assert(load(text)), true) end

local function without_comments(text)
  local out, at = {}, 1
  for kind, start, stop in lua_text.words(text) do
    if kind == "comment" then
      out[#out + 1] = text:sub(at, start - 1) .. text:sub(start, stop):gsub("[^\n]", "")
      at = stop + 1
    end
  end
  return table.concat(out, " ") .. " " .. text:sub(at)
end

describe("the words of a Lua text", function()
  it("are names, numbers, strings, comments and symbols", function()
    assert.same({ "name local", "name x", "symbol <", "name const", "symbol >", "symbol =", "number 0x1p-4", "symbol <<", "number 3.5e+2",
                  "symbol ..", "string 'it\\'s'", "comment -- that's \"all" }, words "local x <const> = 0x1p-4 << 3.5e+2 .. 'it\\'s' -- that's \"all")
    assert.same({ "comment --[==[ a ]] b\n]==]", "symbol ~=", "string [[ -- ]]", "symbol ...", "string \"\\z\n  b\\\nc\"", "symbol //", "number .5" },
                words "--[==[ a ]] b\n]==] ~= [[ -- ]] ... \"\\z\n  b\\\nc\" // .5")
  end)

  it("leave the same code without its comments, and still Lua without what stands in quotes", function()
    local files, count = io.popen "ls stdlib/*/*.lua tests/lua/*.lua", 0
    for path in files:lines() do
      local file = assert(io.open(path))
      local text = file:read "a"
      file:close()
      assert.is_true(compiled(text) == compiled(without_comments(text)), path)
      local code = lua_text.code_only(text)
      assert.equal(#text, #code)
      assert.is_function(load((code:gsub("%[%s*%]", "''"))), path)  -- [[ ]] keeps one bracket of each
      count = count + 1
    end
    files:close()
    assert.is_true(count > 200)
  end)

  it("end where the text does, whatever is not closed in it", function()
    for _, text in ipairs { "'", "\"\\", "--[[", "[==[ ]=]", "a = 'b\nc = 1", "--", "[", "0x", "\\z" } do
      assert.equal(#text, #lua_text.code_only(text), text)
    end
    local long = string.rep("[=", 200000) .. string.rep("9", 200000)   -- hours, if each were looked at to the end
    assert.equal(#long, #lua_text.code_only(long))
  end)
end)
