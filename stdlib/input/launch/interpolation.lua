-- SPDX-License-Identifier: Apache-2.0
-- interpolation.lua: ${…} in values of YAML: OmegaConf's (${a.b}, ${.b}, ${oc.env:X,default}, NeMo's ${multiply:a,b}) and those of the
-- environment (${X}, ${X:default}, as Primus and Megatron's test files have them). What cannot be told stays as it was written.
--
-- interpolation.new{ lookup = function(path, relative to: map) → node or nil, environment = are plain names variables? , variables } →
--   resolve(node, map) → { text, unknown = { name, … } or nil, rests = { name → true } or nil, line, null: is it YAML's null? }

local text_of = require "pipeplan.base.text"
local tree = require "pipeplan.input.launch.yaml_tree"

local interpolation = {}

local MOST_LEVELS, MOST_BYTES, MOST_STEPS = 16, 65536, 1000   -- of one value

local arithmetic = {
  multiply = function(a, b) return a * b end,
  divide = function(a, b) return b ~= 0 and a / b or nil end,
  divide_ceil = function(a, b) return b ~= 0 and math.ceil(a / b) or nil end,
  divide_floor = function(a, b) return b ~= 0 and math.floor(a / b) or nil end,
  add = function(a, b) return a + b end,
}

-- The end of the ${ that begins at `from`; nil: it is never closed.
local function closing(text, from)
  local depth = 0
  for at in text:gmatch("()[{}]", from) do
    if text:sub(at, at) == "{" then depth = depth + 1
    else
      depth = depth - 1
      if depth == 0 then return at end
    end
  end
end

local function split(text)
  local parts, depth, from = {}, 0, 1
  for at, c in text:gmatch "()([{},])" do
    if c == "{" then depth = depth + 1 elseif c == "}" then depth = depth - 1
    elseif depth == 0 then
      parts[#parts + 1] = text_of.trimmed(text:sub(from, at - 1))
      from = at + 1
    end
  end
  parts[#parts + 1] = text_of.trimmed(text:sub(from))
  return parts
end

local function shown(number)
  return math.tointeger(number) and string.format("%d", math.tointeger(number)) or string.format("%.14g", number)
end

function interpolation.new(options)
  local resolve_text
  local steps = 0

  local function unknown(name) return { text = "${" .. name .. "}", unknown = { name } } end

  local function of_environment(name, default, level, map)
    local given = options.variables and options.variables[name]
    if given then return { text = given } end
    if default == nil then return unknown(name) end
    local out = resolve_text(default, map, level)
    out.rests = out.rests or {}
    out.rests[name] = true
    return out
  end

  -- What one ${…} stands for.
  local function one(inner, map, level)
    local call, rest = inner:match "^([%w_.]+):(.*)$"
    if call == "oc.env" then
      local parts = split(rest)
      return of_environment(parts[1], parts[2], level, map)
    elseif call and arithmetic[call] then
      local parts, result = split(rest), nil
      for i, part in ipairs(parts) do
        local value = resolve_text(part, map, level)
        local number = not value.unknown and tonumber(value.text)
        if not number then return value.unknown and value or unknown(inner) end
        if i == 1 then result = number else result = result and arithmetic[call](result, number) end
      end
      return result and { text = shown(result) } or unknown(inner)
    elseif options.environment and (call or inner:find "^[%a_][%w_]*$") then
      return of_environment(call or inner, call and rest or nil, level, map)
    elseif call or not inner:find "^%.*[%w_]+[%w_.%[%]]*$" then return unknown(call or inner) end
    local node, at = options.lookup(inner, map)
    if not node or node.kind ~= "scalar" then return unknown(inner) end
    local out = resolve_text(node.text, at or map, level)
    out.null = node.plain and (node.text == "null" or node.text == "~" or node.text == "") or nil
    return out
  end

  function resolve_text(text, map, level)
    if not text:find("${", 1, true) then return { text = text } end
    steps = steps + 1
    if level >= MOST_LEVELS or steps > MOST_STEPS then return unknown(text:sub(1, 60)) end
    local parts, out, at, size = {}, {}, 1, 0
    while true do
      local from = text:find("${", at, true)
      parts[#parts + 1] = text:sub(at, (from or 0) - 1)
      if not from then break end
      local stop = closing(text, from + 1)
      if not stop then
        out.unknown = { text:sub(from, from + 40) }
        break
      end
      local value = one(text:sub(from + 2, stop - 1), map, level + 1)
      parts[#parts + 1] = value.text
      size = size + #value.text
      if size > MOST_BYTES then return unknown(text:sub(1, 60)) end
      for _, name in ipairs(value.unknown or {}) do
        out.unknown = out.unknown or {}
        if #out.unknown < 16 then out.unknown[#out.unknown + 1] = name end
      end
      for name in pairs(value.rests or {}) do
        out.rests = out.rests or {}
        out.rests[name] = true
      end
      out.null = value.null
      at = stop + 1
    end
    out.text = table.concat(parts)
    out.null = out.null and out.text == "null" or nil
    return out
  end

  return function(node, map)
    steps = 0
    local out = resolve_text(node.text, map, 0)
    out.line = node.line
    out.plain = node.plain
    if node.plain and (node.text == "null" or node.text == "~" or node.text == "" or node.text == "Null" or node.text == "NULL") then
      out.null = true
    end
    return out
  end
end

-- A lookup in one tree: "a.b.c" from the root, ".b" from the map.
function interpolation.lookup_in(roots)
  return function(path, map)
    local dots, rest = path:match "^(%.*)(.*)$"
    local starts = #dots == 1 and map and { map } or #dots == 0 and roots or {}
    for _, root in ipairs(starts) do
      local node, holder = root, root
      for name in rest:gmatch "[^.]+" do
        holder = node
        node = tree.at(node, name)
        if not node then break end
      end
      if node then return node, holder end
    end
  end
end

return interpolation
