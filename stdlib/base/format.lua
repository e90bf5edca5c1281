-- SPDX-License-Identifier: Apache-2.0
-- format.lua: quantities as people read them: GiB of memory, Gb/s of a network link, percent, GPU-hours, names of schedules.
-- Everything shown goes through here; nothing computed does.

local engine = require "engine"
local visible = require "pipeplan.base.visible"

local format = {}

-- Three significant digits, or more where the integer part has them: 3.14, 31.4, 314, 3142. No trailing zeros; an exponent only where there
-- would be more than 15 digits. At most six decimals, or as many as there are significant digits.
local function digits(number, significant)
  significant = significant or 3
  if number == 0 then return "0" end
  if math.abs(number) >= 1e15 then return string.format("%." .. significant .. "g", number) end
  local decimals = math.max(0, significant - 1 - math.floor(math.log(math.abs(number), 10)))
  local text = string.format("%." .. math.min(decimals, math.max(6, significant)) .. "f", number)
  if text:find(".", 1, true) then text = text:gsub("0+$", ""):gsub("%.$", "") end
  return text == "-0" and "0" or text
end
format.digits = digits

-- 2048 → "2,048". Fractions are rounded to the nearest integer.
function format.integer(number)
  local text = string.format("%.0f", math.abs(number))
  text = text:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^,", "")
  return (number < 0 and text ~= "0" and "-" or "") .. text
end

-- "1 layer", "2,048 layers".
function format.plural(number, word)
  return format.integer(number) .. " " .. word .. (number == 1 and "" or "s")
end

-- Where something stands: "FILE:LINE", or "FILE" where it has no line.
function format.place(entry)
  return entry.line > 0 and string.format("%s:%d", entry.file, entry.line) or entry.file
end

-- The first unit whose size the number reaches (units from large to small), after rounding: 999.96 million is "1 B", not "1000 M".
local function scaled(number, units, significant)
  for _, unit in ipairs(units) do
    if math.abs(number) >= unit[1] * 0.9995 then return digits(number / unit[1], significant), unit[2] end
  end
  local last = units[#units]
  return digits(number / last[1], significant), last[2]
end

local counts = { { 1e12, " T" }, { 1e9, " B" }, { 1e6, " M" }, { 1e3, " k" }, { 1, "" } }

-- Parameters, tokens, GPU-hours: 671026419200 → "671 B", 14.8e12 → "14.8 T".
function format.count(number, significant)
  if math.abs(number) < 10000 and number == math.floor(number) then return format.integer(number) end
  local text, unit = scaled(number, counts, significant)
  return text .. unit
end

local sizes = { { 2 ^ 40, " TiB" }, { 2 ^ 30, " GiB" }, { 2 ^ 20, " MiB" }, { 2 ^ 10, " KiB" }, { 1, " B" } }

-- Memory: always binary units.
function format.bytes(number, significant)
  local text, unit = scaled(number, sizes, significant)
  return text .. unit
end

-- Memory in a table of GiB: one decimal, no unit.
function format.gib(number)
  return string.format("%.1f", number / 2 ^ 30)
end

-- Link speed of one direction: networks are sold in bits, scale-up links in bytes. 50e9 → "400 Gb/s", 450e9 → "450 GB/s".
function format.rate(number, significant)
  if number >= 101e9 then return digits(number / 1e9, significant) .. " GB/s" end
  local text, unit = scaled(number * 8, { { 1e9, " Gb/s" }, { 1e6, " Mb/s" }, { 1e3, " kb/s" }, { 1, " b/s" } }, significant)
  return text .. unit
end

local times = { { 86400, " days" }, { 3600, " h" }, { 60, " min" }, { 1, " s" }, { 1e-3, " ms" }, { 1e-6, " µs" } }

function format.seconds(number, significant)
  if number == 0 then return "0 s" end
  -- seconds stay seconds up to two minutes: step times are compared with each other
  if math.abs(number) >= 1 and math.abs(number) < 120 then return digits(number, significant) .. " s" end
  local text, unit = scaled(number, times, significant)
  return text .. unit
end

-- Milliseconds in a table: no unit.
function format.ms(number)
  local ms = number * 1e3
  return string.format(math.abs(ms) < 99.95 and "%.1f" or "%.0f", ms)
end

-- 3/35 → "8.57 %".
function format.percent(fraction, significant)
  return digits(fraction * 100, significant) .. " %"
end

-- 250 of 251 → "99.6 %". What is not all is not said to be: 9,999 of 10,000 are 99.9 %.
function format.share(part, all)
  local percent = 100 * part / all
  return string.format("%.1f %%", part < all and math.min(percent, 99.9) or percent)
end

local schedule_names = { none = "no pipeline", zero_bubble = "Zero Bubble" }  -- beside the kinds there are
for _, kind in ipairs(engine.schedule.kinds) do schedule_names[kind] = engine.schedule.traits(kind).title end

-- A schedule or family as its paper writes it; a name that is not known as it is.
function format.schedule(name)
  return schedule_names[name] or tostring(name)
end

local by_unit = {
  ["byte"] = format.bytes,
  ["byte/s"] = format.rate,
  ["second"] = format.seconds,
  ["fraction"] = format.percent,
  ["token"] = format.count,
}

-- A value of the vocabulary, or of a parameter, in its display unit: `unit` as stdlib/vocabulary.lua names it, or nil. significant: digits,
-- default 3.
function format.quantity(value, unit, significant)
  local kind = type(value)
  if kind == "number" then
    if by_unit[unit] then return by_unit[unit](value, significant) end
    if value ~= math.floor(value) then return digits(value, significant) end
    return not significant and math.abs(value) >= 1e7 and format.count(value) or format.integer(value)
  elseif kind == "table" then
    local parts = {}
    for i, entry in ipairs(value) do parts[i] = format.quantity(entry, unit) end
    return table.concat(parts, ", ")
  elseif kind == "string" then
    return format.schedule(value)
  end
  return tostring(value)
end

-- What a number may be: "1 to 1024", "at least 0"; nil where it may be anything. Counts are exact, for that is what a spec has to keep to.
function format.range(low, high, unit)
  local function show(limit)
    if unit == "byte" or unit == "byte/s" then return by_unit[unit](limit) end
    return string.format("%.15g", limit)
  end
  if low and high then return show(low) .. " to " .. show(high) end
  return low and "at least " .. show(low) or nil
end

-- ---------------------------------------------------------------------------------------------------------------- text of a page

-- Columns of a terminal that a text takes, as it is shown.
function format.width(text)
  return engine.text.width(visible.line(text))
end

-- Pads to `width` on the right (left = true: on the left); what is longer stays.
function format.pad(text, width, left)
  text = visible.line(text)
  local space = string.rep(" ", math.max(0, width - engine.text.width(text)))
  return left and space .. text or text .. space
end

-- Cuts to `width`, with "…" where something was lost.
function format.cut(text, width)
  text = visible.line(text)
  if engine.text.width(text) <= width then return text end
  return text:sub(1, engine.text.fit(text, width - 1)) .. "…"
end

local units = {}
for unit in ("T B M k TiB GiB MiB KiB GB/s Gb/s Mb/s kb/s days h min s ms µs %"):gmatch("%S+") do units[unit] = true end

-- Words of `text` as lines of at most `width`; the first begins with `first`, the others with `rest` (default: as many spaces).
-- A number and its unit stay together. A word longer than a line is cut into pieces, for nothing may stick out of the page.
function format.wrap(text, width, first, rest)
  first = first or ""
  rest = rest or string.rep(" ", format.width(first))
  local lines, line, bare = {}, { first }, true  -- a line: its words, joined when it is full
  local used = format.width(first)
  text = visible.line(text):gsub("(%d) ([%a%%µ][%a/]*)", function(digit, word) return units[word] and digit .. "\0" .. word end)
  for word in text:gmatch("[^ ]+") do
    word = word:gsub("\0", " ")
    local at, wanted = 0, format.width(word)   -- bytes of it that stand on earlier lines, columns of the rest
    while true do
      local room = width - used - (bare and 0 or 1)
      if wanted <= room then
        if not bare then line[#line + 1] = " " end
        line[#line + 1] = word:sub(at + 1)
        used = used + wanted + (bare and 0 or 1)
        bare = false
        break
      elseif not bare then
        lines[#lines + 1] = table.concat(line)
        line, bare = { rest }, true
        used = format.width(rest)
      else
        local taken = engine.text.fit(word, room, at)
        if taken == 0 then taken = engine.text.fit(word, 2, at) end  -- a wide character in a single column
        local piece = word:sub(at + 1, at + taken)
        lines[#lines + 1] = table.concat(line) .. piece
        line, at, wanted = { rest }, at + taken, wanted - format.width(piece)
        used = format.width(rest)
      end
    end
  end
  if not bare or #lines == 0 then lines[#lines + 1] = table.concat(line) end
  return lines
end

-- Lines as a text to print: what each holds is shown on one line, whatever it is.
function format.page(lines)
  local shown = {}
  for i, line in ipairs(lines) do shown[i] = visible.line(line) end
  return table.concat(shown, "\n") .. "\n"
end

return format
