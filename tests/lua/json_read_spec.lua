-- SPDX-License-Identifier: Apache-2.0
-- Reading JSON: what comes out of a JSON file, and what is said when it is none.

require "pipeplan"
local failure = require "pipeplan.base.failure"
local json = require "pipeplan.base.json"

local function message_of(f, ...)
  local good, problem = pcall(f, ...)
  assert.is_false(good)
  assert.is_true(failure.is(problem), tostring(problem))
  assert.equal(failure.status.usage, problem.status)
  return problem.message
end

describe("decoding JSON", function()
  it("keeps integers integers, up to 2^53", function()
    -- lua-cjson 2.1.0 on Lua 5.4 gives 2048.0 for 2048
    local value = json.decode('{"a": 2048, "b": -9007199254740992, "c": 1e3, "d": 0.5, "e": [7]}', "x")
    assert.equal("integer", math.type(value.a))
    assert.equal(-9007199254740992, value.b)
    assert.equal("integer", math.type(value.c))
    assert.equal(0.5, value.d)
    assert.equal("integer", math.type(value.e[1]))
  end)

  it("refuses an integer that a double cannot hold", function()
    assert.equal("s.json:1:7: integer beyond 2^53: a double cannot hold it (write it as a string)",
                 message_of(json.decode, '{"a": 9007199254740993}', "s.json"))
  end)

  it("reads every finite double that it writes, up to the largest, and refuses what is larger", function()
    for _, number in ipairs { 1.7976931348623157e308, -1.7976931348623157e308, 1e308, 9.99e307, 5e-324 } do
      assert.equal(number, json.decode(json.encode(number), "x"))
    end
    assert.equal(1.7976931348623157e308, json.decode("0.00017976931348623157e312", "x"))
    assert.equal(1.5e308, json.decode("150.0e306", "x"))
    for _, text in ipairs { "1.7976931348623158e308", "1.8e308", "2e308", "0.0018e311", "1e309", "-1.7976931348623159e308", "1e999" } do
      assert.equal("x:1:1: number too large", message_of(json.decode, text, "x"), text)
    end
  end)

  it("tells an empty array from an empty object", function()
    local value = json.decode('{"array": [], "object": {}, "nested": [[], {}, [ ]], "text": "[]"}', "x")
    assert.is_true(json.is_array(value.array))
    assert.is_false(json.is_array(value.object))
    assert.is_true(json.is_array(value.nested))
    assert.is_true(json.is_array(value.nested[1]))
    assert.is_false(json.is_array(value.nested[2]))
    assert.is_true(json.is_array(value.nested[3]))
    assert.equal("[]", value.text)
    assert.equal(0, #value.array)
  end)

  it("writes back what it read", function()
    local text = '{"a":[],"b":{},"c":null,"d":[1,2.5,"x",true],"e":-0.25}'
    assert.equal(text, json.encode(json.decode(text, "x")))
  end)

  it("keeps null apart from absent", function()
    local value = json.decode('{"a": null, "b": [null, 1]}', "x")
    assert.equal(json.null, value.a)
    assert.equal(json.null, value.b[1])
    assert.is_nil(value.c)
  end)

  it("treats a key that Lua gives a meaning to as plain data", function()
    local value = json.decode('{"__index": {"x": 1}, "1": 2}', "x")
    assert.equal(1, value.__index.x)
    assert.is_nil(value.x)
    assert.equal(2, value["1"])
  end)

  it("says file, line and column", function()
    assert.equal('spec.json:2:10: key "gpus" stands twice in one object (first in line 1, column 2)',
                 message_of(json.decode, '{"gpus": 1,\n "x": 2, "gpus": 2}', "spec.json"))
  end)

  it("takes everything that dkjson, an independent decoder, takes alike", function()
    local dkjson = require "dkjson"
    for _, text in ipairs { '{"a":[1,2,{"b":"\\u00e9\\ud83d\\ude00"}],"c":1.25e-3}', '[[],[[]],{"x":{}}]', '"x"', "12", "[true,false]" } do
      assert.same(dkjson.decode(text, 1, nil, nil, nil), json.decode(text, "x"))
    end
  end)

  it("gives what lua-cjson gives, for texts made at random: every escape, number form and white space", function()
    local cjson = require "cjson"
    local seed = 1
    local function random(n)  -- 1 … n, the same on every machine (Lehmer)
      seed = seed * 48271 % 2147483647
      return seed % n + 1
    end
    local function pick(list) return list[random(#list)] end
    local function space() return pick { "", "", " ", "\n", "\t \r\n" } end
    local function string_text()
      local parts = {}
      for i = 1, random(6) - 1 do
        parts[i] = pick { "a", "Z9", "\\n", "\\\"", "\\\\", "\\/", "\\b\\f\\r\\t", "\\u0000", "\\u00e9",
                          "\\u20AC", "\\ud83d\\ude00", "é", "€", "😀", "\127", "'" }
      end
      return '"' .. table.concat(parts) .. '"'
    end
    local function number_text()
      return pick { "", "-" } .. pick { "0", "7", "120", "9007199254740992" } .. pick { "", "", ".0", ".5", ".123456789012345678" }
             .. pick { "", "", "e0", "E+2", "e-3", "e-400" }
    end
    local function value_text(depth)
      local kind = random(depth > 4 and 5 or 7)
      if kind <= 2 then return string_text() end
      if kind <= 4 then return number_text() end
      if kind == 5 then return pick { "true", "false", "null" } end
      local parts = {}
      for i = 1, random(5) - 1 do
        parts[i] = space() .. (kind == 6 and '"' .. i .. string_text():sub(2) .. space() .. ":" .. space() or "") .. value_text(depth + 1) .. space()
      end
      local open, close = table.unpack(kind == 6 and { "{", "}" } or { "[", "]" })
      return open .. (parts[1] and "" or space()) .. table.concat(parts, ",") .. close
    end
    local function plain(value)  -- nulls alike, and numbers by value
      if value == json.null or value == cjson.null then return "null" end
      if type(value) == "number" then return value + 0.0 end
      if type(value) ~= "table" then return value end
      local copy = {}
      for key, member in pairs(value) do copy[key] = plain(member) end
      return copy
    end
    for _ = 1, 3000 do
      local text = space() .. value_text(1) .. space()
      assert.same(plain(cjson.decode(text)), plain(json.decode(text, "x")), text)
    end
  end)
end)

describe("reading a JSON file", function()
  local function with_file(text, f)
    local name = os.tmpname()
    local handle = assert(io.open(name, "wb"))
    handle:write(text)
    handle:close()
    local good, problem = pcall(f, name)
    os.remove(name)
    if not good then error(problem, 0) end
  end

  it("names a file that is not there", function()
    assert.equal("/no/such.json: cannot be read: No such file or directory", message_of(json.read, "/no/such.json"))
  end)

  it("names a directory", function()
    assert.equal("/tmp: cannot be read: Is a directory", message_of(json.read, "/tmp"))
  end)

  it("says that a file is empty", function()
    with_file(" \n", function(name)
      assert.equal(name .. ": empty file, expected JSON", message_of(json.read, name))
    end)
  end)

  it("refuses a file over the size limit before it decodes anything", function()
    with_file(string.rep(" ", 16 * 2 ^ 20 + 1), function(name)
      assert.matches("larger than 16 MiB", message_of(json.read, name))
    end)
  end)
end)
