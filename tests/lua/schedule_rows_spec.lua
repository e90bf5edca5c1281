-- SPDX-License-Identifier: Apache-2.0
-- A schedule is a row of engine/core/schedule_kinds.h: one that lacks something does not compile.

local source = os.getenv("PIPEPLAN_SOURCE") or "."
local compiler = os.getenv("CC") or "cc"

-- Does what is made of the rows compile with this text of the header?
local function compiles(text)
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir -p " .. folder .. "/core"))
  local file = assert(io.open(folder .. "/core/schedule_kinds.h", "w"))
  file:write(text)
  file:close()
  local fine = true
  for _, unit in ipairs { "schedule_request.c", "schedule.c", "bubble.c" } do
    fine = fine and os.execute(string.format("%s -std=c11 -fsyntax-only -I%s -I%s/engine %s/engine/core/%s 2>%s/log", compiler, folder,
                                             source, source, unit, folder)) == true
  end
  os.execute("rm -r " .. folder)
  return fine
end

describe("the rows of schedules", function()
  local file = assert(io.open(source .. "/engine/core/schedule_kinds.h"))
  local header = file:read "a"
  file:close()
  local row = header:match("\n(  X%(ZB_V,.-%b\"\".-%))%s*\\\n")

  -- The header with another text in the place of ZB-V's row.
  local function with(other)
    local from, to = header:find(row, 1, true)
    return header:sub(1, from - 1) .. other .. header:sub(to + 1)
  end

  it("compile as they are, and with one more", function()
    assert.is_true(compiles(header))
    assert.is_true(compiles(with(row .. (row:gsub("ZB_V", "ZB_W"):gsub('"zb_v"', '"zb_w"'):gsub("\\", "")):gsub("\n", " "))))
  end)

  it("do not compile with a column missing", function()
    local columns = {}
    for column in row:match("X%((.*)%)"):gsub("\\", ""):gmatch("[^,]+") do columns[#columns + 1] = column:match("^%s*(.-)%s*$") end
    assert.equal(14, #columns)
    for missing = 1, #columns do
      local kept = { table.unpack(columns) }
      table.remove(kept, missing)
      assert.is_false(compiles(with("  X(" .. table.concat(kept, ", ") .. ")")), "without " .. columns[missing])
    end
  end)

  it("do not compile with a constructor or a closed form that is not there", function()
    assert.is_false(compiles(with((row:gsub(", v, zb_v%)", ", w, zb_v)")))))
    assert.is_false(compiles(with((row:gsub(", v, zb_v%)", ", v, zb_w)")))))
  end)
end)
