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
local one = { 0, 1 }

-- prefix → scale, of those decimal prefixes, and of the binary ones where they are wanted.
local function prefixes_of(decimal, with_binary)
  local scales = {}
  for prefix in decimal:gmatch "." do scales[prefix] = { powers[prefix], 1 } end
  for prefix, power in pairs(with_binary and binary or {}) do scales[prefix] = { 0, 2 ^ power } end
  return scales
end

local of_counts, of_bytes, of_bits, of_flops = prefixes_of("kKMGBTPE", true), prefixes_of("kKMGTP", true), prefixes_of "kKMGTP",
                                               prefixes_of "GTPE"
of_counts[""], of_bytes[""], of_bits[""] = one, one, one   -- "FLOP/s" alone is no unit that a GPU is measured in

-- Suffixes: each of the words behind each of the prefixes, times a factor.
local function forms(prefixes, words, factor) return { prefixes = prefixes, words = words, factor = factor or 1 } end

local function counts(...) return { forms(of_counts, { "", ... }) } end

-- Suffixes that are what they are.
local function words(scales) return { forms(scales, { "" }) } end

local bare = forms({ [""] = one }, { "" })

-- Per unit: the suffixes, what is expected in words, and an example.
local kinds = {
  ["1"]      = { counts(), "a number", '"671B"' },
  gpu        = { counts("gpu", "gpus", "GPU", "GPUs"), "a number of GPUs", "2048" },
  rank       = { counts("rank", "ranks"), "a number of ranks", "16" },
  token      = { counts("token", "tokens"), "a number of tokens", '"14.8T"' },
  sequence   = { counts("sequence", "sequences"), "a number of sequences", "15360" },
  step       = { counts("step", "steps"), "a number of steps", "1000" },
  byte       = { { forms(of_bytes, { "B" }), bare }, "bytes", '"80GiB"' },
  ["byte/s"] = { { forms(of_bytes, { "B/s", "Bps" }), forms(of_bits, { "bps", "b/s", "bit/s" }, 1 / 8), bare },
                 "a link speed", '"400Gbps" or "160GB/s"' },
  ["flop/s"] = { { bare, forms(of_flops, { "", "FLOPS", "FLOP/s", "FLOPs", "Flops" }) }, "floating-point operations per second",
                 '"989T"' },
  second     = { words { [""] = one, s = one, ms = { -3, 1 }, us = { -6, 1 }, ["µs"] = { -6, 1 }, ns = { -9, 1 }, min = { 0, 60 },
                         h = { 0, 3600 }, d = { 0, 86400 } }, "a time", '"10us"' },
  fraction   = { words { [""] = one, ["%"] = { -2, 1 } }, "a fraction", '"8%" or 0.08' },
}

-- The scale of a suffix, or nil.
local function scale_of(unit, suffix)
  for _, form in ipairs(kinds[unit][1]) do
    for _, word in ipairs(form.words) do
      local length = #suffix - #word
      local prefix = length >= 0 and suffix:sub(length + 1) == word and form.prefixes[suffix:sub(1, length)]
      if prefix then return { prefix[1], prefix[2] * form.factor } end
    end
  end
end

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
    if name ~= unit and suffix ~= "" and scale_of(name, suffix) then return ": that is " .. kinds[name][2] end
  end
  return ""
end

-- ', got "…"', with what would disturb a terminal taken out.
local function got(text)
  return string.format(', got "%s"', (text:gsub("%c", "?")))
end

local BEYOND = 10000   -- no number has that many powers of ten; an exponent may have more digits than an integer

-- parse(value, unit [, { negative = true }]) → number | nil, message. `value` is a string, or a number that is already in the unit.
function units.parse(value, unit, options)
  if not kinds[unit] then error("units.parse: no unit '" .. tostring(unit) .. "'", 2) end
  local function expected() return "expected " .. units.expected(unit) end
  local number
  if type(value) == "number" then
    if value ~= value or value == math.huge or value == -math.huge then return nil, expected() .. ", got " .. tostring(value) end
    number = whole(value)
  elseif type(value) == "string" then
    local sign, digits, exponent, suffix = value:match("^%s*([-+]?)(%d+%.?%d*)([eE]?[-+]?%d*)%s*(.*)$")
    suffix = suffix and text_of.without_end(suffix)
    if not digits then return nil, expected() .. got(value) end
    if exponent ~= "" and not exponent:match("^[eE][-+]?%d+$") then  -- "5E" is five exa, not an exponent
      if not exponent:match("^[eE]$") then return nil, expected() .. got(value) end
      exponent, suffix = "", exponent .. suffix
    end
    local scale = scale_of(unit, (suffix:gsub("%s", "")))  -- "2T tokens"
    if not scale then
      return nil, expected() .. got(value) .. other_meaning(suffix, unit)
    end
    local power = math.max(-BEYOND, math.min(BEYOND, tonumber(exponent:sub(2)) or 0)) + scale[1]
    number = tonumber(string.format("%s%se%d", sign, digits, power)) * scale[2]
    if number ~= number or math.abs(number) == math.huge then return nil, expected() .. got(value) end
    number = whole(number)
  else
    return nil, expected() .. ", got a " .. type(value)
  end
  if number < 0 and not (options and options.negative) then
    return nil, expected() .. string.format(", got %s: less than nothing", tostring(value))
  end
  return number
end

-- A value in the unit that people read it in ("80 GiB", "400 Gb/s", "14.8 T", "8.57 %").
function units.format(value, unit)
  return format.quantity(value, unit)
end

local MOST_DIGITS = 17   -- tell any double from every other (IEEE 754)

-- The same with as many digits as it takes to read that value again: one that is rounded may be on the other side of a limit.
function units.exact(value, unit)
  if type(value) ~= "number" then return format.quantity(value, unit) end
  for significant = 3, MOST_DIGITS do
    local text = format.quantity(value, unit, significant)
    if units.parse((text:gsub("[ ,]", "")), unit or "1", { negative = true }) == value then return text end
  end
  return format.quantity(value, unit)
end

-- A value as a spec would write it: with a unit where a bare number says too little ("400 Gb/s", "989T"), else as it is.
function units.written(value, unit)
  if unit == "flop/s" then return string.format("%.15gT", value / 1e12) end
  if unit == "byte" or unit == "byte/s" then return units.format(value, unit) end
  return value
end

return units
