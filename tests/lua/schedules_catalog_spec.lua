-- SPDX-License-Identifier: Apache-2.0
-- The catalogue of schedules and the engine's kinds speak of the same things.

require "pipeplan"
local engine = require "engine"
local catalogue = require "pipeplan.catalog.schedules"
local vocabulary = require "pipeplan.vocabulary"

describe("the catalogue of schedules", function()
  it("has an entry with a source for every schedule that can be built, and for no other", function()
    local names, kinds = { table.unpack(catalogue.names) }, { table.unpack(engine.schedule.kinds) }
    table.sort(names)
    table.sort(kinds)
    assert.same(kinds, names)
    for _, entry in ipairs(catalogue.entries) do
      assert.is_string(entry.source)
      assert.is_string(entry.idea)
      assert.equal(entry, catalogue.find(entry.name))
    end
  end)

  it("tells savings against 1F1B, and against ZB-H1 too where pairs overlap", function()
    for _, name in ipairs(catalogue.names) do
      local expected = engine.schedule.traits(name).overlaps and { "1f1b", "zb_h1" } or name ~= "1f1b" and { "1f1b" } or {}
      assert.same(expected, catalogue.baselines(name), name)
    end
    assert.same({}, catalogue.baselines "none")
  end)

  it("names frameworks as the vocabulary does", function()
    local known = {}
    for _, name in ipairs(vocabulary.by_name.framework.domain) do known[name] = true end
    for _, entry in ipairs(catalogue.entries) do
      for name in pairs(entry.since or {}) do assert.is_true(known[name], name) end
    end
  end)
end)
