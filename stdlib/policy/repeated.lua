-- SPDX-License-Identifier: Apache-2.0
--[[
repeated.lua: names that stand twice in one table of a policy file: { gpus = over(8), gpus = under(64) }. Lua keeps the last and says
nothing, so the text is read for them.

  repeated.of(text) → { { name, line }, … }
]]

local lua_text = require "pipeplan.base.lua_text"

local repeated = {}

local opens = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }

function repeated.of(text)
  local code, list, line = lua_text.code_only(text), {}, 1
  local stack = {}                -- tables, calls and blocks that are open: of a table the names that stand in it
  local at, fresh = 1, false      -- fresh: here a table's next field begins
  while at <= #code do
    local start, stop, token = code:find("^([%a_][%w_]*)", at)
    local inside = stack[#stack]
    if start then
      if opens[token] then stack[#stack + 1] = { block = true }
      elseif (token == "end" or token == "until") and inside and inside.block then stack[#stack] = nil
      elseif fresh and inside and inside.names and code:find("^%s*=[^=]", stop + 1) then
        if inside.names[token] then list[#list + 1] = { name = token, line = line } end
        inside.names[token] = true
      end
      fresh, at = false, stop + 1
    else
      local byte = code:sub(at, at)
      if byte == "\n" then line = line + 1
      elseif byte == "{" then stack[#stack + 1], fresh = { names = {} }, true
      elseif byte == "(" or byte == "[" then stack[#stack + 1], fresh = {}, false
      elseif byte == "}" or byte == ")" or byte == "]" then stack[#stack], fresh = nil, false
      elseif byte == "," or byte == ";" then fresh = inside ~= nil and inside.names ~= nil
      elseif not byte:find "%s" then fresh = false end
      at = at + 1
    end
  end
  return list
end

return repeated
