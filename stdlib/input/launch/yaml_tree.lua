-- SPDX-License-Identifier: Apache-2.0
-- yaml_tree.lua: YAML → a tree in which every value knows its line. From libyaml's events (Debian: lua-yaml), never from lyaml's tables:
-- those have no lines, take the last of two equal keys without a word, and copy what an alias names as often as it is named.
--
-- A node is one of, an alias the node that it names and not a copy of it:
--   { kind = "map", line, entries = { { name, line, value: node }, … }, by = { name → its last entry } }
--   { kind = "list", line, items = { node, … } }
--   { kind = "scalar", line, text, plain: without quotes }

local engine = require "engine"
local failure = require "pipeplan.base.failure"

local tree = {}

local MOST_LEVELS, MOST_NODES = 64, 200000

local library

-- libyaml's binding, from the directories of the system's Lua and from no others.
local function yaml()
  if library == nil then
    local _, directories = engine.host.system_path()
    local path = package.searchpath("yaml", directories)
    local open = path and package.loadlib(path, "luaopen_yaml")
    library = open and open() or false
  end
  if not library then failure.usage("YAML is read with lyaml, and lyaml is not installed (Debian: apt install lua-yaml)") end
  return library
end

-- "did not find expected ',' or ']' at document: 1, line: 2, column: 2\nwhile …" → its line and words.
local function told(problem)
  local text, line = tostring(problem):match "^(.-) at document: %d+, line: (%d+)"
  return text or tostring(problem):match "^[^\n]*", line or "1"
end

-- Adds what << names, where the map does not have it; count(n) limits how much that is.
local function merge(map, from, count)
  for _, source in ipairs(from.kind == "list" and from.items or { from }) do
    count(source.kind == "map" and #source.entries or 0)
    for _, entry in ipairs(source.kind == "map" and source.entries or {}) do
      if not map.by[entry.name] then
        map.entries[#map.entries + 1] = entry
        map.by[entry.name] = entry
      end
    end
  end
end

-- tree.read(text, file) → the root node of its first document (nil: it is empty), and keys that a map has twice: { { name, line, first,
-- same: have they the same value? } }.
function tree.read(text, file)
  local good, next_event = pcall(yaml().parser, text)
  if not good then failure.usage("%s:%s: no YAML: %s", file, select(2, told(next_event)), told(next_event)) end
  local root, stack, anchors, duplicates, nodes, documents = nil, {}, {}, {}, 0, 0

  local function place(node)
    nodes = nodes + 1
    if nodes > MOST_NODES then
      failure.usage("%s:%d: more than %d values: no launch configuration is so large", file, node.line, MOST_NODES)
    end
    local parent = stack[#stack]
    if not parent then root = root or node
    elseif parent.kind == "list" then parent.items[#parent.items + 1] = node
    elseif not parent.key then
      if node.kind ~= "scalar" then failure.usage("%s:%d: a key that is a list or a map", file, node.line) end
      parent.key = node
    else
      local name, key = parent.key.text, parent.key
      parent.key = nil
      if name == "<<" and key.plain then
        parent.merged = parent.merged or {}
        parent.merged[#parent.merged + 1] = node
        return
      end
      local entry = { name = name, line = key.line, value = node }
      local before = parent.by[name]
      if before then
        local same = node.kind == "scalar" and before.value.kind == "scalar" and node.text == before.value.text
        duplicates[#duplicates + 1] = { name = name, line = key.line, first = before.line, same = same }
      end
      parent.entries[#parent.entries + 1] = entry
      parent.by[name] = entry
    end
  end

  while true do
    local fine, event = pcall(next_event)
    if not fine then
      if failure.of(event) then error(event, 0) end
      failure.usage("%s:%s: no YAML: %s", file, select(2, told(event)), told(event))
    end
    if not event or event.type == "STREAM_END" then break end
    local line = event.start_mark.line + 1
    if event.type == "DOCUMENT_START" then
      documents = documents + 1
      if documents > 1 then break end
    elseif event.type == "SCALAR" then
      local node = { kind = "scalar", line = line, text = event.value, plain = event.style == "PLAIN" }
      if event.anchor then anchors[event.anchor] = node end
      place(node)
    elseif event.type == "ALIAS" then
      local node = anchors[event.anchor]
      if not node then failure.usage("%s:%d: *%s names nothing", file, line, event.anchor) end
      if node.open then failure.usage("%s:%d: *%s stands in what it names", file, line, event.anchor) end
      place(node)
    elseif event.type == "MAPPING_START" or event.type == "SEQUENCE_START" then
      local node = event.type == "MAPPING_START" and { kind = "map", line = line, entries = {}, by = {} }
                   or { kind = "list", line = line, items = {} }
      if event.anchor then anchors[event.anchor] = node end
      place(node)
      node.open = true
      stack[#stack + 1] = node
      if #stack > MOST_LEVELS then failure.usage("%s:%d: nested more than %d deep", file, line, MOST_LEVELS) end
    elseif event.type == "MAPPING_END" or event.type == "SEQUENCE_END" then
      local node = table.remove(stack)
      for _, from in ipairs(node.merged or {}) do
        merge(node, from, function(more)
          nodes = nodes + more
          if nodes > MOST_NODES then failure.usage("%s:%d: more than %d values by way of <<", file, node.line, MOST_NODES) end
        end)
      end
      node.open, node.merged = nil, nil
    end
  end
  return root, duplicates
end

-- The value at a path of names, or nil.
function tree.at(node, ...)
  for _, name in ipairs { ... } do
    local entry = node and node.kind == "map" and node.by[name]
    if not entry then return nil end
    node = entry.value
  end
  return node
end

return tree
