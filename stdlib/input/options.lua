-- options.lua: every field of a spec as a command-line option, by the last component of its path: cluster.network.per_gpu is --per_gpu,
-- and --per-gpu too. Made from fields.lua; for lua-argparse.

local fields = require "pipeplan.input.fields"

local options = {}

local argument_names = { integer = "N", quantity = "QUANTITY", string = "NAME", choice = "NAME", kernel = "NAME|false", integers = "N,N,…",
                         recompute = "MODULE,…", batch = "N|TOKEN:N,…", model = "FILE", path = "FILE" }

-- Declares them on an argparse parser or command, in a help group of their own.
function options.declare(parser)
  local declared = {}
  for _, entry in ipairs(fields.list) do
    local dashed = entry.name:gsub("_", "-")
    local description = entry.meaning .. (entry.domain and ": " .. table.concat(entry.domain, ", ") or "")
    local option = parser:option("--" .. entry.name):description(description):argname(argument_names[entry.type])
      :target("field " .. entry.name)
    if dashed ~= entry.name then option:hidden_name("--" .. dashed) end
    declared[#declared + 1] = option
  end
  parser:group("Fields of the spec", table.unpack(declared))
end

-- What was given, as spec.read takes it: { name = text }.
function options.given(parsed)
  local given = {}
  for _, entry in ipairs(fields.list) do given[entry.name] = parsed["field " .. entry.name] end
  return given
end

return options
