-- init.lua: the definition files: name → text. For whoever has required pipeplan and has stdlib/meta on package.path.

-- `source` is the source tree.
return function(source)
  return {
    engine = require "generate.engine"(),
    luacheck = require "generate.luacheck"(),
    pipeplan = require "generate.api"(),
    policy = require "generate.policy"(source .. "/policies/default"),
  }
end
