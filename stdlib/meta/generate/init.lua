-- SPDX-License-Identifier: Apache-2.0
-- init.lua: the definition files: name → text. For whoever has required pipeplan and has stdlib/meta on package.path.

-- The licence's line, behind the one that editors want first.
local function tagged(text)
  local meta, rest = text:match "^(%-%-%-@meta[^\n]*\n)(.*)$"
  return (meta or "") .. "-- SPDX-License-Identifier: Apache-2.0\n" .. (rest or text)
end

-- `source` is the source tree.
return function(source)
  local made = {
    engine = require "generate.engine"(),
    luacheck = require "generate.luacheck"(),
    pipeplan = require "generate.api"(),
    policy = require "generate.policy"(source .. "/policies/default"),
    programs = require "generate.programs"(),
  }
  for name, text in pairs(made) do made[name] = tagged(text) end
  return made
end
