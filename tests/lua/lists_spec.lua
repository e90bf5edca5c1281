-- SPDX-License-Identifier: Apache-2.0
-- What Lua's table library leaves out: stdlib/base/lists.lua.

require "pipeplan"
local lists = require "pipeplan.base.lists"

describe("lists", function()
  it("lay changes over a copy, and leave the table as it was", function()
    local map = { a = 1, b = 2 }
    assert.same({ a = 1, b = 3, c = 4 }, lists.with(map, { b = 3, c = 4 }))
    assert.same({ a = 1, b = 2 }, map)
    local copy = lists.with(map)
    copy.a = 5
    assert.equal(1, map.a)
  end)

  it("give what each entry has under a key", function()
    assert.same({ "x", "y" }, lists.column({ { id = "x" }, { id = "y", other = 1 } }, "id"))
    assert.same({}, lists.column({}, "id"))
  end)

  it("give the first of the largest, and nothing of nothing", function()
    local list = { { n = 1 }, { n = 3, first = true }, { n = 3 }, { n = 2 } }
    assert.equal(list[2], lists.largest(list, function(entry) return entry.n end))
    assert.is_nil(lists.largest({}, function(entry) return entry.n end))
  end)
end)
