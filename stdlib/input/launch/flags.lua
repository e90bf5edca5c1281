-- SPDX-License-Identifier: Apache-2.0
-- flags.lua: what argparse takes behind each flag of Megatron-LM (catalog/megatron_flags.lua), looked up by name.

local catalogue = require "pipeplan.catalog.megatron_flags"

local flags = {}

local by_name, by_destination, all = nil, nil, nil

local function words(text)
  return text:gmatch "%S+"
end

local function load()
  by_name, by_destination, all = {}, {}, {}
  for _, kind in ipairs { "flags", "integers", "numbers", "strings", "lists" } do
    for name in words(catalogue[kind]) do by_name[name] = { name = name, kind = kind } end
  end
  for entry in words(catalogue.choices) do
    local name, choices = entry:match "^(.-)=(.*)$"
    local values = {}
    for value in choices:gmatch "[^|]+" do values[#values + 1] = value end
    by_name[name] = { name = name, kind = "choices", values = values }
  end
  for name in words(catalogue.elsewhere) do by_name[name] = by_name[name] or { name = name, kind = "elsewhere" } end
  for name, entry in pairs(by_name) do
    if entry.kind ~= "elsewhere" then
      by_destination[name:gsub("%-", "_")] = entry
      all[#all + 1] = name
    end
  end
  for entry in words(catalogue.destinations) do
    local name, destination = entry:match "^(.-)=(.*)$"
    by_destination[destination] = by_name[name]
    by_name[name].destination = destination
  end
  table.sort(all)
end

-- { name, kind: flags (nothing behind them), integers, numbers, strings, lists, choices, elsewhere (of other programs), values } of
-- "--flag".
function flags.find(flag)
  if not by_name then load() end
  return by_name[flag:match "^%-%-(.+)$" or ""]
end

-- The same by the name of the resolved value, as a log and other programs have it: tensor_model_parallel_size.
function flags.of_destination(name)
  if not by_name then load() end
  return by_destination[name]
end

-- Names of all flags of the trainers, sorted, without dashes.
function flags.names()
  if not by_name then load() end
  return all
end

return flags
