-- SPDX-License-Identifier: Apache-2.0
-- names.lua: the table of names in docs/design.md, from stdlib/names.lua.

local between = require "generate.between"
local names = require "pipeplan.names"

local function quoted(list)
  local out = {}
  for i, name in ipairs(list) do out[i] = "`" .. name .. "`" end
  return #out > 0 and table.concat(out, " ") or "–"
end

-- The page with its table made anew, between the markers.
return function(page)
  local lines = { "| concept | spec | option | rule | plan |", "| --- | --- | --- | --- | --- |" }
  for _, entry in ipairs(names.concepts) do
    local inline = entry.spec and entry.spec:find "^model%."  -- has no options
    local option = entry.spec and not inline and "--" .. entry.spec:match "[^.]+$" or nil
    lines[#lines + 1] = string.format("| %s | %s | %s | %s | %s |", entry.concept, quoted { entry.spec }, quoted { option },
                                      quoted { entry.field }, quoted(entry.plan))
  end
  return between(page, "names", table.concat(lines, "\n"))
end
