-- SPDX-License-Identifier: Apache-2.0
-- found_cluster.lua: the field `cluster.inventory`: what its files say of gpus, gpus_per_node and accelerator, laid under what the spec
-- says. What contradicts it is an error that names both.

local accelerators = require "pipeplan.catalog.accelerators"
local failure = require "pipeplan.base.failure"
local fields = require "pipeplan.input.fields"
local files = require "pipeplan.input.files"
local inventory = require "pipeplan.input.inventory"
local json = require "pipeplan.base.json"

local found_cluster = {}

local function words(found)
  return found.one_node and found.title .. ": " .. found.per_node .. " GPUs"
    or string.format("%s: %d node%s of %d", found.title, found.nodes, found.nodes == 1 and "" or "s", found.per_node)
end

local function contradiction(at, value, found, has)
  failure.usage("%s: %s is %s, but %s has %s (%s)", at.origin, at.shown, fields.show(value), found.first, has, words(found))
end

-- Sets or checks one field. agrees(value): is what was said no contradiction?
local function lay(given, path, value, found, agrees, has)
  local at = given[path]
  if at then
    local said = fields.check(fields.by_path[path], at.value)   -- nil: check_all says what is wrong with it
    if said ~= nil and said ~= "minimum" and not agrees(said) then contradiction(at, said, found, has) end
  else
    given[path] = { value = value, origin = found.file, shown = path, base = "", found = found.first .. ": " .. words(found) }
  end
end

local function lay_card(given, found)
  local entry, near, key = inventory.card(found.kind)
  if not entry then
    failure.usage("%s: %s is no accelerator of the catalogue%s (pipeplan facts accelerators; or memory_per_gpu and flops)", found.first,
                  found.kind:sub(1, 60):gsub("%c", "?"), near and "; nearest: " .. near or "")
  end
  lay(given, "cluster.accelerator", entry.name, found, function(said)
    local other = accelerators.find(said)
    return not other or other == entry or other.name:lower():sub(1, #key) == key   -- Slurm's "a100" may be any of them
  end, found.kind)
  local at = given["cluster.accelerator"]
  if at and at.found and entry.name:lower() ~= key then
    at.found = at.found .. "; the file says " .. found.kind:sub(1, 60):gsub("%c", "?")
  end
end

-- given: path → { value, origin, shown, base }, before it is checked, the inventory among them.
function found_cluster.fill(given)
  local at = given["cluster.inventory"]
  local paths, problem = fields.check(fields.by_path["cluster.inventory"], at.value)
  if not paths then failure.usage("%s: %s is %s", at.origin, at.shown, problem) end
  local list = {}
  for i, path in ipairs(paths) do
    local file = files.readable { value = path, origin = at.origin, shown = at.shown, base = at.base }
    list[i] = inventory.read(json.text(file), file)
  end
  -- what counts nodes before what lists one
  table.sort(list, function(a, b)
    if (a.one_node or false) ~= (b.one_node or false) then return b.one_node or false end
    return a.file < b.file
  end)
  for _, found in ipairs(list) do
    local total = found.nodes * found.per_node
    if not found.one_node or not given["cluster.gpus"] then
      lay(given, "cluster.gpus", total, found, function(said)
        return said == total or not found.exact and said < total
      end, total .. " GPUs")
    end
    lay(given, "cluster.gpus_per_node", found.per_node, found, function(said) return said == found.per_node end,
        found.per_node .. " a node")
    if found.kind and not given["cluster.memory_per_gpu"] then lay_card(given, found) end
  end
end

-- What was filled, for the plan's assumptions.
function found_cluster.note(request, given)
  for _, path in ipairs { "cluster.gpus", "cluster.gpus_per_node", "cluster.accelerator" } do
    local at = given[path]
    if at and at.found then table.insert(request.assumptions, { field = path, value = at.value, why = at.found }) end
  end
end

return found_cluster
