-- SPDX-License-Identifier: Apache-2.0
-- Days by the calendar and by UTC.

require "pipeplan"
local dates = require "pipeplan.base.dates"

describe("dates.days", function()
  -- Expected: `date -u -d DAY +%s` of GNU coreutils, divided by 86400.
  it("counts the days from the first of January 1970", function()
    local known = {
      ["1970-01-01"] = 0, ["1969-12-31"] = -1, ["1970-03-01"] = 59, ["2000-02-29"] = 11016, ["2000-03-01"] = 11017, ["2024-12-31"] = 20088,
      ["2026-11-28"] = 20785, ["2027-06-30"] = 20999, ["2038-01-19"] = 24855, ["2100-03-01"] = 47541, ["9999-12-31"] = 2932896,
      ["0001-01-01"] = -719162,
    }
    for day, expected in pairs(known) do assert.equal(expected, dates.days(day), day) end
  end)

  -- Four centuries have 97 leap days (a year that divides by 4, not by 100, or by 400): 400 * 365 + 97 days.
  it("counts every day of four centuries once", function()
    local expected, checked = dates.days "1900-01-01", 0
    for year = 1900, 2299 do
      for month = 1, 12 do
        for day = 1, 31 do
          local text = string.format("%04d-%02d-%02d", year, month, day)
          if dates.check(text) then
            assert(dates.days(text) == expected, text)
            expected, checked = expected + 1, checked + 1
          end
        end
      end
    end
    assert.equal(146097, checked)
  end)
end)

describe("dates.check", function()
  it("lets days of the calendar through", function()
    for _, day in ipairs { "2028-02-29", "2000-02-29", "2027-12-31", "2027-01-01", "0000-02-29" } do assert.equal(day, dates.check(day)) end
  end)

  it("says that there is no such day", function()
    for _, day in ipairs { "2027-02-29", "1900-02-29", "2100-02-29", "2027-04-31", "2027-13-01", "2027-00-10", "2027-01-00", "2027-01-32" } do
      assert.same({ nil, "there is no day " .. day }, { dates.check(day) })
    end
  end)

  it("says what a date looks like", function()
    for _, value in ipairs { "2027-6-30", "2027-06-30 ", "2027-06-30T00:00Z", "soon", "", "\n2027-06-30", 20270630, 2027, true, {} } do
      assert.same({ nil, 'a date such as "2027-06-30" is expected' }, { dates.check(value) })
    end
  end)
end)

it("nothing but dates.lua asks the machine for a date", function()
  local source, read = os.getenv "PIPEPLAN_SOURCE" or ".", 0
  local list = assert(io.popen(string.format("cd '%s' && find stdlib policies engine -name '*.lua' -o -name '*.[ch]'", source)))
  for path in list:lines() do
    local file = assert(io.open(source .. "/" .. path, "rb"))
    local text = file:read "a"
    file:close()
    read = read + 1
    for _, call in ipairs { "os%.date", "os%.time%s*[{\"']", "os%.time%s*%(%s*[^%s%)]", "[^%w_]mktime", "[^%w_]localtime", "[^%w_]gmtime", "strftime" } do
      assert(path == "stdlib/base/dates.lua" or not text:find(call), path .. " has " .. call)
    end
  end
  list:close()
  assert.is_true(read > 200)
end)
