-- SPDX-License-Identifier: Apache-2.0
-- stdlib/input/fields.lua and what is made of it: options and the JSON Schema.

require "pipeplan"
local fields = require "pipeplan.input.fields"
local json = require "pipeplan.base.json"
local options = require "pipeplan.input.options"
local schema = require "pipeplan.input.schema"

describe("the fields of a spec", function()
  it("each have an option of their own", function()
    local parser = require("argparse")("x")
    options.declare(parser)
    local arguments, expected = {}, {}
    for i, entry in ipairs(fields.list) do
      arguments[#arguments + 1] = "--" .. (i % 2 == 0 and entry.name or entry.name:gsub("_", "-"))
      arguments[#arguments + 1] = "v" .. i
      expected[entry.name] = "v" .. i
    end
    assert.same(expected, options.given(parser:parse(arguments)))
    assert.same({}, options.given(parser:parse {}))
  end)

  it("are read by a parser of the named ones as by one of all", function()
    local whole = require("argparse")("x")
    options.declare(whole)
    for _, entry in ipairs(fields.list) do
      for _, list in ipairs { { "--" .. entry.name, "one" }, { "--" .. entry.name:gsub("_", "-") .. "=one", "--tokens", "2T" } } do
        local few = require("argparse")("x")
        options.declare(few, list)
        assert.is_true(#few._options < #whole._options / 4, entry.name)
        local good, parsed = whole:pparse(list)
        local alike, also = few:pparse(list)
        assert.same({ good, good and options.given(parsed) }, { alike, alike and options.given(also) }, entry.name)
      end
    end
  end)

  it("each say what they mean", function()
    for _, entry in ipairs(fields.list) do assert.matches("%S+", entry.meaning) end
  end)
end)

describe("the JSON Schema of a spec", function()
  it("is JSON, and has every field where it stands in a spec", function()
    local root = json.decode(schema.text(), "schema")
    assert.equal("https://json-schema.org/draft/2020-12/schema", root["$schema"])
    for _, entry in ipairs(fields.list) do
      local at = root
      for part in entry.path:gmatch("[^.]+") do
        assert.is_false(at.additionalProperties)
        at = at.properties[part]
      end
      assert.equal(fields.meaning(entry), at.description)
    end
  end)
end)
