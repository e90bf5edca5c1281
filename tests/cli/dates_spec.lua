-- SPDX-License-Identifier: Apache-2.0
-- A date is a day of UTC on every machine: the default of --date, and how long an override still holds.

require "pipeplan"
local files = require "policy_files"
local json = require "pipeplan.base.json"
local program = require "program"

teardown(files.remove)

-- AAA-14 is 14 hours before UTC, BBB12 is 12 hours behind it: at every moment one of them has another day than UTC. In Auckland the clocks go
-- forward on 2027-09-26 and back on 2027-04-04, in Los Angeles back on 2027-11-07: local days of 23 and 25 hours (the rules that the files
-- of the IANA tz database end with).
local auckland, los_angeles = "NZST-12NZDT,M9.5.0,M4.1.0/3", "PST8PDT,M3.2.0,M11.1.0"
local zones = { "UTC", "AAA-14", "BBB12", auckland, los_angeles }

local function utc_day()
  local handle = io.popen "date -u +%F"
  local day = handle:read "l"
  handle:close()
  return day
end

local function date_in(zone)
  local result = program.run("plan examples/specs/deepseek-v3.json --format json", nil, "TZ='" .. zone .. "'")
  assert.equal(0, result.status, result.stderr)
  return json.decode(result.stdout, "plan").policy.date
end

for _, zone in ipairs(zones) do
  it("the day that --date is by default is UTC's in the zone " .. zone, function()
    local before, date, after = utc_day(), date_in(zone), utc_day()
    assert.is_true(date == before or date == after, date .. " is not " .. before)
  end)
end

-- An override expires soon in 30 days or fewer.
for _, days in ipairs {
  { "2027-09-15", "2027-10-15", soon = true }, { "2027-09-15", "2027-10-16", soon = false },  -- 15 + 15 days; 15 + 16
  { "2027-03-20", "2027-04-19", soon = true }, { "2027-03-20", "2027-04-20", soon = false },  -- 11 + 19; 11 + 20
  { "2027-10-20", "2027-11-19", soon = true }, { "2027-10-20", "2027-11-20", soon = false },  -- 11 + 19; 11 + 20
} do
  it(string.format("from %s to %s are %s days in every zone", days[1], days[2], days.soon and "30" or "31"), function()
    local policy = files.write("site.lua", string.format('disable { id = "too_deep", reason = "r", expires = "%s" }', days[2]))
    for _, zone in ipairs(zones) do
      local result = program.run("policy check --no-witnesses --policy " .. policy .. " --date " .. days[1], nil, "TZ='" .. zone .. "'")
      assert.is_true(result.status == 0 or result.status == 1, result.stderr)
      assert.equal(days.soon, result.stdout:find("expires on " .. days[2], 1, true) ~= nil, zone .. "\n" .. result.stdout .. result.stderr)
    end
  end)
end
