-- SPDX-License-Identifier: Apache-2.0
-- lookup.lua: what all catalogues have in common: entries with a name and aliases, found whatever their case.

local failure = require "pipeplan.base.failure"

-- Adds to a catalogue of { entries = list }: names (in the order of the entries) and find(name) → entry, or nil and the nearest names.
local function lookup(catalogue)
  local by_key, known = {}, {}
  catalogue.names = {}
  local function add(name, entry)
    local key = name:lower()
    assert(not by_key[key], name)
    by_key[key] = entry
    known[#known + 1] = name
  end
  for _, entry in ipairs(catalogue.entries) do
    catalogue.names[#catalogue.names + 1] = entry.name
    add(entry.name, entry)
    for _, alias in ipairs(entry.aliases or {}) do add(alias, entry) end
  end
  function catalogue.find(name)
    local entry = by_key[tostring(name):lower()]
    if entry then return entry end
    local near = failure.nearest(tostring(name), known)
    return nil, near and { near } or {}
  end
  return catalogue
end

return lookup
