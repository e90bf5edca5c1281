-- SPDX-License-Identifier: Apache-2.0
-- entries.lua: arguments and fields of the engine's descriptions (classes.lua, primitives.lua), of kinds that stand there often.
--
-- An argument or field is { name, type, meaning, low =, high =, default = or optional = true }; neither: it must be there.

local entries = { HUGE_SIZE = 2 ^ 31 - 1 }  -- far beyond any recipe

function entries.degree(name, meaning) return { name, "integer", meaning, low = 1, high = entries.HUGE_SIZE, default = 1 } end
function entries.flag(name, meaning) return { name, "boolean", meaning, default = false } end
function entries.size(name, meaning, otherwise)
  return { name, "integer", meaning, low = otherwise and 0 or 1, default = otherwise }
end
function entries.result(name, meaning, optional) return { name, "number", meaning, optional = optional } end
function entries.element_bytes(name, meaning, otherwise) return { name, "number", meaning, low = 0, high = 64, default = otherwise } end

return entries
