-- SPDX-License-Identifier: Apache-2.0
-- units.lua: quantities as people write them: "14.8T", "80GiB", "400Gbps", "128Ki", "8%". One parser for specs, options and policies.
--
-- The unit that is expected decides what may stand behind the number:
--   gpu rank token sequence step 1   k M B (billion) G T, or Ki Mi Gi Ti; the unit's own word may follow ("2T tokens")
--   byte       kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)
--   byte/s     the same with /s ("160GB/s"); bits of a network link as bps, b/s or bit/s ("400Gbps" is 50 GB/s)
--   flop/s     G T P E, FLOPS or FLOP/s may follow ("989T", "1.979 PFLOPS")
--   second     ns us ms s min h d
--   fraction   % or nothing ("8%" is 0.08)
-- A number without suffix is in the unit itself. Results are SI (bytes, bytes per second, seconds); integers where they are whole.

local format = require "pipeplan.base.format"
local text_of = require "pipeplan.base.text"

local units = {}

local powers = { k = 3, K = 3, M = 6, G = 9, B = 9, T = 12, P = 15, E = 18 }
local binary = { Ki = 10, Mi = 20, Gi = 30, Ti = 40, Pi = 50 }

-- A scale is { decimal power, factor }: the decimal power is applied to the digits, so that 14.8T is exactly 14800000000000.
local prefixes = { [""] = { 0, 1 } }
for prefix, power in pairs(powers) do prefixes[prefix] = { power, 1 } end
for prefix, power in pairs(binary) do prefixes[prefix] = { 0, 2 ^ power } end

local function counts(words)
  local scales = {}
  for prefix, scale in pairs(prefixes) do
    scales[prefix] = scale
    for _, word in ipairs(words) do scales[prefix .. word] = scale end
  end
  return scales
end

local function bytes(suffix, factor, bits)
  local scales = {}
  for _, unit in ipairs(suffix) do
    if not bits then
      for prefix, power in pairs(binary) do scales[prefix .. unit] = { 0, 2 ^ power * factor } end
    end
    for _, prefix in ipairs { "k", "K", "M", "G", "T", "P" } do scales[prefix .. unit] = { powers[prefix], factor } end
    scales[unit] = { 0, factor }
  end
  return scales
end

local function merged(a, b)
  for key, value in pairs(b) do a[key] = value end
  return a
end

local function flops()
  local scales = { [""] = { 0, 1 } }
  for _, prefix in ipairs { "G", "T", "P", "E" } do
    for _, word in ipairs { "", "FLOPS", "FLOP/s", "FLOPs", "Flops" } do scales[prefix .. word] = { powers[prefix], 1 } end
  end
  return scales
end

-- Per unit: the suffixes, what is expected in words, and an example.
local kinds = {
  ["1"]      = { counts {}, "a number", '"671B"' },
  gpu        = { counts { "gpu", "gpus", "GPU", "GPUs" }, "a number of GPUs", "2048" },
  rank       = { counts { "rank", "ranks" }, "a number of ranks", "16" },
  token      = { counts { "token", "tokens" }, "a number of tokens", '"14.8T"' },
  sequence   = { counts { "sequence", "sequences" }, "a number of sequences", "15360" },
  step       = { counts { "step", "steps" }, "a number of steps", "1000" },
  byte       = { merged(bytes({ "B" }, 1), { [""] = { 0, 1 } }), "bytes", '"80GiB"' },
  ["byte/s"] = { merged(merged(bytes({ "B/s", "Bps" }, 1), bytes({ "bps", "b/s", "bit/s" }, 1 / 8, true)), { [""] = { 0, 1 } }),
                 "a link speed", '"400Gbps" or "160GB/s"' },
  ["flop/s"] = { flops(), "floating-point operations per second", '"989T"' },
  second     = { { [""] = { 0, 1 }, s = { 0, 1 }, ms = { -3, 1 }, us = { -6, 1 }, ["µs"] = { -6, 1 }, ns = { -9, 1 }, min = { 0, 60 },
                   h = { 0, 3600 }, d = { 0, 86400 } }, "a time", '"10us"' },
  fraction   = { { [""] = { 0, 1 }, ["%"] = { -2, 1 } }, "a fraction", '"8%" or 0.08' },
}

-- What is counted in a unit is whole.
local whole_units = { gpu = true, rank = true, token = true, sequence = true, step = true }

function units.is_whole(unit) return whole_units[unit] == true end

-- The most that a quantity of a unit can be where nothing narrower is said: of a fraction 1, of others far over all that there is.
local most = { ["1"] = 1e18, gpu = 10000000, rank = 10000000, token = 1e18, sequence = 1e18, step = 1e9, byte = 1e18, ["byte/s"] = 1e18,
               ["flop/s"] = 1e24, second = 1e9, fraction = 1 }

-- The least and the most.
function units.range(unit) return 0, most[unit] end

-- What is said of a fraction over 1: a bare number where percent is meant is the commonest slip.
function units.over_fraction(value, number)
  local percent = type(value) == "number" and number <= 100 and string.format('; %.6g %% is "%.6g%%"', number, number) or ""
  return string.format("%s is %s%s; expected from 0 %% to 100 %%", tostring(value), units.format(number, "fraction"), percent)
end

-- Names of all units.
units.names = {}
for name in pairs(kinds) do units.names[#units.names + 1] = name end
table.sort(units.names)

-- 'a number of tokens such as "14.8T"'.
function units.expected(unit)
  return kinds[unit][2] .. " such as " .. kinds[unit][3]
end

local function whole(value)
  return math.abs(value) <= 2 ^ 53 and math.tointeger(value) or value
end

-- What the suffix would have been elsewhere, for a message: "GiB" where a link speed was wanted.
local function other_meaning(suffix, unit)
  if powers[suffix] or binary[suffix] then return ": " .. suffix .. " of what?" end
  for _, name in ipairs { "byte", "byte/s", "flop/s", "second", "fraction", "token", "gpu" } do
    if name ~= unit and suffix ~= "" and kinds[name][1][suffix] then return ": that is " .. kinds[name][2] end
  end
  return ""
end

-- ', got "…"', with what would disturb a terminal taken out.
local function got(text)
  return string.format(', got "%s"', (text:gsub("%c", "?")))
end

-- parse(value, unit [, { negative = true }]) → number | nil, message. `value` is a string, or a number that is already in the unit.
function units.parse(value, unit, options)
  local kind = kinds[unit] or error("units.parse: no unit '" .. tostring(unit) .. "'", 2)
  local expected = "expected " .. units.expected(unit)
  local number
  if type(value) == "number" then
    if value ~= value or value == math.huge or value == -math.huge then return nil, expected .. ", got " .. tostring(value) end
    number = whole(value)
  elseif type(value) == "string" then
    local sign, digits, exponent, suffix = value:match("^%s*([-+]?)(%d+%.?%d*)([eE]?[-+]?%d*)%s*(.*)$")
    suffix = suffix and text_of.without_end(suffix)
    if not digits then return nil, expected .. got(value) end
    if exponent ~= "" and not exponent:match("^[eE][-+]?%d+$") then  -- "5E" is five exa, not an exponent
      if not exponent:match("^[eE]$") then return nil, expected .. got(value) end
      exponent, suffix = "", exponent .. suffix
    end
    local scale = kind[1][(suffix:gsub("%s", ""))]  -- "2T tokens"
    if not scale then
      return nil, expected .. got(value) .. other_meaning(suffix, unit)
    end
    local power = (tonumber(exponent:sub(2)) or 0) + scale[1]
    number = tonumber(string.format("%s%se%d", sign, digits, power)) * scale[2]
    if number ~= number or math.abs(number) == math.huge then return nil, expected .. got(value) end
    number = whole(number)
  else
    return nil, expected .. ", got a " .. type(value)
  end
  if number < 0 and not (options and options.negative) then
    return nil, expected .. string.format(", got %s: less than nothing", tostring(value))
  end
  return number
end

-- A value in the unit that people read it in ("80 GiB", "400 Gb/s", "14.8 T", "8.57 %").
function units.format(value, unit)
  return format.quantity(value, unit)
end

-- A value as a spec would write it: with a unit where a bare number says too little ("400 Gb/s", "989T"), else as it is.
function units.written(value, unit)
  if unit == "flop/s" then return string.format("%.15gT", value / 1e12) end
  if unit == "byte" or unit == "byte/s" then return units.format(value, unit) end
  return value
end

return units
