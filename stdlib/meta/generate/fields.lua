-- SPDX-License-Identifier: Apache-2.0
-- fields.lua: the tables of a spec's fields in docs/spec.md, from stdlib/input/fields.lua: one for each object of a spec.

local between = require "generate.between"
local fields = require "pipeplan.input.fields"
local format = require "pipeplan.base.format"

local of_type = {
  batch = "whole number, or a ramp", flag = "true or false", integer = "whole number", integers = "list of whole numbers",
  kernel = "text, or false", kernels = "none, or a list", labels = "object of texts",
  layout = "text, or list of lists", model = "path, or object", path = "path",
  paths = "path, or list of paths", quantity = "number", recompute = "none, selective, full, or a list", string = "text",
}

-- Units that tell a reader something; counts of things are told by the meaning.
local shown = { byte = "bytes", ["byte/s"] = "bytes a second", ["flop/s"] = "FLOP a second", fraction = "0 to 1", token = "tokens" }

local function value_of(entry)
  if entry.type == "choice" then
    local names = {}
    for i, name in ipairs(entry.domain) do names[i] = "`" .. name .. "`" end
    return table.concat(names, " ")
  end
  local text = of_type[entry.type]
  if entry.type == "quantity" and shown[entry.unit] then text = shown[entry.unit] end
  -- a limit that no reader will meet says nothing
  local low, high = entry.low, entry.high
  if entry.unit == "fraction" and high then text = string.format("%g to %g", low or 0, high) end
  if entry.type == "integer" and low and low > 1 or entry.type == "integers" or (high and high < 1e6 and entry.unit ~= "fraction") then
    text = text .. ", " .. format.range(low, high, entry.unit)
  end
  return text
end

local titles = {
  [""] = "Beside them", cluster = "cluster", ["cluster.network"] = "cluster.network", training = "training", parallelism = "parallelism",
}
local order = { "cluster", "cluster.network", "training", "parallelism", "" }

return function(page)
  local lines = {}
  for _, group in ipairs(order) do
    lines[#lines + 1] = (#lines > 0 and "\n" or "") .. "### " .. titles[group] .. "\n\n| field | value | meaning |\n| --- | --- | --- |"
    for _, entry in ipairs(fields.list) do
      if entry.path:sub(1, -#entry.name - 2) == group then
        lines[#lines + 1] = string.format("| `%s`%s | %s | %s |", entry.name, entry.required and " (required)" or "", value_of(entry),
                                          (fields.meaning(entry):gsub("|", "\\|")))
      end
    end
  end
  return between(page, "fields", table.concat(lines, "\n"))
end
