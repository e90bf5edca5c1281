-- SPDX-License-Identifier: Apache-2.0
-- Writing JSON: what must hold so that two runs give the same bytes and any reader gets the same numbers (RFC 8259).

require "pipeplan"
local json = require "pipeplan.base.json"
local cjson = require "cjson"

describe("json.encode", function()
  it("writes integers as integers, whole floats too", function()
    assert.equal("[2048,14800000000000,2048,9007199254740992]",
                 json.encode { 2048, 14.8e12, 2048.0, 9007199254740992 })
  end)

  -- The most that a double counts by ones (IEEE 754): a reader takes no more as a whole number. 12 PB is a model of 10^15 parameters.
  it("writes larger ones so that they are read again", function()
    assert.equal("[12227709299869696.0,-9007199254740996.0,9.223372036854776e+18,1e+17]",
                 json.encode { 12227709299869696.0, -9007199254740996, math.maxinteger, 1e17 })
    for _, number in ipairs { 2 ^ 53, (1 << 53) + 1, 1 << 53, -(1 << 53), math.maxinteger, math.mininteger, 1.2227709299869696e16, 1e300 } do
      assert.equal(number + 0.0, json.decode(json.encode(number), "number") + 0.0)
      assert.equal(number + 0.0, cjson.decode(json.encode { number })[1] + 0.0)
    end
  end)

  it("writes other numbers with the fewest digits that read back as the same double", function()
    assert.equal("0.1", json.encode(0.1))
    assert.equal("0.30000000000000004", json.encode(0.1 + 0.2))
    for _, number in ipairs { 1 / 3, 3 / 35, 1e300, 5e-324, -2.5, 123456789.123, 2 ^ 63, 1e15 + 0.5 } do
      assert.equal(number, tonumber(json.encode(number)))
    end
  end)

  it("refuses what is no JSON number", function()
    assert.has_error(function() json.encode { a = 0 / 0 } end, "json.encode: " .. tostring(0 / 0) .. " is no JSON number")
    assert.has_error(function() json.encode(math.huge) end)
    assert.has_error(function() json.encode(-math.huge) end)
  end)

  it("sorts keys at every level", function()
    assert.equal('{"a":{"x":1,"y":2},"b":true,"c":"s"}', json.encode { c = "s", b = true, a = { y = 2, x = 1 } })
  end)

  it("writes a list as a list, and an empty one when it is marked", function()
    assert.equal("[[1,2],[],{}]", json.encode { { 1, 2 }, json.array {}, {} })
  end)

  it("writes null, alone and in lists", function()
    assert.equal('{"a":null,"b":[null,1]}', json.encode { a = json.null, b = { json.null, 1 } })
    assert.equal("null", json.encode(nil))
  end)

  it("escapes what a string may not hold", function()
    assert.equal([["\"\\\n\t\u0001\u007f/é"]], json.encode('"\\\n\t\1\127/é'))
    assert.equal('a"\\\n\t\1\127/é', cjson.decode(json.encode { 'a"\\\n\t\1\127/é' })[1])
  end)

  it("replaces bytes that are no UTF-8", function()
    assert.equal('"a\u{FFFD}b\u{FFFD}"', json.encode("a\xffb\xc3"))
    assert.equal('"\u{FFFD}\u{FFFD}\u{FFFD}"', json.encode("\xed\xa0\x80"))  -- a lone surrogate
  end)

  it("refuses a table that is half a list", function()
    assert.has_error(function() json.encode { 1, a = 2 } end, "json.encode: a table is both a list and has the key a")
    assert.has_error(function() json.encode { [1] = 1, [3] = 3 } end)
    assert.has_error(function() json.encode { [true] = 1 } end)
    assert.has_error(function() json.encode { f = print } end, "json.encode: a function is no JSON value")
  end)

  it("refuses a cycle instead of running for ever", function()
    local cycle = {}
    cycle.again = cycle
    assert.has_error(function() json.encode(cycle) end, "json.encode: nested deeper than 64 levels")
  end)

  it("indents objects and keeps rows of numbers on one line", function()
    assert.equal('{\n  "a": [1, 2],\n  "b": [\n    {\n      "c": 1\n    }\n  ],\n  "d": {}\n}',
                 json.encode({ a = { 1, 2 }, b = { { c = 1 } }, d = {} }, { indent = 2 }))
  end)
end)

describe("json.shape", function()
  local schema = {
    type = "object",
    properties = {
      name = { type = "string" },
      list = { type = "array", items = { ["$ref"] = "#/$defs/entry" } },
      inner = { anyOf = { { ["$ref"] = "#/$defs/entry" }, { type = "null" } } },
    },
    ["$defs"] = { entry = { type = "object", properties = { a = {}, b = { type = "array", items = {} } } } },
  }

  it("fills in null for what is declared and missing", function()
    assert.equal('{"inner":null,"list":null,"name":"x"}', json.encode(json.shape({ name = "x" }, schema)))
  end)

  it("keeps an empty list a list, through references and choices", function()
    assert.equal('{"inner":{"a":1,"b":[]},"list":[{"a":null,"b":[]}],"name":null}',
                 json.encode(json.shape({ list = { { b = {} } }, inner = { a = 1, b = {} } }, schema)))
  end)

  it("leaves the value itself alone", function()
    local value = { list = {} }
    json.shape(value, schema)
    assert.same({ list = {} }, value)
  end)
end)
