-- SPDX-License-Identifier: Apache-2.0
-- builder.lua: what putting layers together and what a layer does to earlier ones have in common. `builder` is that of layers.lua.

local builders = {}

-- Says what is wrong with something that has a file and a line.
function builders.complain(builder, at, format, ...)
  builder.report(at.file, at.line, string.format(format, ...))
end

-- Where a statement stands, for what it makes.
function builders.origin(statement)
  return { layer = statement.layer, file = statement.file, line = statement.line }
end

return builders
