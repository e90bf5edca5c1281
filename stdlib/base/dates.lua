-- SPDX-License-Identifier: Apache-2.0
-- dates.lua: days as text, "YYYY-MM-DD", of the proleptic Gregorian calendar (ISO 8601). A day is a day of UTC, whatever the time zone of
-- the machine: the same policy holds at the same moment everywhere. So no function here asks for local time, and nothing else in stdlib
-- asks for a date (os.time() alone is seconds, and has no zone).

local dates = {}

-- The day that it is now.
function dates.today()
  return (os.date "!%Y-%m-%d")
end

-- The second that it is now: "2027-06-30T12:00:00Z".
function dates.now()
  return (os.date "!%Y-%m-%dT%H:%M:%SZ")
end

-- Days from 1970-01-01, of a day that `check` lets through. Derived: years begin in March, so that a leap day is the last of its year; the
-- months from March on have 31 30 31 30 31, then the same again, so (153 m + 2) // 5 days lie before month m.
function dates.days(text)
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  year, month, day = math.tointeger(year), math.tointeger(month), math.tointeger(day)
  local march_year, march_month = month > 2 and year or year - 1, (month - 3) % 12
  local leap_days = march_year // 4 - march_year // 100 + march_year // 400
  return 365 * march_year + leap_days + (153 * march_month + 2) // 5 + day - 1 - 719468  -- 719468: from 0000-03-01 to 1970-01-01
end

local lengths = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 }

local function length(year, month)
  local leap = year % 4 == 0 and (year % 100 ~= 0 or year % 400 == 0)
  return month == 2 and leap and 29 or lengths[month]
end

-- → the text, or nil and why it is no day.
function dates.check(value)
  local text = type(value) == "string" and value or ""
  local year, month, day = text:match "^(%d%d%d%d)%-(%d%d)%-(%d%d)$"
  if not year then return nil, "a date such as \"2027-06-30\" is expected" end
  local days = lengths[tonumber(month)] and length(tonumber(year), tonumber(month))
  if not days or tonumber(day) < 1 or tonumber(day) > days then return nil, "there is no day " .. text end
  return text
end

return dates
