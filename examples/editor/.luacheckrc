-- SPDX-License-Identifier: Apache-2.0
-- .luacheckrc of a repository of site policies: luacheck then knows what a policy may use, and nothing else.
local prefix = os.getenv "PIPEPLAN_PREFIX" or os.getenv "HOME" .. "/.local"
stds.policy = dofile(prefix .. "/share/pipeplan/meta/luacheck.lua")
std = "policy"
max_line_length = false
files["**/*_spec.lua"] = { std = "lua54+busted" }
