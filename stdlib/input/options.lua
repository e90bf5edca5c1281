-- SPDX-License-Identifier: Apache-2.0
-- options.lua: every field of a spec as a command-line option, by the last component of its path: cluster.network.per_gpu is --per_gpu,
-- and --per-gpu too. Made from fields.lua; for lua-argparse.

local fields = require "pipeplan.input.fields"
local format = require "pipeplan.base.format"

local options = {}

-- In ASCII: argparse aligns by bytes.
local argument_names = { integer = "N", quantity = "QUANTITY", string = "NAME", choice = "NAME", kernel = "NAME|false", flag = "true|false",
                         kernels = "KERNEL,...", labels = "NAME=TEXT,...",
                         integers = "N,N,...", layout = "LAYOUT",
                         recompute = "MODULE,...", batch = "N|TOKEN:N,...", model = "FILE", path = "FILE",
                         paths = "FILE,..." }

-- Groups of the help, by the start of a field's path: the first that fits.
local groups = {
  { "^cluster%.network%.", "The network" }, { "^cluster%.", "The cluster" }, { "^training%.", "The training run" },
  { "^parallelism%.", "The layout (fixed where given, searched where not)" }, { "", "The model, and what runs it" },
}
local order = { 5, 2, 1, 3, 4 }

-- Of a list of arguments: name of each option, as a field is called → true.
local function named(list)
  local found = {}
  for _, argument in ipairs(list) do
    local name = argument:match "^%-%-([^=]+)"
    if name then found[name:gsub("-", "_")] = true end
  end
  return found
end

local function declare(parser, entry)
  local dashed = entry.name:gsub("_", "-")
  local range = format.range(entry.low, entry.high, entry.unit)
  local description = fields.meaning(entry) .. (entry.domain and ": " .. table.concat(entry.domain, ", ") or "")
    .. (range and "; " .. range or "")
  local option = parser:option("--" .. entry.name):description(description):argname(argument_names[entry.type])
    :target("field " .. entry.name)
  if entry.type == "paths" then option:count "*" end   -- each may be a list too
  if dashed ~= entry.name then option:hidden_name("--" .. dashed) end
  return option
end

-- Declares them on an argparse parser or command, in help groups of their own; with a list of arguments only those that it names.
function options.declare(parser, list)
  local declared, wanted = {}, list and named(list)
  for i = 1, #groups do declared[i] = {} end
  for _, entry in ipairs(fields.list) do
    local option = (not wanted or wanted[entry.name]) and declare(parser, entry)
    for i, group in ipairs(option and groups or {}) do
      if entry.path:find(group[1]) then
        table.insert(declared[i], option)
        break
      end
    end
  end
  for _, i in ipairs(order) do parser:group(groups[i][2], table.unpack(declared[i])) end
end

-- What was given, as spec.read takes it: { name = text }.
function options.given(parsed)
  local given = {}
  for _, entry in ipairs(fields.list) do
    local value = parsed["field " .. entry.name]
    if entry.type == "paths" and type(value) == "table" then value = #value > 0 and table.concat(value, ",") or nil end
    given[entry.name] = value
  end
  return given
end

return options
