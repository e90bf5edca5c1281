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

  it("are such without a hole and another key", function()
    for _, list in ipairs { {}, { 1 }, { 1, false, "x" } } do assert.is_true(lists.is_list(list)) end
    for _, other in ipairs { 5, "x", { 1, nil, 3 }, { 1, [3] = 3 }, { 1, x = 2 }, { [0] = 1, 2 }, { [1.5] = 1 } } do
      assert.is_false(lists.is_list(other))
    end
    assert.is_true(lists.is_named { a = 1, b = 2 })
    assert.is_false(lists.is_named { a = 1, 2 })
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
