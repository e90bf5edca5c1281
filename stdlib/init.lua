-- init.lua: what `require "pipeplan"` returns.

local engine = require "engine"

return { version = engine.version }
